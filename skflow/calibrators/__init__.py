"""Sentence vectors to calibrated vectors."""

from ._flow import NormalizingFlowCalibrator
from ._natsv import NATSVCalibrator
from ._standard import StandardNormalizationCalibrator
from ._whitening import WhiteningCalibrator

__all__ = [
    "NATSVCalibrator",
    "NormalizingFlowCalibrator",
    "StandardNormalizationCalibrator",
    "WhiteningCalibrator",
]
