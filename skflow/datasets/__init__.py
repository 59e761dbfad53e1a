"""Data sets for semantic textual similarity."""
