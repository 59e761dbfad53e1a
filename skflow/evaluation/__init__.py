"""Does calibrating help, which calibrator, with which settings: the tables of the literature in one call.

Every figure in this module is multiplied by 100, as the literature prints them.
"""

from ._evaluate import compare_calibrators, evaluate_pairs, evaluate_sts
from ._results import CalibratorComparison, Difference, Interval, PairsResult, STSResult

__all__ = [
    "CalibratorComparison",
    "Difference",
    "Interval",
    "PairsResult",
    "STSResult",
    "compare_calibrators",
    "evaluate_pairs",
    "evaluate_sts",
]
