import numpy as np
import pytest
import scipy.stats
from sklearn.metrics import roc_auc_score

import skflow._bootstrap
from skflow._bootstrap import percentile_interval, resample_scores

STATISTICS = {
    "spearman": lambda y, x: scipy.stats.spearmanr(y, x)[0],
    "pearson": lambda y, x: scipy.stats.pearsonr(y, x)[0],
    "auc": roc_auc_score,
}


def correlated(n, rho, seed):
    return np.random.RandomState(seed).multivariate_normal([0, 0], [[1, rho], [rho, 1]], size=n).T


def resample_one(y, x, metric="spearman", n_resamples=1000, seed=0):
    return resample_scores(y, [x], [np.arange(len(y))], [metric], n_resamples, seed)[metric][0]


@pytest.mark.parametrize("metric", STATISTICS)
@pytest.mark.parametrize("decimals", [6, 0])  # without and with ties
def test_figures_are_those_of_the_pairs_drawn(metric, decimals):
    y, x = correlated(40, 0.6, 0).round(decimals)
    y = (y > 0).astype(float) if metric == "auc" else y
    scores = resample_one(y, x, metric, 30)
    drawn = np.random.RandomState(0).randint(40, size=(30, 40))
    expected = [STATISTICS[metric](y[rows], x[rows]) for rows in drawn]
    np.testing.assert_allclose(scores, np.transpose([expected, expected]), atol=1e-12)


@pytest.mark.parametrize("metric", STATISTICS)
def test_parts_are_drawn_apart(metric):
    y, x = correlated(50, 0.5, 1)
    y = (y > 0).astype(float) if metric == "auc" else y
    parts = [np.arange(0, 50, 2), np.arange(1, 50, 2)]
    scores = resample_scores(y, [x, -x], parts, [metric], 20, 7)[metric]
    assert scores.shape == (2, 20, 3)
    rng = np.random.RandomState(7)
    drawn = [part[rng.randint(25, size=(20, 25))] for part in parts]
    rows = [np.hstack(drawn), *drawn]
    expected = [[STATISTICS[metric](y[r[i]], x[r[i]]) for r in rows] for i in range(20)]
    np.testing.assert_allclose(scores[0], expected, atol=1e-12)
    # All similarities see the same draws: those of the opposite ranking are the opposite.
    np.testing.assert_allclose(scores[0] + scores[1], 1 if metric == "auc" else 0, atol=1e-12)


def test_blocks_do_not_alter_the_draws(monkeypatch):
    y, x = correlated(30, 0.5, 2)
    whole = resample_one(y, x, n_resamples=25)
    monkeypatch.setattr(skflow._bootstrap, "_BLOCK", 100)
    np.testing.assert_array_equal(resample_one(y, x, n_resamples=25), whole)


def test_interval_has_the_width_of_fishers():
    # The standard error of Fisher's z of Spearman's rho is about sqrt((1 + rho**2 / 2) / (n - 3)) (Bonett and
    # Wright, 2000, doi:10.1007/BF02294183).
    x, y = correlated(1000, 0.6, 0)
    rho = scipy.stats.spearmanr(x, y)[0]
    error = 1.96 * np.sqrt((1 + rho**2 / 2) / 997)
    expected = np.tanh(np.arctanh(rho) + np.array([-error, error]))
    np.testing.assert_allclose(percentile_interval(resample_one(x, y)[:, 0], 0.95), expected, atol=0.012)


def test_standard_error_of_the_area_under_the_curve():
    """That of two classes that are not told apart: sqrt((m + n + 1) / (12 m n)), from the Mann-Whitney U."""
    rng = np.random.RandomState(0)
    y, x = np.repeat([0.0, 1.0], 300), rng.uniform(size=600)
    scores = resample_scores(y, [x], [np.arange(600)], ["auc"], 2000, 0)["auc"][0, :, 0]
    assert scores.std() == pytest.approx(np.sqrt(601 / 12 / 300**2), rel=0.1)


@pytest.mark.parametrize("metric", ["spearman", "pearson"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 + 0.1])
def test_a_constant_has_no_correlation(metric, value):
    y = np.arange(7.0)
    assert np.isnan(resample_one(y, np.full(7, value), metric, 50)).all()
    assert np.isnan(resample_one(np.full(7, value), y, metric, 50)).all()


@pytest.mark.parametrize("metric", STATISTICS)
def test_a_single_pair_has_no_figure(metric):
    scores = resample_one(np.array([1.0]), np.array([0.5]), metric, 5)
    assert np.isnan(scores).all()
    assert np.isnan(percentile_interval(scores[:, 0], 0.9)).all()


def test_a_narrow_range_keeps_its_digits():
    y, x = correlated(60, 0.6, 3)
    np.testing.assert_allclose(
        resample_one(y, 0.9 + 1e-7 * x, "pearson", 20), resample_one(y, x, "pearson", 20), atol=1e-6
    )
