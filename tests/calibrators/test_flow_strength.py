"""NormalizingFlowCalibrator with a strength below 1: a whitening first, the spectrum restored in part."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.metrics.pairwise import cosine_similarity

from skflow.calibrators import NormalizingFlowCalibrator, WhiteningCalibrator
from skflow.calibrators._whitened import latent_rotation

from .test_flow import vectors

STRENGTHS = [0.0, 0.5, "auto", 1.0]


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize(
    "options", [{}, {"coupling": "affine", "permutation": "lu"}, {"permutation": "random"}]
)
@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-10), (np.float32, 1e-4)])
def test_inverse(strength, options, dtype, atol):
    X = vectors(dtype=dtype)
    calibrator = NormalizingFlowCalibrator(strength=strength, max_epochs=3, random_state=0, **options).fit(X)
    Z = calibrator.transform(X)
    assert Z.dtype == dtype
    assert_allclose(calibrator.inverse_transform(Z), X, rtol=0, atol=atol)


@pytest.mark.parametrize("strength", [0.0, 0.5, "auto"])
@pytest.mark.parametrize("flow", ["nice", "maf", "nsf"])
def test_zuko_s_flows(flow, strength):
    pytest.importorskip("zuko")
    X = vectors(n_features=4)
    calibrator = NormalizingFlowCalibrator(flow, strength=strength, max_epochs=3, random_state=0).fit(X)
    assert_allclose(calibrator.inverse_transform(calibrator.transform(X)), X, rtol=0, atol=1e-6)
    # No worse than the Gaussian of no whitening at all: independent features.
    assert calibrator.score(X) > stats.norm(X.mean(axis=0), X.std(axis=0)).logpdf(X).sum(axis=1).mean()


@pytest.mark.parametrize("strength", [0.5, "auto"])
def test_likelihood_is_the_density_by_change_of_variables(strength):
    # z is an affine map of the latent f(x), which is Gaussian: p(x) = N(f(x)) |df/dx|, by finite differences.
    X = vectors(n_features=5)
    calibrator = NormalizingFlowCalibrator(strength=strength, max_epochs=3, random_state=0).fit(X)
    stage, s, x, step = calibrator.linear_parameters_, calibrator.strength_, X[:1], 1e-6
    latent = (calibrator.transform(x) / stage["deviations"] ** (1 - s)) @ stage["rotation"].T
    steps = step * np.eye(5)
    jacobian = (calibrator.transform(x + steps) - calibrator.transform(x - steps)) / (2 * step)
    log_det = np.linalg.slogdet(jacobian)[1] - (1 - s) * np.log(stage["deviations"]).sum()
    expected = stats.norm.logpdf(latent).sum() + log_det
    assert_allclose(calibrator.score_samples(x), expected, rtol=1e-6)


def test_likelihood_of_a_gaussian():
    # Whitening alone is the true density; the flow must not spoil it.
    X = vectors(n_samples=4000, n_features=6)
    true = stats.multivariate_normal(X.mean(axis=0), np.cov(X.T)).logpdf(X).mean()
    calibrator = NormalizingFlowCalibrator(strength=0.5, random_state=0).fit(X)
    assert calibrator.score(X) == pytest.approx(true, abs=0.1)


@pytest.mark.parametrize("permutation", ["reverse", "random"])
@pytest.mark.parametrize("strength", [0.0, 0.3, "auto"])
def test_a_flow_that_changes_little_leaves_whitening_of_that_strength(strength, permutation):
    X = vectors(n_samples=3000)
    calibrator = NormalizingFlowCalibrator(
        strength=strength, permutation=permutation, max_epochs=0, batch_size=3000, random_state=0
    ).fit(X)
    whitening = WhiteningCalibrator(strength=strength).fit(X)
    assert calibrator.strength_ == pytest.approx(whitening.strength_)
    cosines = [cosine_similarity(estimator.transform(X[:200])) for estimator in (calibrator, whitening)]
    # Untrained, the flow normalizes by means and deviations of its first batch, here of all rows.
    assert_allclose(*cosines, atol=1e-3)


def test_full_strength_is_the_flow_alone():
    X = vectors()
    calibrator = NormalizingFlowCalibrator(random_state=0).fit(X)
    assert calibrator.strength_ == 1
    assert calibrator.linear_parameters_ is None


def test_variances_of_the_result():
    X = vectors(n_samples=5000)
    calibrator = NormalizingFlowCalibrator(strength=0.5, max_epochs=2, random_state=0).fit(X)
    deviations = np.sqrt(WhiteningCalibrator(strength=1.0).fit(X).explained_variance_)
    assert_allclose(calibrator.transform(X).std(axis=0) / np.sqrt(deviations), 1, atol=0.1)


def test_samples_have_the_covariance_of_the_rows():
    X = vectors(n_samples=3000)
    calibrator = NormalizingFlowCalibrator(strength=0.5, random_state=0).fit(X)
    S = calibrator.sample(20_000, random_state=0)
    assert_allclose(np.cov(S.T), np.cov(X.T), atol=0.15 * np.trace(np.cov(X.T)) / X.shape[1])
    assert_allclose(S.mean(axis=0), X.mean(axis=0), atol=0.05)


def through_skops(calibrator, path):
    skops = pytest.importorskip("skops.io")
    skops.dump(calibrator, path)
    untrusted = skops.get_untrusted_types(file=path)
    assert all(name.startswith("skflow.") for name in untrusted)
    return skops.load(path, trusted=untrusted)


@pytest.mark.parametrize("strength", [0.5, "auto"])
@pytest.mark.parametrize("flow", ["glow", "maf"])
def test_kept_by_pickles_and_directories(flow, strength, tmp_path):
    if flow == "maf":
        pytest.importorskip("zuko")
    X = vectors()
    calibrator = NormalizingFlowCalibrator(flow, strength=strength, random_state=0).fit(X)
    calibrator.save_pretrained(tmp_path)
    for other in (
        pickle.loads(pickle.dumps(calibrator)),
        through_skops(calibrator, tmp_path / "calibrator.skops"),
        NormalizingFlowCalibrator.from_pretrained(tmp_path),
    ):
        assert other.strength_ == calibrator.strength_
        assert_array_equal(other.transform(X), calibrator.transform(X))
        assert_array_equal(other.inverse_transform(X), calibrator.inverse_transform(X))
        assert_array_equal(other.score_samples(X), calibrator.score_samples(X))


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("deviations", np.zeros(12), "is not positive"),
        ("axes", np.eye(3), "is no finite float64 array of shape"),
        ("mean", np.full(12, np.nan), "is no finite float64 array of shape"),
    ],
)
def test_damaged_state_is_refused(name, array, message, tmp_path):
    calibrator = NormalizingFlowCalibrator(strength=0.5, max_epochs=0, random_state=0).fit(vectors())
    calibrator.linear_parameters_[name] = array
    calibrator.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=message):
        NormalizingFlowCalibrator.from_pretrained(tmp_path)


def test_goes_on():
    X = vectors()
    calibrator = NormalizingFlowCalibrator(strength=0.5, warm_start=True, random_state=0).fit(X)
    axes, n_iter = calibrator.linear_parameters_["axes"], calibrator.n_iter_
    before = calibrator.score(X)
    calibrator.set_params(max_epochs=5).fit(X)
    assert calibrator.score(X) > before
    assert_array_equal(calibrator.linear_parameters_["axes"], axes)
    calibrator.partial_fit(X)
    assert calibrator.n_iter_ == 6 * n_iter
    assert_allclose(calibrator.inverse_transform(calibrator.transform(X)), X, atol=1e-10)


def test_cannot_go_on_from_a_flow_without_whitening():
    calibrator = NormalizingFlowCalibrator(warm_start=True, random_state=0).fit(vectors())
    for fit in (calibrator.fit, calibrator.partial_fit):
        with pytest.raises(ValueError, match=r"strength='auto' cannot follow a fit with strength=1.0"):
            calibrator.set_params(strength="auto") and fit(vectors())


@pytest.mark.parametrize("n_samples", [1, 2, 8])
@pytest.mark.filterwarnings("ignore:.*was fitted on one row")
def test_few_rows(n_samples):
    X = vectors(n_samples)
    calibrator = NormalizingFlowCalibrator(strength="auto", random_state=0).fit(X)
    assert np.isfinite(calibrator.transform(vectors(50, seed=1))).all()
    assert_allclose(calibrator.inverse_transform(calibrator.transform(X)), X, atol=1e-8)


def test_directions_without_signal():
    X = vectors()
    X[:, 3] = 7
    X[:, 5] = X[:, 4]
    calibrator = NormalizingFlowCalibrator(strength="auto", random_state=0).fit(X)
    Z = calibrator.transform(X)
    assert np.isfinite(Z).all()
    assert_allclose(calibrator.inverse_transform(Z), X, atol=1e-8)


@pytest.mark.parametrize("strength", [0.0, 0.5, "auto"])
def test_rounding_errors_stay_small(strength):
    # Features of vectors that come out of a layer normalization sum to 0, up to rounding, which differs from
    # batch to batch.
    X = vectors(500, dtype=np.float32)
    X -= X.mean(axis=1, keepdims=True)
    noise = np.float32(1e-7) * np.random.RandomState(1).standard_normal(X.shape).astype(np.float32)
    calibrator = NormalizingFlowCalibrator(strength=strength, max_epochs=10, random_state=0).fit(X + noise)
    Z = calibrator.transform(X)
    # Along the weakest direction of the others, noise grows by the inverse of its share in the deviations.
    assert_allclose(calibrator.transform(X - noise), Z, rtol=0, atol=1e-5 * np.abs(Z).max())
    assert_allclose(calibrator.inverse_transform(Z), X, rtol=0, atol=1e-4)


@pytest.mark.parametrize("scale", [1e-28, 1e-12, 1e12, 1e28])
def test_extreme_scales(scale):
    X = vectors()
    calibrator = NormalizingFlowCalibrator(strength="auto", random_state=0).fit(scale * X)
    Z = calibrator.transform(scale * X)
    assert np.isfinite(Z).all()
    assert_allclose(calibrator.inverse_transform(Z) / scale, X, atol=1e-9)


def test_rotation_undoes_an_affine_map():
    rng = np.random.RandomState(1)
    rotation = np.linalg.qr(rng.standard_normal((7, 7)))[0]
    assert_allclose(latent_rotation(lambda y: 3 * y @ rotation + 1, 7), rotation.T, atol=1e-12)
    assert_array_equal(latent_rotation(lambda y: y * np.inf, 3), np.eye(3))
