"""Modules of a :class:`sentence_transformers.SentenceTransformer` that skflow exports.

A saved model names them by their import paths, which therefore stay as they are.
"""

from .calibration import CalibrationModule
from .layered_encoder import LayeredEncoder
from .token_pooling import TokenPooling
from .truncation import Truncation

__all__ = ["CalibrationModule", "LayeredEncoder", "TokenPooling", "Truncation"]
