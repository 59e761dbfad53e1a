"""scikit-learn's own checks, with no expected failures."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from skflow.calibrators import (
    NATSVCalibrator,
    NormalizingFlowCalibrator,
    StandardNormalizationCalibrator,
    WhiteningCalibrator,
)

CALIBRATORS = [
    StandardNormalizationCalibrator(),
    NATSVCalibrator(),
    NATSVCalibrator(n_components=0),
    NATSVCalibrator(n_components=1000),
    NATSVCalibrator(n_components="auto"),
    WhiteningCalibrator(),
    WhiteningCalibrator(n_components=1),
    WhiteningCalibrator(n_components=2, method="zca"),
    WhiteningCalibrator(method="zca", strength=0.5),
    WhiteningCalibrator(strength=0, tol=0),
    WhiteningCalibrator(strength="auto"),
    WhiteningCalibrator(method="zca", strength="auto", shrinkage="ledoit-wolf"),
    NormalizingFlowCalibrator(),
    NormalizingFlowCalibrator(coupling="affine", permutation="lu", n_levels=2, early_stopping=True),
    NormalizingFlowCalibrator(strength=0.5),
    NormalizingFlowCalibrator(strength="auto", permutation="random"),
]

# scikit-learn 1.6 hands over a generator, which newer versions of pytest refuse.
_mark = parametrize_with_checks(CALIBRATORS)
with_checks = pytest.mark.parametrize(_mark.args[0], list(_mark.args[1]), **_mark.kwargs)


# Early stopping is asked to learn from a few rows of noise, and says that it could not.
@pytest.mark.filterwarnings("ignore:The flow did not train well:sklearn.exceptions.ConvergenceWarning")
@with_checks
def test_sklearn_checks(estimator, check):
    check(estimator)
