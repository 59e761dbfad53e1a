"""Text to sentence vectors."""
