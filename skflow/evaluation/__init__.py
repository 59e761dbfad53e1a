"""Does calibrating help, which calibrator, with which settings: the tables of the literature in one call.

Every score in this module is multiplied by 100, as the literature prints them.
"""

from ._comparison import CalibratorComparison
from ._evaluate import compare_calibrators, evaluate_pairs, evaluate_sts
from ._pairs_result import PairsResult
from ._result import Difference, Interval
from ._sts_result import STSResult
from ._suggestion import CalibratorSuggestion, suggest_calibrator

__all__ = [
    "CalibratorComparison",
    "CalibratorSuggestion",
    "Difference",
    "Interval",
    "PairsResult",
    "STSResult",
    "compare_calibrators",
    "evaluate_pairs",
    "evaluate_sts",
    "suggest_calibrator",
]
