"""skflow: make the sentence vectors of a frozen encoder usable for similarity."""

import importlib

from . import _installation  # noqa: F401  # first: it fails where another package's files lie among ours
from ._version import __version__
from .calibrators import (
    NATSVCalibrator,
    NormalizingFlowCalibrator,
    StandardNormalizationCalibrator,
    WhiteningCalibrator,
)
from .embedders import BertEmbedder, WordVectorEmbedder
from .similarity import CosineSimilarityClassifier, CosineSimilarityRegressor

__all__ = [
    "BertEmbedder",
    "CosineSimilarityClassifier",
    "CosineSimilarityRegressor",
    "NATSVCalibrator",
    "NormalizingFlowCalibrator",
    "StandardNormalizationCalibrator",
    "WhiteningCalibrator",
    "WordVectorEmbedder",
    "__version__",
]

_SUBMODULES = ("datasets", "evaluation", "exceptions", "export", "flows", "inspection", "metrics", "modules")


def __getattr__(name):
    """Import a subpackage when it is first asked for."""
    if name in _SUBMODULES:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_SUBMODULES})
