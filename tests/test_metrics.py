import pickle
import warnings

import numpy as np
import pytest
import scipy.spatial
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LinearRegression
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.model_selection import cross_val_score

from skflow.metrics import (
    alignment,
    average_cosine,
    effective_rank,
    isoscore,
    partition_isotropy,
    pearson_score,
    pearson_scorer,
    spearman_score,
    spearman_scorer,
    uniformity,
)

CROSS = [[1, 0], [-1, 0], [0, 1], [0, -1]]
clouds = arrays(
    np.float64,
    st.tuples(st.integers(2, 12), st.integers(2, 5)),
    elements=st.floats(-10, 10).map(lambda value: round(value, 3)),
)


@pytest.fixture
def cloud():
    return np.random.default_rng(0).normal(loc=[3, 1, 0, 0, 0, 0], size=(50, 6))


# Rank and linear correlation


def test_correlations_by_hand():
    # Ranks 1 2 3 4 and 1 2 4 3: rho = 1 - 6 (0 + 0 + 1 + 1) / (4 * 15) = 0.8.
    assert_allclose(spearman_score([1, 2, 3, 4], [0.1, 0.2, 0.9, 0.8]), 0.8)
    # Ties: ranks 1 2.5 2.5 4 and 1 2 3 4; covariance 4.5, variances 4.5 and 5: rho = 4.5 / sqrt(22.5).
    assert_allclose(spearman_score([1, 2, 2, 3], [1, 2, 3, 4]), 4.5 / 22.5**0.5)
    # Deviations -1 0 1 and -0.2 -0.2 0.4: r = 0.6 / sqrt(2 * 0.24).
    assert_allclose(pearson_score([0, 1, 2], [0, 0, 0.6]), 0.6 / 0.48**0.5)


@pytest.mark.parametrize("score", [spearman_score, pearson_score])
def test_correlations_where_they_are_undefined(score):
    with pytest.warns(scipy.stats.ConstantInputWarning):
        assert np.isnan(score([1, 2, 3], [0.5, 0.5, 0.5]))
    with pytest.warns(scipy.stats.ConstantInputWarning):
        assert np.isnan(score([1, 1, 1], [0.1, 0.2, 0.3]))
    with pytest.warns(UndefinedMetricWarning, match="fewer than two samples"):
        assert np.isnan(score([1], [0.5]))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        score([1, 2, 3], [0.1, 0.2])
    with pytest.raises(ValueError, match="y_pred contains NaN"):
        score([1, 2], [0.1, np.nan])
    with pytest.raises(ValueError, match="y_true contains infinity"):
        score([1, np.inf], [0.1, 0.2])


@pytest.mark.parametrize(
    ("scorer", "score"), [(spearman_scorer, spearman_score), (pearson_scorer, pearson_score)]
)
def test_scorers(scorer, score):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.exp(X @ [1, 2]) + rng.normal(size=60)
    model = LinearRegression().fit(X, y)
    assert scorer(model, X, y) == score(y, model.predict(X))
    assert pickle.loads(pickle.dumps(scorer))(model, X, y) == scorer(model, X, y)
    folds = cross_val_score(LinearRegression(), X, y, scoring=scorer, cv=3)
    assert np.all((folds > 0.3) & (folds < 1))
    # Higher is better for both, and only Spearman's ignores a monotone transformation.
    assert (
        score(y, np.exp(y / 4)) == pytest.approx(1)
        if score is spearman_score
        else score(y, np.exp(y / 4)) < 1
    )


# Average cosine


def test_average_cosine_by_hand():
    # Cosines of (1,0), (0,2), (3,3): 0, 1/sqrt(2), 1/sqrt(2).
    assert_allclose(average_cosine([[1, 0], [0, 2], [3, 3]]), 2**0.5 / 3)
    assert_allclose(average_cosine(CROSS), -1 / 3)  # two of the six pairs are opposite, the others orthogonal
    assert_allclose(average_cosine([[2, 1]] * 5), 1)
    assert average_cosine([[1, 0], [0, 0]]) == 0


@settings(deadline=None)
@given(clouds)
def test_average_cosine_is_the_mean_over_all_pairs(X):
    pairs = cosine_similarity(X)[np.triu_indices(len(X), 1)]
    assert_allclose(average_cosine(X), pairs.mean(), atol=1e-12)


def test_extreme_lengths_do_not_matter(cloud):
    for scale in (1e-29, 1e29):
        assert_allclose(average_cosine(cloud * scale), average_cosine(cloud))
        assert_allclose(uniformity(cloud * scale), uniformity(cloud))


# Isotropy by the partition function


def test_partition_isotropy_by_hand():
    # X'X = 2 I; Z is 2 + e + 1/e along both axes.
    assert_allclose(partition_isotropy(CROSS), 1)
    # One vector (2, 0): Z(+-e1) = exp(+-2), Z(+-e2) = 1.
    assert_allclose(partition_isotropy([[2, 0]]), np.exp(-4))
    # (2, 0) and (0, 1): Z = e^2 + 1, e^-2 + 1, 1 + e, 1 + 1/e.
    assert_allclose(partition_isotropy([[2, 0], [0, 1]]), (np.exp(-2) + 1) / (np.exp(2) + 1))


def test_partition_isotropy_of_long_vectors_is_finite():
    assert partition_isotropy([[2000.0, 0], [0, 1]]) == 0
    assert_allclose(partition_isotropy(2000.0 * np.array(CROSS)), 1)


def test_partition_isotropy_does_not_depend_on_signs(cloud):
    assert_allclose(partition_isotropy(-cloud), partition_isotropy(cloud))


# IsoScore


def test_isoscore_by_hand():
    assert_allclose(isoscore(CROSS), 1)
    assert_allclose(isoscore([[1, 0, 0], [2, 0, 0], [5, 0, 0]]), 0, atol=1e-12)
    # Variances 4 : 1, so (5^2 / 17 - 1) / (2 - 1).
    assert_allclose(isoscore([[2, 0], [-2, 0], [0, 1], [0, -1]]), 8 / 17)


def published_isoscore(X):
    """Algorithm 1 of Rudman et al. (2022), step by step."""
    n = X.shape[1]
    covariance = np.cov((X @ np.linalg.eigh(np.cov(X.T))[1]).T)
    diagonal = np.diag(covariance)
    normalized = np.sqrt(n) * diagonal / np.linalg.norm(diagonal)
    defect = np.linalg.norm(normalized - 1) / np.sqrt(2 * (n - np.sqrt(n)))
    fraction = (n - defect**2 * (n - np.sqrt(n))) ** 2 / n**2
    return (n * fraction - 1) / (n - 1)


@settings(deadline=None)
@given(st.integers(0, 1000), st.integers(2, 6), st.integers(7, 30))
def test_isoscore_is_the_published_algorithm(seed, n_features, n_samples):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)) * rng.exponential(size=n_features) + rng.normal(
        size=n_features
    )
    assert_allclose(isoscore(X), published_isoscore(X), atol=1e-9)
    turned = X @ scipy.stats.ortho_group.rvs(n_features, random_state=seed)
    assert_allclose(isoscore(1e-28 * turned + 7e-28), isoscore(X), atol=1e-9)


def test_isoscore_of_fewer_samples_than_features():
    # Two points span one direction of three: variances 1 : 0 : 0.
    assert_allclose(isoscore([[1, 2, 3], [4, 5, 7]]), 0, atol=1e-12)


def test_isoscore_where_it_is_undefined():
    with pytest.warns(UndefinedMetricWarning, match="nothing varies"):
        assert np.isnan(isoscore([[1, 2], [1, 2]]))
    with pytest.raises(ValueError, match="1 feature"):
        isoscore([[1], [2]])


# Effective rank


def test_effective_rank_by_hand():
    assert_allclose(effective_rank(np.eye(4)), 4)
    assert_allclose(effective_rank([[1, 2], [2, 4], [3, 6]]), 1)
    # Singular values 3 and 1: p = 3/4 and 1/4.
    assert_allclose(effective_rank(np.diag([3.0, 1.0])), 4 / 3**0.75)
    assert effective_rank(np.zeros((3, 2))) == 0
    # Four points around (10, 10): the mean outweighs the rest, without it the plane is filled evenly.
    shifted = np.array(CROSS) + 10
    assert effective_rank(shifted) < 1.4
    assert_allclose(effective_rank(shifted, center=True), 2)


# Uniformity and alignment


def test_uniformity_by_hand():
    assert_allclose(uniformity([[1, 0], [-3, 0]]), -8)  # squared distance 4, t = 2
    assert_allclose(uniformity([[1, 0], [0, 2]], t=3), -6)  # squared distance 2
    assert_allclose(uniformity([[1, 0], [2, 0], [0, 1]]), np.log((1 + 2 * np.exp(-4)) / 3))
    assert_allclose(uniformity([[1, 1]] * 4), 0, atol=1e-12)


@settings(deadline=None)
@given(clouds)
def test_uniformity_is_the_mean_over_all_pairs(X):
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    units = X / np.where(norms > 0, norms, 1)
    distances = scipy.spatial.distance.pdist(units, "sqeuclidean")
    assert_allclose(uniformity(X), np.log(np.mean(np.exp(-2 * distances))), atol=1e-9)


def test_uniformity_of_many_rows_is_computed_in_blocks(cloud, monkeypatch):
    whole = uniformity(cloud)
    for block in (1, 170, 1000):
        monkeypatch.setattr("skflow.metrics._BLOCK", block)
        assert_allclose(uniformity(cloud), whole)


def test_uniformity_of_far_points_with_a_narrow_kernel_is_finite():
    assert_allclose(uniformity([[1, 0], [-1, 0]], t=1000), -4000)


def test_alignment_by_hand():
    X, Y = [[1, 0], [1, 0]], [[2, 0], [0, 1]]  # squared distances of the directions: 0 and 2
    assert_allclose(alignment(X, Y), 1)
    assert_allclose(alignment(X, Y, alpha=1), 2**0.5 / 2)
    assert alignment(X, X) == 0
    # A mean squared distance of unit vectors is 2 - 2 cos.
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 30, 4))
    assert_allclose(alignment(X, Y), 2 - 2 * np.mean(np.diag(cosine_similarity(X, Y))))


# All of them

SHAPES = [average_cosine, partition_isotropy, isoscore, effective_rank, uniformity]


@pytest.mark.parametrize(
    "metric", [*SHAPES, lambda X: alignment(X, X), lambda X: alignment(np.ones((2, 2)), X)]
)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_an_error(metric, bad):
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        metric([[1.0, bad], [2, 3]])


@pytest.mark.parametrize("metric", SHAPES)
def test_float32_and_integers_are_computed_in_float64(metric, cloud):
    single = cloud.astype(np.float32)
    value = metric(single)
    assert type(value) is float
    assert value == metric(single.astype(np.float64))
    assert metric(np.array(CROSS)) == metric(np.array(CROSS, dtype=np.float64))


@pytest.mark.parametrize(
    "metric", [*SHAPES, lambda X: alignment(X, X), lambda X: alignment(np.ones((50, 6)), X)]
)
@pytest.mark.parametrize(("scale", "got"), [(1e160, r"e\+160"), (1e-170, "e-170")])
def test_magnitudes_whose_squares_leave_the_range_are_an_error(metric, cloud, scale, got):
    with pytest.raises(ValueError, match=f"largest magnitude in [XY] is .*{got}.*rescale"):
        metric(cloud * scale)


@pytest.mark.parametrize("scale", [1e-30, 1e28])
def test_ends_of_the_range(cloud, scale):
    """These do not depend on the scale of the vectors."""
    for metric in (average_cosine, isoscore, effective_rank, uniformity):
        assert_allclose(metric(cloud * scale), metric(cloud))


@settings(deadline=None)
@given(st.integers(2, 30), arrays(np.float64, 7, elements=st.floats(0.001, 1000)))
def test_average_cosine_stays_within_its_bounds(n_samples, row):
    """Rounding leads out of [-1, 1] where all rows are one, or its negative."""
    assert 1 - 1e-12 < average_cosine(np.tile(row, (n_samples, 1))) <= 1
    assert -1 <= average_cosine(np.vstack([row, -row])) < -1 + 1e-12


@pytest.mark.parametrize("metric", [*SHAPES, lambda X: alignment(X, X[::1])])
def test_tensors_are_taken_as_float32(metric, cloud):
    torch = pytest.importorskip("torch")
    X = torch.from_numpy(cloud).bfloat16()
    expected = metric(X.float().numpy())
    assert metric(X.requires_grad_()) == metric(list(X)) == expected


@pytest.mark.parametrize("score", [spearman_score, pearson_score])
def test_correlations_of_tensors(score):
    torch = pytest.importorskip("torch")
    y_true, y_pred = torch.tensor([1.0, 2, 3, 4]), torch.tensor([0.125, 0.25, 1, 0.5]).bfloat16()
    expected = score(y_true.numpy(), y_pred.float().numpy())
    for prediction in (y_pred, y_pred.clone().requires_grad_(), list(y_pred)):
        assert score(y_true, prediction) == expected


def test_bad_arguments(cloud):
    with pytest.raises(ValueError, match="t must be above 0, got -1"):
        uniformity(cloud, t=-1)
    with pytest.raises(ValueError, match="alpha must be above 0, got 0"):
        alignment(cloud, cloud, alpha=0)
    with pytest.raises(ValueError, match=r"same shape, got \(50, 6\) and \(49, 6\)"):
        alignment(cloud, cloud[1:])
    for metric in (average_cosine, uniformity, isoscore):
        with pytest.raises(ValueError, match=r"1 sample\(s\)"):
            metric(cloud[:1])
    with pytest.raises(ValueError, match="2D array"):
        average_cosine(cloud[0])


def test_no_warning_for_ordinary_input(cloud):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for metric in SHAPES:
            metric(cloud)
