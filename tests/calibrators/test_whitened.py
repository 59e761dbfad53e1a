"""The whitening before a flow and the recoloring after it, against the moments of the rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skflow.calibrators import WhiteningCalibrator
from skflow.calibrators._whitened import MIN_DEVIATION, fit_whitening, recoloring, whitening

RNG = np.random.RandomState(0)
X = RNG.standard_normal((500, 6)) @ RNG.standard_normal((6, 6)) + 3


def test_whitened_rows_have_the_identity_as_covariance():
    linear_parameters, strength = fit_whitening(X)
    before = whitening(linear_parameters)
    Y = before(X)
    assert_allclose(np.cov(Y.T, ddof=0), np.eye(6), atol=1e-10)
    assert_allclose(Y.mean(axis=0), 0, atol=1e-12)
    # Half the logarithm of the determinant of the covariance, negated.
    assert_allclose(before.log_det, -0.5 * np.linalg.slogdet(np.cov(X.T, ddof=0))[1], rtol=1e-10)
    assert strength == WhiteningCalibrator(strength="auto").fit(X).strength_


@pytest.mark.parametrize("strength", [0.0, 0.4, 1.0])
def test_recolored_rows_are_those_of_a_whitening_of_that_strength(strength):
    linear_parameters, _ = fit_whitening(X)
    Z = recoloring(linear_parameters, strength)(whitening(linear_parameters)(X))
    assert_allclose(Z, WhiteningCalibrator(strength=strength).fit(X).transform(X), atol=1e-10)


def test_directions_without_signal_stay_small_and_invertible():
    flat = X.copy()
    flat[:, 5] = flat[:, 4]
    linear_parameters, _ = fit_whitening(flat)
    deviations = linear_parameters["deviations"]
    assert_allclose(deviations[-1], MIN_DEVIATION * deviations[0])
    before = whitening(linear_parameters)
    assert np.abs(before(flat)[:, -1]).max() < 1e-10
    assert_allclose(before.inverse(before(flat)), flat, atol=1e-10)


@pytest.mark.filterwarnings("ignore:.*was fitted on one row")
def test_one_row():
    linear_parameters, _ = fit_whitening(X[:1])
    assert_allclose(whitening(linear_parameters)(X[:1]), 0, atol=1e-15)
    assert (linear_parameters["deviations"] == 1).all()
