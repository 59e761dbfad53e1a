"""Text to sentence vectors."""

from ._bert import BertEmbedder

__all__ = ["BertEmbedder"]
