"""Fitted pipelines and calibrators for other runtimes."""

from typing import TYPE_CHECKING, Any

from ._onnx import to_onnx
from ._sentence_transformer import to_sentence_transformer

if TYPE_CHECKING:
    from ._calibration import CalibrationModule

__all__ = ["CalibrationModule", "to_onnx", "to_sentence_transformer"]


def __getattr__(name: str) -> Any:
    """Import the module of sentence-transformers, and with it torch, when it is first asked for."""
    if name == "CalibrationModule":
        from ._calibration import CalibrationModule

        return CalibrationModule
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
