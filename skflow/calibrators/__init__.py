"""Sentence vectors to calibrated vectors."""

from ._natsv import NATSVCalibrator
from ._standard import StandardNormalizationCalibrator
from ._whitening import WhiteningCalibrator

__all__ = ["NATSVCalibrator", "StandardNormalizationCalibrator", "WhiteningCalibrator"]
