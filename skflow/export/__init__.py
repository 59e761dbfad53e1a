"""Fitted pipelines and calibrators for other runtimes."""

from ._onnx import to_onnx
from ._sentence_transformer import to_sentence_transformer

__all__ = ["to_onnx", "to_sentence_transformer"]
