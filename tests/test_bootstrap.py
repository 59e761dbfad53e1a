import numpy as np
import pytest
from scipy import stats

from skflow._bootstrap import bootstrap_average


def correlated(n, rho, seed):
    return np.random.RandomState(seed).multivariate_normal([0, 0], [[1, rho], [rho, 1]], size=n).T


def test_average_is_scipys():
    (x1, y1), (x2, y2) = correlated(80, 0.7, 0), correlated(50, 0.2, 1)
    y1 = y1.round(1)  # ties
    average, _, _ = bootstrap_average([(3, x1, y1[np.newaxis]), (1, x2, y2[np.newaxis])], n_resamples=1)
    expected = (3 * stats.spearmanr(x1, y1)[0] + stats.spearmanr(x2, y2)[0]) / 4
    assert average[0] == pytest.approx(expected, abs=1e-14)


def test_interval_has_the_width_of_fishers():
    # The standard error of Fisher's z of Spearman's rho is about sqrt((1 + rho**2 / 2) / (n - 3)) (Bonett and
    # Wright, 2000, doi:10.1007/BF02294183).
    x, y = correlated(1000, 0.6, 0)
    average, resampled, interval = bootstrap_average([(1, x, y[np.newaxis])])
    assert resampled.shape == (1000, 1)
    error = 1.96 * np.sqrt((1 + average[0] ** 2 / 2) / 997)
    expected = np.tanh(np.arctanh(average[0]) + np.array([-error, error]))
    np.testing.assert_allclose(interval[0], expected, atol=0.012)


def test_differences_are_paired():
    x, y = correlated(500, 0.6, 0)
    other = y + 0.01 * np.random.RandomState(1).standard_normal(500)
    _, resampled, interval = bootstrap_average([(1, x, np.stack([y, other]))], n_resamples=300)
    assert np.diff(resampled).std() < 0.1 * np.ptp(interval[0])
    _, again, _ = bootstrap_average([(1, x, np.stack([y, other]))], n_resamples=300)
    np.testing.assert_array_equal(again, resampled)
