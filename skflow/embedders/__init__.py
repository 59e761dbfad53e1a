"""Text to sentence vectors."""

from ._bert import BertEmbedder
from ._word_vectors import WordVectorEmbedder

__all__ = ["BertEmbedder", "WordVectorEmbedder"]
