"""NormalizingFlowCalibrator: degenerate training rows, changed parameters, modules of others."""

import pickle

import numpy as np
import pytest
import scipy.integrate
from joblib import Parallel, delayed
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from skflow.calibrators import NormalizingFlowCalibrator


@pytest.fixture(name="X", scope="module")
def correlated_rows():
    rng = np.random.RandomState(0)
    return rng.standard_normal((502, 16)) @ rng.standard_normal((16, 16)) + 3


def test_collapse_of_one_row_is_a_failure():
    # A feature that is constant but for one row has an unbounded likelihood: training narrows its density
    # until that row, first unlikely, is impossible.
    X = np.random.RandomState(0).standard_normal((300, 16))
    X[:, 0] = 0.5
    X[7, 0] += 1e-3
    before = NormalizingFlowCalibrator(batch_size=2, max_epochs=0, random_state=0).fit(X).score(X)
    with pytest.warns(ConvergenceWarning, match="went from"):
        after = NormalizingFlowCalibrator(batch_size=2, random_state=0).fit(X).score(X)
    assert after >= before


@pytest.mark.parametrize("strength", [1.0, 0.5])
@pytest.mark.parametrize("n_first", [1, 2, 3, 5, 8])
@pytest.mark.filterwarnings("ignore:.*was fitted on one row")
def test_first_batch_of_a_few_rows(X, n_first, strength):
    # A Gaussian fitted to the 502 rows gives them -35 nats each, one of variance 1 about the first row -280
    # (scipy.stats.multivariate_normal): no first batch may do worse than to know nothing but one row.
    calibrator = NormalizingFlowCalibrator(strength=strength, random_state=0)
    calibrator.partial_fit(X[:n_first]).partial_fit(X[n_first:])
    assert -280 < calibrator.score(X) < -35
    assert calibrator.transform(X).std(axis=0).max() < 5


@pytest.mark.parametrize("flow", ["nsf", "maf"])
def test_modules_of_zuko_are_seeded_in_every_thread(X, flow):
    torch = pytest.importorskip("torch")
    pytest.importorskip("zuko")

    def latents():
        return NormalizingFlowCalibrator(flow, max_epochs=0.1, random_state=0).fit(X).transform(X)

    state = torch.get_rng_state()
    expected = latents()
    for result in Parallel(3, backend="threading")(delayed(latents)() for _ in range(6)):
        assert_array_equal(result, expected)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("fitted", "changed"),
    [
        ("glow", {"flow": "nsf"}),
        ("nsf", {"flow": "glow"}),
        ("nsf", {"hidden_width": 5}),
        ("glow", {"n_levels": 1}),
    ],
)
def test_changed_parameters_do_not_touch_what_was_fitted(X, fitted, changed):
    pytest.importorskip("zuko")
    calibrator = NormalizingFlowCalibrator(fitted, max_epochs=0.1, random_state=0).fit(X)
    expected = calibrator.transform(X)
    calibrator.set_params(**changed)
    assert_array_equal(calibrator.transform(X), expected)
    assert_array_equal(pickle.loads(pickle.dumps(calibrator)).transform(X), expected)
    calibrator.set_params(warm_start=True)
    name = next(iter(changed))
    for go_on in (calibrator.fit, calibrator.partial_fit):
        with pytest.raises(ValueError, match=f"{name}=.* cannot resume a fit with {name}="):
            go_on(X)


@pytest.mark.parametrize("parameter", ["n_steps", "hidden_width", "coupling", "permutation"])
def test_a_warm_start_keeps_the_architecture(X, parameter):
    other = {"n_steps": 2, "hidden_width": 5, "coupling": "affine", "permutation": "random"}[parameter]
    calibrator = NormalizingFlowCalibrator(max_epochs=0.1, warm_start=True, random_state=0).fit(X)
    with pytest.raises(ValueError, match=f"{parameter}=.* cannot resume"):
        calibrator.set_params(**{parameter: other}).fit(X)


def flow_without_log_det(n_features):
    import torch

    class OnlyLatents(torch.nn.Linear):
        def inverse(self, z):
            return z

        def log_prob(self, x):
            return x.sum(1)

    return OnlyLatents(n_features, n_features)


def linear(n_features):
    import torch

    return torch.nn.Linear(n_features, n_features)


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        (int, "returns a int without inverse and log_prob"),
        (linear, "returns a Linear without inverse and log_prob"),
        (flow_without_log_det, "forward of the OnlyLatents .* got a Tensor"),
    ],
)
def test_callables_that_return_no_flow(X, flow, message):
    with pytest.raises(TypeError, match=message):
        NormalizingFlowCalibrator(flow, random_state=0).fit(X)


def test_a_callable_that_is_gone(X):
    zuko_flow = pytest.importorskip("skflow.flows._zuko").ZukoFlow
    pytest.importorskip("zuko")
    calibrator = NormalizingFlowCalibrator(lambda d: zuko_flow("maf", d, 8), max_epochs=0.1).fit(X)
    with pytest.raises(ValueError, match="it was a callable when fitted"):
        calibrator.set_params(flow="glow").transform(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("flow", ["nice", "maf", "nsf", "gf"])
def test_an_outlier_has_a_finite_likelihood_under_zuko_s_flows(X, flow, dtype):
    pytest.importorskip("zuko")
    X = np.vstack([X[:-1], np.eye(1, 16) * 1e6]).astype(dtype)
    calibrator = NormalizingFlowCalibrator(flow, random_state=0).fit(X)
    assert np.isfinite(calibrator.score_samples(X)).all()
    assert np.isfinite(calibrator.loss_curve_).all()


def test_rows_far_out_have_a_finite_likelihood(X):
    calibrator = NormalizingFlowCalibrator(random_state=0).fit(X.astype(np.float32))
    far = np.full((1, 16), 1e20, dtype=np.float32)
    # Squares of 1e20 are more than a float32 holds; those of the float64 computation are the reference.
    assert np.isclose(calibrator.score_samples(far), calibrator.score_samples(far.astype(float)), rtol=1e-5)


@pytest.mark.parametrize("strength", [1.0, 0.5])
@pytest.mark.parametrize("size", [1e-29, 1e29])
def test_numbers_at_the_ends_of_the_range(size, strength):
    X = np.where(np.random.RandomState(0).rand(500, 10) > 0.5, size, -size)
    Z = NormalizingFlowCalibrator(strength=strength, random_state=0).fit(X).transform(X)
    assert np.isfinite(Z).all()
    # The same as of numbers of ordinary size.
    X = X / size * 1e3
    ordinary = NormalizingFlowCalibrator(strength=strength, random_state=0).fit(X).transform(X)
    assert np.corrcoef(Z.ravel(), ordinary.ravel())[0, 1] > 0.99


def test_fit_within_inference_mode(X):
    torch = pytest.importorskip("torch")
    expected = (
        NormalizingFlowCalibrator(coupling="affine", max_epochs=0.2, random_state=0).fit(X).transform(X)
    )
    with torch.inference_mode():
        calibrator = NormalizingFlowCalibrator(coupling="affine", max_epochs=0.2, random_state=0).fit(X)
        assert_array_equal(calibrator.transform(X), expected)


def test_devices_and_counts_that_are_none(X):
    calibrator = NormalizingFlowCalibrator(device="meta", random_state=0)
    with pytest.raises(ValueError, match="device='meta'"):
        calibrator.fit(X)
    with pytest.raises(ValueError, match="n_samples must be an integer of at least 1, got True"):
        calibrator.set_params(device="cpu").fit(X).sample(True)


@pytest.mark.parametrize("strength", [1.0, 0.5])
@pytest.mark.parametrize("fault", ["device", "nan", "range", "interrupt"])
def test_a_failed_fit_leaves_everything_as_it_was(X, fault, strength, monkeypatch):
    calibrator = NormalizingFlowCalibrator(strength=strength, max_epochs=0.2, random_state=0).fit(X)
    before, state = calibrator.transform(X), dict(vars(calibrator))
    bad = X[:, :9] * 1e3
    with monkeypatch.context() as patch:
        if fault == "device":
            calibrator.set_params(device="meta")
        elif fault == "nan":
            bad[-1, -1] = np.nan
        elif fault == "range":
            bad = bad * 1e40
        else:

            def interrupt(self, x):
                raise KeyboardInterrupt

            patch.setattr("skflow.flows._training.Trainer.step", interrupt)
        for fit in (calibrator.fit,) if fault == "interrupt" else (calibrator.fit, calibrator.partial_fit):
            with pytest.raises((ValueError, KeyboardInterrupt)):
                fit(bad)
    calibrator.set_params(device="auto")
    assert vars(calibrator).keys() == state.keys()
    assert all(vars(calibrator)[name] is state[name] for name in state if name != "device")
    assert_array_equal(calibrator.transform(X), before)


def test_a_failed_first_fit_leaves_it_not_fitted(X):
    calibrator = NormalizingFlowCalibrator(device="meta")
    with pytest.raises(ValueError, match="device='meta'"):
        calibrator.fit(X)
    assert vars(calibrator) == NormalizingFlowCalibrator(device="meta").get_params()


def test_early_stopping_that_never_gets_better_is_a_failure(X):
    calibrator = NormalizingFlowCalibrator(
        early_stopping=True, learning_rate=0.5, max_epochs=3, n_iter_no_change=1, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="log-likelihood of the rows that judge it went from"):
        calibrator.fit(X)
    untrained = NormalizingFlowCalibrator(max_epochs=0, random_state=0).fit(X)
    assert calibrator.score(X) > untrained.score(X) - 1  # the start is kept


def test_density_of_gf_integrates_to_one():
    # Beyond +-10 zuko's transform is flat: left alone, the density would never end (63 over +-1e5).
    pytest.importorskip("zuko")
    rng = np.random.RandomState(0)
    X = np.concatenate([rng.standard_normal(300), rng.standard_t(2, size=200)])[:, np.newaxis]
    calibrator = NormalizingFlowCalibrator("gf", max_epochs=20, learning_rate=1e-2, random_state=0).fit(X)
    grid = np.linspace(-1e3, 1e3, 2_000_001)
    mass = scipy.integrate.trapezoid(np.exp(calibrator.score_samples(grid[:, np.newaxis])), grid)
    assert 0.99 < mass <= 1


@pytest.mark.parametrize("permutation", ["random", "lu"])
def test_mixing_learns_wide_vectors_at_the_published_rate(permutation):
    # Vectors with a decaying spectrum. No density is better than the Gaussian that they come from.
    rng = np.random.RandomState(0)
    d = 384
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    deviations = 1 / np.sqrt(1 + np.arange(d))
    X = (rng.standard_normal((3200, d)) * deviations @ rotation).astype(np.float32)
    fits = [
        NormalizingFlowCalibrator(permutation=permutation, max_epochs=n, random_state=0).fit(X)
        for n in (0, 1)
    ]
    likelihood = -np.log(deviations).sum() - d / 2 * np.log(2 * np.pi * np.e)
    before, after = (fit.score(X) for fit in fits)
    assert before < after < likelihood + 0.1 * d
    assert fits[1].loss_curve_[-5:].mean() < fits[1].loss_curve_[:5].mean()
