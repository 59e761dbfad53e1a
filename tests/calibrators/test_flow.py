"""NormalizingFlowCalibrator: what it learns, how it stops, and that nothing it is given breaks it."""

import io
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV

from skflow.calibrators import NormalizingFlowCalibrator
from skflow.calibrators._flow import MIN_INIT_ROWS
from skflow.calibrators._input_scaling import input_scaling, typical_rows
from tests.flows._reference import from_reference, to_reference


def vectors(n_samples=500, n_features=12, dtype=np.float64, seed=0):
    """Correlated vectors about a common direction, with the spread of sentence vectors."""
    rng = np.random.RandomState(seed)
    mixing = rng.standard_normal((n_features, n_features)) / np.sqrt(n_features)
    return (0.3 * rng.standard_normal((n_samples, n_features)) @ mixing + 1).astype(dtype)


def assert_sound(calibrator, X):
    """Everything finite, and the inverse exact to the precision of the computation."""
    Z = calibrator.transform(X)
    assert np.isfinite(Z).all()
    assert np.isfinite(calibrator.score_samples(X)).all()
    assert np.isfinite(calibrator.loss_curve_).all()
    assert all(np.isfinite(array).all() for array in calibrator.parameters_.values())
    # Couplings add features up: values are rounded to the precision of the largest in their row as the flow
    # sees it.
    X = np.asarray(X, dtype=np.float64)
    eps = np.finfo(Z.dtype).eps
    seen = np.abs((X - calibrator.offset_) / calibrator.scale_).max(axis=1, keepdims=True)
    tolerance = 3000 * eps * (1 + seen) * calibrator.scale_ + 10 * eps * np.abs(X)
    assert (np.abs(calibrator.inverse_transform(Z) - X) / tolerance).max() <= 1


def test_reference_training(shared):
    # ../shared/reference: the batches, their losses and the final parameters of a public port of BERT-flow,
    # from its own random weights. partial_fit does one update a call on 64 rows, in their order.
    reference = np.load(shared / "reference" / "glow_16.npz")
    calibrator = NormalizingFlowCalibrator(max_epochs=0, device="cpu").fit(reference["batches"][0])
    initial = {k.removeprefix("after_init."): v for k, v in reference.items() if k.startswith("after_init.")}
    flow = from_reference(initial, int(reference["n_levels"]), int(reference["n_steps"]))
    calibrator.parameters_ = {name: tensor.numpy() for name, tensor in flow.state_dict().items()}
    for batch in reference["batches"]:
        calibrator.partial_fit(batch)
    assert_allclose(calibrator.loss_curve_, reference["losses"], rtol=0, atol=1e-8)
    for name, array in to_reference(calibrator.flow_).items():
        assert_allclose(array, reference[f"final.{name}"], rtol=0, atol=1e-8, err_msg=name)
    assert_allclose(calibrator.transform(reference["held_out"]), reference["z_held_out"], rtol=0, atol=1e-8)
    assert_allclose(
        calibrator.score_samples(reference["held_out"]), reference["log_prob_held_out"], rtol=1e-8
    )


@pytest.mark.parametrize("flow", ["glow", "realnvp"])
def test_likelihood_approaches_that_of_the_true_density(flow):
    # The entropy of a Gaussian is known: no density can score higher on fresh rows, and a good one comes
    # close.
    rng = np.random.RandomState(0)
    covariance = np.array([[1.0, 0.8], [0.8, 1.0]])
    X = rng.multivariate_normal([3, -2], covariance, size=4000)
    fresh = rng.multivariate_normal([3, -2], covariance, size=4000)
    bound = stats.multivariate_normal([3, -2], covariance).logpdf(fresh).mean()
    score = NormalizingFlowCalibrator(flow, max_epochs=20, random_state=0).fit(X).score(fresh)
    assert bound - 0.1 < score < bound + 0.01


def test_latents_are_nearly_gaussian_and_decorrelated():
    X = vectors(4000, 6)
    Z = NormalizingFlowCalibrator(max_epochs=20, random_state=0).fit_transform(X)
    assert_allclose(Z.mean(axis=0), 0, atol=0.15)
    assert_allclose(Z.std(axis=0), 1, atol=0.15)
    before, after = (np.abs(np.corrcoef(A.T) - np.eye(6)).max() for A in (X, Z))
    assert after < 0.5 * before


def test_score_samples_is_the_density_by_change_of_variables():
    X = vectors(200, 3)
    X[:, 1] *= 1e-4  # is scaled first
    calibrator = NormalizingFlowCalibrator(max_epochs=5, random_state=0).fit(X)
    assert calibrator.scale_[1] != 1
    row = X[:1]
    columns = []
    for j, step in enumerate(1e-5 * X.std(axis=0)):
        shifted = np.repeat(row, 2, axis=0)
        shifted[:, j] += [step, -step]
        forward, backward = calibrator.transform(shifted)
        columns.append((forward - backward) / (2 * step))
    log_det = np.linalg.slogdet(np.array(columns))[1]
    expected = stats.norm.logpdf(calibrator.transform(row)).sum() + log_det
    assert calibrator.score_samples(row)[0] == pytest.approx(expected, abs=1e-4)
    assert calibrator.score(X) == pytest.approx(calibrator.score_samples(X).mean())


def test_samples_follow_the_density():
    X = vectors(3000, 4)
    calibrator = NormalizingFlowCalibrator(max_epochs=10, random_state=0).fit(X)
    sample = calibrator.sample(3000, random_state=1)
    assert sample.dtype == X.dtype
    assert_allclose(sample.mean(axis=0), X.mean(axis=0), atol=0.05)
    assert_allclose(np.cov(sample.T), np.cov(X.T), atol=0.05)
    assert_array_equal(sample, calibrator.sample(3000, random_state=1))
    assert calibrator.sample().shape == (1, 4)
    latents = np.random.RandomState(1).standard_normal((3000, 4))
    assert_array_equal(sample, calibrator.inverse_transform(latents))
    with pytest.raises(ValueError, match="n_samples must be an integer of at least 1, got 0"):
        calibrator.sample(0)


def test_flow_attribute_is_the_flow_that_transforms():
    import torch

    X = vectors()
    calibrator = NormalizingFlowCalibrator(random_state=0).fit(X)
    with torch.no_grad():
        z, _ = calibrator.flow_(torch.tensor(X))
    assert_array_equal(z.numpy(), calibrator.transform(X))
    calibrator.flow_.levels[0][0].actnorm.bias.data.zero_()
    assert_array_equal(z.numpy(), calibrator.transform(X))


def test_same_seed_same_result_whatever_the_threads():
    import torch

    X = vectors(n_features=64, dtype=np.float32)
    n_threads = torch.get_num_threads()
    try:
        results = []
        for n in (1, 2):
            torch.set_num_threads(n)
            results.append(NormalizingFlowCalibrator(random_state=0).fit(X))
    finally:
        torch.set_num_threads(n_threads)
    for name, array in results[0].parameters_.items():
        assert_array_equal(array, results[1].parameters_[name])
    assert_array_equal(results[0].loss_curve_, results[1].loss_curve_)
    other = NormalizingFlowCalibrator(random_state=1).fit(X)
    assert not np.array_equal(other.transform(X), results[0].transform(X))


def test_fit_leaves_global_random_states_alone():
    import torch

    numpy_state, torch_state = np.random.mtrand._rand.get_state()[1].copy(), torch.get_rng_state()
    for flow in ("glow", "nice"):
        NormalizingFlowCalibrator(flow, random_state=0).fit(vectors(80))
    assert_array_equal(np.random.mtrand._rand.get_state()[1], numpy_state)
    assert torch.equal(torch.get_rng_state(), torch_state)


def test_order_of_rows_does_not_matter_much():
    # Public users of BERT-flow report useless latents from text in order. Sorted rows must do as well as
    # shuffled.
    X = vectors(4000, 8)
    shuffled = NormalizingFlowCalibrator(random_state=0).fit(X).score(X)
    order = np.argsort(X[:, 0])
    in_order = NormalizingFlowCalibrator(random_state=0).fit(X[order]).score(X)
    assert in_order == pytest.approx(shuffled, abs=0.1)


@pytest.mark.parametrize(
    ("max_epochs", "n_rows", "expected"),
    [(0, 640, 0), (0.001, 640, 1), (0.15, 6400, 15), (1, 640, 10), (2.5, 640, 25), (1, 65, 2)],
)
def test_number_of_updates(max_epochs, n_rows, expected):
    calibrator = NormalizingFlowCalibrator(max_epochs=max_epochs, random_state=0).fit(vectors(n_rows, 4))
    assert calibrator.n_iter_ == expected
    assert calibrator.loss_curve_.shape == (expected,)
    assert calibrator.validation_scores_.shape == (0,)


def test_no_epochs_gives_the_initialised_flow():
    # ActNorm makes each feature standard, nothing else has been learned: SN up to the order of the features.
    X = vectors(MIN_INIT_ROWS, 8)
    Z = NormalizingFlowCalibrator(max_epochs=0, n_levels=1, random_state=0).fit_transform(X)
    expected = (X - X.mean(axis=0)) / X.std(axis=0)
    # Three steps reverse three times; each divides by the standard deviation plus 1e-6.
    assert_allclose(Z[:, ::-1], expected, atol=1e-4)


def test_early_stopping_restores_the_best():
    X = vectors(300, 8)
    calibrator = NormalizingFlowCalibrator(
        early_stopping=True, max_epochs=200, learning_rate=0.003, n_iter_no_change=8, random_state=0
    ).fit(X)
    scores = calibrator.validation_scores_
    assert len(scores) < 200
    assert calibrator.n_iter_ == len(scores) * 5  # 270 rows are 5 batches
    held_out = np.sort(np.random.RandomState(0).permutation(300)[:30])
    assert calibrator.score(X[held_out]) == pytest.approx(scores.max(), rel=1e-9)
    assert scores.max() > scores[-1]
    best_so_far = np.maximum.accumulate(scores)
    assert_allclose(best_so_far[-4:], best_so_far[-1], atol=calibrator.tol * 4)


def test_early_stopping_of_a_fraction_of_an_epoch():
    calibrator = NormalizingFlowCalibrator(early_stopping=True, max_epochs=0.3, random_state=0).fit(
        vectors(1000)
    )
    assert calibrator.n_iter_ == 4  # of 900 rows, 15 batches
    assert calibrator.validation_scores_.shape == (1,)


def test_early_stopping_needs_two_rows():
    with pytest.raises(ValueError, match="early_stopping=True needs at least 2 samples"):
        NormalizingFlowCalibrator(early_stopping=True).fit(vectors(1))


def test_warm_start_goes_on():
    X = vectors(640)
    calibrator = NormalizingFlowCalibrator(warm_start=True, random_state=0).fit(X)
    first = calibrator.score(X)
    calibrator.fit(X)
    assert calibrator.score(X) > first
    assert calibrator.n_iter_ == 10
    cold = NormalizingFlowCalibrator(random_state=0)
    assert cold.fit(X).score(X) == cold.fit(X).score(X) == first


def test_warm_start_from_a_pickle_starts_the_moments_anew():
    X = vectors(640)
    calibrator = NormalizingFlowCalibrator(warm_start=True, random_state=0).fit(X)
    loaded = pickle.loads(pickle.dumps(calibrator))
    assert_array_equal(loaded.transform(X), calibrator.transform(X))
    assert_sound(loaded.fit(X), X)
    assert not np.array_equal(loaded.transform(X), calibrator.fit(X).transform(X))


def test_partial_fit_on_batches_of_any_size():
    X = vectors(1000)
    calibrator = NormalizingFlowCalibrator(random_state=0)
    for start, stop in [(0, 300), (300, 301), (301, 310), (310, 1000)]:
        calibrator.partial_fit(X[start:stop])
    assert calibrator.n_iter_ == 5 + 1 + 1 + 11
    assert len(calibrator.loss_curve_) == calibrator.n_iter_
    assert calibrator.loss_curve_[-5:].mean() < calibrator.loss_curve_[0]
    assert_sound(calibrator, X)
    with pytest.raises(ValueError, match="X has 3 features, but NormalizingFlowCalibrator is expecting 12"):
        calibrator.partial_fit(X[:, :3])
    again = clone(calibrator)
    for start, stop in [(0, 300), (300, 301), (301, 310), (310, 1000)]:
        again.partial_fit(X[start:stop])
    assert_array_equal(again.transform(X), calibrator.transform(X))


def test_partial_fit_in_one_call_or_in_many_is_the_same():
    X = vectors(640)
    whole = NormalizingFlowCalibrator(random_state=0).partial_fit(X)
    parts = NormalizingFlowCalibrator(random_state=0).partial_fit(X[:64])
    for start in range(64, 640, 64):
        parts.partial_fit(X[start : start + 64])
    assert_allclose(parts.transform(X), whole.transform(X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64])
@pytest.mark.parametrize("n_features", [1, 2, 3, 7, 130])
def test_dtypes_and_widths(dtype, n_features):
    X = (10 * vectors(150, n_features)).astype(dtype)
    calibrator = NormalizingFlowCalibrator(random_state=0).fit(X)
    expected = np.float64 if dtype == np.float64 else np.float32
    assert calibrator.transform(X).dtype == expected
    assert all(array.dtype == expected for array in calibrator.parameters_.values())
    assert calibrator.score_samples(X).dtype == np.float64
    assert_sound(calibrator, X)


def hostile(name, rng):
    X = 0.3 * rng.standard_normal((160, 16)) @ rng.standard_normal((16, 16))
    if name == "duplicated rows":
        return np.repeat(X[:4], 40, axis=0)
    if name == "one row many times":
        return np.repeat(X[:1], 100, axis=0)
    if name == "one row":
        return X[:1]
    if name == "constant columns":
        X[:, 3], X[:, 4], X[:, 5] = 0, 7, 1e9
    if name == "columns that barely vary":
        X[:, :3] = 0.03 + 1e-9 * rng.standard_normal((160, 3))
    if name == "columns of scale 1e-12 and 1e12":
        X[:, 0] *= 1e-12
        X[:, 1] *= 1e12
    if name == "a far-off column":
        X[:, 2] += 1e6
    if name == "an outlier":
        X[123, 5] = 1e6
    if name == "an outlying row":
        X[123] = -1e6
    if name == "a low-rank subspace":
        X = X[:, :2] @ rng.standard_normal((2, 16))
    if name == "zeros":
        X[:] = 0
    if name == "rare ones":
        X = (rng.uniform(size=(160, 16)) < 0.01).astype(float)
    if name == "constant in most rows":
        X[:150, 3] = 1
    if name == "large":
        X *= 1e24
    if name == "small":
        X *= 1e-24
    return X


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("batch_size", [1, 2, 4, 64, 4096])
@pytest.mark.parametrize(
    "name",
    [
        "duplicated rows",
        "one row many times",
        "one row",
        "constant columns",
        "columns that barely vary",
        "columns of scale 1e-12 and 1e12",
        "a far-off column",
        "an outlier",
        "an outlying row",
        "a low-rank subspace",
        "zeros",
        "rare ones",
        "constant in most rows",
        "large",
        "small",
    ],
)
@pytest.mark.filterwarnings("ignore:.*was fitted on one row")
def test_hostile_input_gives_finite_results(name, batch_size, dtype):
    X = hostile(name, np.random.RandomState(0)).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        calibrator = NormalizingFlowCalibrator(max_epochs=3, batch_size=batch_size, random_state=0).fit(X)
    assert_sound(calibrator, X)


def test_columns_of_any_scale_calibrate_alike():
    X = vectors(1000)
    scales = np.ones(12)
    scales[:2] = 1e-4, 1e12
    plain, scaled = (NormalizingFlowCalibrator(max_epochs=5, random_state=0).fit(A) for A in (X, X * scales))
    # The likelihood of a scaled column is that of the column less the logarithm of the scale.
    assert scaled.score(X * scales) == pytest.approx(plain.score(X) - np.log(scales).sum(), abs=0.3)
    assert_allclose(scaled.transform(X * scales).std(axis=0), 1, atol=0.3)


@settings(deadline=None, max_examples=60)
@given(st.data())
@pytest.mark.filterwarnings("ignore:.*was fitted on one row")
def test_any_finite_input_gives_finite_results(data):
    n_samples, n_features = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 9))
    dtype, largest = data.draw(st.sampled_from([(np.float32, 1e29), (np.float64, 1e30)]))
    numbers = st.floats(-largest, largest) | st.floats(-10, 10) | st.sampled_from([0.0, 1.0, 1e-30])
    rows = st.lists(numbers, min_size=n_features, max_size=n_features)
    X = np.array(data.draw(st.lists(rows, min_size=n_samples, max_size=n_samples)), dtype=dtype)
    assume(not 0 < np.abs(X).max() < 1e-30)  # refused
    calibrator = NormalizingFlowCalibrator(
        max_epochs=data.draw(st.sampled_from([0, 0.5, 1, 5])),
        batch_size=data.draw(st.integers(1, 64)),
        coupling=data.draw(st.sampled_from(["additive", "affine"])),
        random_state=data.draw(st.integers(0, 5)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        calibrator.fit(X)
    assert np.isfinite(calibrator.transform(X)).all()
    assert np.isfinite(calibrator.score_samples(X)).all()
    assert all(np.isfinite(array).all() for array in calibrator.parameters_.values())


def test_divergence_warns_and_keeps_the_best():
    X = vectors(2000)
    initial = NormalizingFlowCalibrator(max_epochs=0, random_state=0).fit(X).score(X)
    expected = r"updates had no finite loss.* are kept\. Try a learning_rate below 1\.0"
    with pytest.warns(ConvergenceWarning, match=expected):
        calibrator = NormalizingFlowCalibrator(learning_rate=1.0, max_epochs=10, random_state=0).fit(X)
    assert_allclose(calibrator.score(X), initial, atol=1)
    assert np.isfinite(calibrator.transform(X)).all()


def test_the_paper_s_recipe_for_other_text_does_not_warn():
    NormalizingFlowCalibrator(max_epochs=0.15, learning_rate=2e-5, random_state=0).fit(vectors(2000))


@pytest.mark.parametrize("permutation", ["reverse", "random", "lu"])
@pytest.mark.parametrize("coupling", ["additive", "affine"])
def test_variants_learn(coupling, permutation):
    X = vectors(640)
    options = {"coupling": coupling, "permutation": permutation, "random_state": 0}
    before = NormalizingFlowCalibrator(max_epochs=0, **options).fit(X).score(X)
    calibrator = NormalizingFlowCalibrator(max_epochs=5, **options).fit(X)
    assert calibrator.score(X) > before + 1
    assert_sound(calibrator, X)


@pytest.mark.parametrize("flow", ["nice", "realnvp", "maf", "nsf", "gf"])
def test_zuko_flows(flow):
    pytest.importorskip("zuko", reason="an optional dependency")
    X = vectors(640, 5)
    before = NormalizingFlowCalibrator(flow, max_epochs=0, random_state=0).fit(X).score(X)
    calibrator = NormalizingFlowCalibrator(flow, max_epochs=5, random_state=0).fit(X)
    assert calibrator.score(X) > before
    Z = calibrator.transform(X)
    # GF has no closed-form inverse: zuko bisects, to 1e-6 of the latent.
    assert_allclose(calibrator.inverse_transform(Z), X, atol=1e-3)
    assert np.isfinite(calibrator.sample(10, random_state=0)).all()
    loaded = pickle.loads(pickle.dumps(calibrator))
    assert_array_equal(loaded.transform(X), Z)


def test_grid_search_over_density_models():
    pytest.importorskip("zuko", reason="an optional dependency")
    grid = {"flow": ["glow", "nice", shallow_glow], "max_epochs": [0, 3]}
    search = GridSearchCV(NormalizingFlowCalibrator(random_state=0), grid, cv=2).fit(vectors(400, 6))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_["max_epochs"] == 3


@pytest.mark.parametrize(("n_features", "batch_size"), [(1024, 64), (1024, 4096), (769, 1024), (1, 4096)])
def test_wide_vectors_and_large_batches(n_features, batch_size):
    X = 0.3 * np.random.RandomState(0).standard_normal((300, n_features)).astype(np.float32)
    assert_sound(NormalizingFlowCalibrator(batch_size=batch_size, max_epochs=2, random_state=0).fit(X), X)


def shallow_glow(n_features):
    from skflow.flows import Glow

    return Glow(n_features, n_levels=1, n_steps=2)


def test_flow_from_a_callable():
    X = vectors(640)
    calibrator = NormalizingFlowCalibrator(shallow_glow, max_epochs=5, random_state=0).fit(X)
    assert calibrator.score(X) > NormalizingFlowCalibrator(shallow_glow, max_epochs=0, random_state=0).fit(
        X
    ).score(X)
    assert_sound(calibrator, X)
    loaded = pickle.loads(pickle.dumps(calibrator))
    assert_array_equal(loaded.transform(X), calibrator.transform(X))
    assert_array_equal(clone(calibrator).fit(X).transform(X), calibrator.transform(X))


def test_missing_zuko_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "zuko", None)
    with pytest.raises(ImportError, match=r"pip install 'scikit-bertflow\[zuko\]'"):
        NormalizingFlowCalibrator("nsf").fit(vectors())


def test_device_that_is_not_there():
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a cuda device here")
    X = vectors()
    with pytest.raises(ValueError, match="device='cuda' is not available here"):
        NormalizingFlowCalibrator(device="cuda").fit(X)
    with pytest.raises(ValueError, match="device='abacus' is not a device of torch"):
        NormalizingFlowCalibrator(device="abacus").fit(X)
    with pytest.raises(ValueError, match="device='hpu' is not available here"):
        NormalizingFlowCalibrator(device="hpu").fit(X)
    # As if it had been fitted on a machine that has one.
    calibrator = NormalizingFlowCalibrator(random_state=0).fit(X)
    expected = calibrator.transform(X)
    calibrator.set_params(device="cuda")
    with pytest.warns(UserWarning, match="device='cuda' is not available here; the cpu is used"):
        assert_array_equal(calibrator.transform(X), expected)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("flow", "glwo"),
        ("max_epochs", -1),
        ("batch_size", 0),
        ("learning_rate", 0),
        ("coupling", "x"),
        ("n_levels", 0),
        ("strength", 2),
    ],
)
def test_wrong_parameters_are_named(parameter, value):
    with pytest.raises(ValueError, match=f"The '{parameter}' parameter of NormalizingFlowCalibrator must be"):
        NormalizingFlowCalibrator(**{parameter: value}).fit(vectors())


def test_unfitted():
    calibrator = NormalizingFlowCalibrator()
    for call in (
        calibrator.transform,
        calibrator.inverse_transform,
        calibrator.score_samples,
        calibrator.score,
    ):
        with pytest.raises(NotFittedError):
            call(vectors())
    with pytest.raises(NotFittedError):
        calibrator.sample()
    assert not hasattr(calibrator, "flow_")


def test_pickle_names_no_torch_and_loads_without_it():
    X = vectors(dtype=np.float32)
    calibrator = NormalizingFlowCalibrator(random_state=0).fit(X)
    data = pickle.dumps(calibrator)
    looked_up = []

    class Recorder(pickle.Unpickler):
        def find_class(self, module, name):
            looked_up.append(f"{module}.{name}")
            return super().find_class(module, name)

    loaded = Recorder(io.BytesIO(data)).load()
    assert not [name for name in looked_up if "torch" in name]
    assert_array_equal(loaded.transform(X), calibrator.transform(X))
    code = "import pickle, sys; pickle.load(sys.stdin.buffer); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], input=data, check=True)


def test_pickle_is_as_small_as_the_parameters():
    X = vectors(100, 768, np.float32)
    assert len(pickle.dumps(NormalizingFlowCalibrator(random_state=0).fit(X))) < 1.5e6


def test_memory_map_is_neither_copied_nor_written(tmp_path):
    X = vectors(3000, 8, np.float32)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    in_memory = NormalizingFlowCalibrator(random_state=0).fit(X)
    from_file = NormalizingFlowCalibrator(random_state=0).fit(mapped)
    assert_array_equal(from_file.transform(mapped), in_memory.transform(X))


def test_verbose_shows_the_loss(capsys):
    NormalizingFlowCalibrator(verbose=1, random_state=0).fit(vectors())
    assert "bits/dim" in capsys.readouterr().err
    NormalizingFlowCalibrator(random_state=0).fit(vectors())
    assert capsys.readouterr().err == ""


def test_dead_features_stay_dead():
    # The last layer of all-MiniLM-L6-v2 has features with standard deviations of 1e-32 and 2e-9 beside 0.15.
    X = vectors(640)
    X[:, :2] = np.random.RandomState(1).standard_normal((640, 2)) * [1e-32, 2e-9] + [0, 0.01]
    # Before the couplings learn to shift them.
    calibrator = NormalizingFlowCalibrator(max_epochs=0, random_state=0).fit(X)
    assert_array_equal(calibrator.scale_[:2], 1)
    deviations = np.sort(calibrator.transform(X).std(axis=0))
    assert deviations[1] < 1e-6
    assert deviations[2] > 0.5


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.longdouble])
def test_other_dtypes_are_computed_in_float32(dtype):
    X = (np.random.RandomState(0).uniform(size=(100, 5)) > 0.4).astype(dtype)
    calibrator = NormalizingFlowCalibrator(random_state=0).fit(X)
    as_float = X.astype(np.float32)
    expected = NormalizingFlowCalibrator(random_state=0).fit(as_float).transform(as_float)
    assert calibrator.transform(X).dtype == np.float32
    assert_array_equal(calibrator.transform(X), expected)


def test_typical_rows():
    X = vectors(100, 5)
    assert_array_equal(typical_rows(X), X)
    X[7, 2], X[50, 0] = 1e6, -1e5
    assert_array_equal(typical_rows(X), np.delete(X, [7, 50], axis=0))
    nothing_is_typical = np.eye(3) * 1e6
    assert_array_equal(typical_rows(nothing_is_typical), nothing_is_typical)


def test_input_scaling():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((5000, 6)) * [0.1, 50, 1e-5, 1e7, 0, 1] + [1, -20, 0, 0, 3, 1e6]
    offset, scale = input_scaling(X, standardize=False)
    assert_array_equal(offset[:2], 0)
    assert_array_equal(scale[:2], 1)
    # The interquartile range of a Gaussian is 1.349 standard deviations.
    assert_allclose(scale[[2, 3, 5]], [1e-5, 1e7, 1], rtol=0.07)
    assert (offset[4], scale[4]) == (3, 1)
    assert offset[5] == pytest.approx(1e6, abs=0.2)
    offset, scale = input_scaling(X, standardize=True)
    assert_allclose(offset, np.median(X[::5], axis=0))  # quantiles are those of a thousand rows
    assert_allclose(scale, [0.1, 50, 1e-5, 1e7, 1, 1], rtol=0.07)
