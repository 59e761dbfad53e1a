"""Normality, feature by feature, against scipy."""

import numpy as np
import pytest
import scipy.stats
from sklearn.exceptions import UndefinedMetricWarning

from skflow.inspection import normality


@pytest.fixture(name="X")
def vectors(rng):
    return np.column_stack(
        [
            rng.standard_normal(300),
            rng.exponential(size=300),
            rng.uniform(-5, 2, size=300),
            1000 + 0.01 * rng.standard_normal(300),
        ]
    )


def test_agrees_with_scipy(X):
    result = normality(X)
    Z = scipy.stats.zscore(X)
    for j in range(X.shape[1]):
        assert result.ks[j] == pytest.approx(scipy.stats.kstest(X[:, j], "norm").statistic, rel=1e-9)
        assert result.ks_shape[j] == pytest.approx(scipy.stats.kstest(Z[:, j], "norm").statistic, rel=1e-6)
    np.testing.assert_allclose(result.skewness, scipy.stats.skew(X), rtol=1e-5)
    np.testing.assert_allclose(result.excess_kurtosis, scipy.stats.kurtosis(X), rtol=1e-5)
    np.testing.assert_allclose(result.mean, X.mean(axis=0))
    np.testing.assert_allclose(result.std, X.std(axis=0))


def test_shape_does_not_hang_on_location_and_scale(X):
    moved = normality(X * [3, -2, 0.1, 7] + [1, 2, 3, 4])
    original = normality(X)
    np.testing.assert_allclose(moved.ks_shape[[0, 2, 3]], original.ks_shape[[0, 2, 3]], rtol=1e-6)
    np.testing.assert_allclose(np.abs(moved.skewness), np.abs(original.skewness), rtol=1e-5)


def test_constant_features_are_nan_with_a_warning(X):
    X[:, 1] = 0.1
    with pytest.warns(UndefinedMetricWarning, match="1 of 4 features are constant"):
        result = normality(X)
    for figures in (result.ks_shape, result.skewness, result.excess_kurtosis):
        assert np.isnan(figures).tolist() == [False, True, False, False]
    assert result.ks[1] == pytest.approx(scipy.stats.norm.cdf(0.1))


@pytest.mark.parametrize("X", [[[1.0, 2.0]], [[1.0], [np.nan]], [1.0, 2.0]])
def test_errors(X):
    with pytest.raises(ValueError, match=r"minimum of 2|NaN|2D array"):
        normality(X)
