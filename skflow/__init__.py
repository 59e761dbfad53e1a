"""skflow: make the sentence vectors of a frozen encoder usable for similarity."""

from ._version import __version__
from .calibrators import (
    NATSVCalibrator,
    NormalizingFlowCalibrator,
    StandardNormalizationCalibrator,
    WhiteningCalibrator,
)
from .embedders import BertEmbedder, WordVectorEmbedder
from .similarity import CosineSimilarityRegressor

__all__ = [
    "BertEmbedder",
    "CosineSimilarityRegressor",
    "NATSVCalibrator",
    "NormalizingFlowCalibrator",
    "StandardNormalizationCalibrator",
    "WhiteningCalibrator",
    "WordVectorEmbedder",
    "__version__",
]
