"""What the closed-form calibrators share: streaming, weights, dtypes, hostile input, bounded memory."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from skflow.calibrators import NATSVCalibrator, StandardNormalizationCalibrator, WhiteningCalibrator
from skflow.calibrators._moments import CHUNK_BYTES

CALIBRATORS = [
    StandardNormalizationCalibrator(),
    NATSVCalibrator(),
    NATSVCalibrator(n_components=3),
    WhiteningCalibrator(),
    WhiteningCalibrator(n_components=1),
    WhiteningCalibrator(method="zca", strength=0.5),
]
every_calibrator = pytest.mark.parametrize("calibrator", CALIBRATORS, ids=str)


def correlated(n_samples, n_features, seed=0, dtype=np.float64):
    """Rows with standard deviations 1 to 5 along random axes, off the origin."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(n_features, n_features)))[0]
    scales = np.linspace(1, 5, n_features)
    X = rng.normal(size=(n_samples, n_features)) * scales @ axes + 50 * rng.normal(size=n_features)
    return X.astype(dtype)


def fitted_arrays(calibrator):
    return {name: value for name, value in vars(calibrator).items() if isinstance(value, np.ndarray)}


def assert_same_fit(left, right, rtol=1e-10):
    """Compare fitted parameters; the scale of each array is its largest entry."""
    for name in ("mean_", "var_", "scale_", "components_", "explained_variance_", "covariance_"):
        if hasattr(left, name):
            one, two = getattr(left, name), getattr(right, name)
            np.testing.assert_allclose(one, two, rtol=rtol, atol=rtol * np.abs(one).max(initial=0))


@every_calibrator
class TestStreaming:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_partial_fit_equals_fit(self, calibrator, dtype):
        X = correlated(3000, 12, dtype=dtype)
        whole = clone(calibrator).fit(X)
        pieces = clone(calibrator)
        for piece in np.split(X, [1, 2, 40, 41, 1500]):
            assert pieces.partial_fit(piece) is pieces
        assert pieces.n_samples_seen_ == whole.n_samples_seen_ == 3000
        assert_same_fit(whole, pieces)
        tolerance = 1e-10 if dtype is np.float64 else 1e-5
        Z = whole.transform(X)
        np.testing.assert_allclose(Z, pieces.transform(X), rtol=tolerance, atol=tolerance * np.abs(Z).max())

    def test_partial_fit_goes_on_from_fit(self, calibrator):
        X = correlated(200, 5)
        assert_same_fit(clone(calibrator).fit(X), clone(calibrator).fit(X[:90]).partial_fit(X[90:]))

    def test_fit_starts_anew(self, calibrator):
        X = correlated(200, 5)
        again = clone(calibrator).partial_fit(X[:90] * 7).fit(X)
        assert_same_fit(clone(calibrator).fit(X), again, rtol=0)
        assert again.n_samples_seen_ == 200

    def test_failed_partial_fit_changes_nothing(self, calibrator):
        X = correlated(60, 5)
        calibrator = clone(calibrator).partial_fit(X)
        before = calibrator.transform(X)
        bad = X.copy()
        bad[-1, -1] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            calibrator.partial_fit(bad)
        with pytest.raises(ValueError, match="features"):
            calibrator.partial_fit(X[:, :4])
        np.testing.assert_array_equal(calibrator.transform(X), before)
        assert calibrator.n_samples_seen_ == 60

    def test_constant_stays_constant(self, calibrator):
        X = correlated(80, 4)
        X[:, 2] = 1e6
        calibrator = clone(calibrator).set_params(**_few_components(calibrator))
        for piece in np.array_split(X, 7):
            calibrator.partial_fit(piece)
        deviation = np.sqrt(np.diag(calibrator.covariance_)) if hasattr(calibrator, "covariance_") else None
        assert (calibrator.var_ if deviation is None else deviation)[2] == 0

    def test_deterministic(self, calibrator):
        X = correlated(300, 20)
        one, two = clone(calibrator).fit(X), clone(calibrator).fit(np.asfortranarray(X))
        assert_same_fit(one, two, rtol=0)
        np.testing.assert_array_equal(one.transform(X), two.transform(np.asfortranarray(X)))

    def test_chunks_leave_no_seam(self, calibrator):
        n_features = 64
        X = correlated(CHUNK_BYTES // (8 * n_features) + 3, n_features)  # two chunks, the last of three rows
        calibrator = clone(calibrator).fit(X)
        Z = calibrator.transform(X)
        np.testing.assert_allclose(Z[-5:], calibrator.transform(X[-5:]), rtol=1e-9, atol=1e-9)


def _few_components(calibrator):
    return {"n_components": 1} if isinstance(calibrator, NATSVCalibrator) else {}


@every_calibrator
class TestWeights:
    def test_weights_are_repetitions(self, calibrator):
        X = correlated(60, 5)
        weight = np.random.default_rng(1).integers(0, 4, size=60)
        weight[:3] = 0, 2, 0
        weighted = clone(calibrator).fit(X, sample_weight=weight)
        repeated = clone(calibrator).fit(np.repeat(X, weight, axis=0))
        assert_same_fit(repeated, weighted)
        assert weighted.n_samples_seen_ == weight.sum()
        pieces = clone(calibrator).partial_fit(X[:20], sample_weight=weight[:20])
        assert_same_fit(repeated, pieces.partial_fit(X[20:], sample_weight=weight[20:]))

    def test_unit_weights_are_none(self, calibrator):
        X = correlated(60, 5)
        assert_same_fit(clone(calibrator).fit(X), clone(calibrator).fit(X, sample_weight=np.ones(60)), rtol=0)

    def test_scale_of_weights_does_not_matter(self, calibrator):
        X = correlated(60, 5)
        weight = np.random.default_rng(1).uniform(size=60)
        one = clone(calibrator).fit(X, sample_weight=weight)
        assert_same_fit(one, clone(calibrator).fit(X, sample_weight=1e-9 * weight))

    def test_rows_without_weight_leave_no_trace(self, calibrator):
        """Not even through the choice of a shift."""
        X = correlated(60, 5)
        extreme = np.vstack([np.full((1, 5), 1e30), X, np.full((1, 5), -1e30)])
        weight = np.r_[0, np.ones(60), 0]
        assert_same_fit(
            clone(calibrator).fit(X), clone(calibrator).fit(extreme, sample_weight=weight), rtol=1e-13
        )

    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            (np.zeros(10), "(no positive entry|non-zero)"),
            (-np.ones(10), "[Nn]egative"),
            (np.full(10, np.nan), "NaN"),
            (np.ones(9), "sample_weight.shape"),
            (np.ones((10, 2)), "1D"),
            (np.full(10, 1e308), "overflows"),
        ],
    )
    def test_bad_weights(self, calibrator, weight, message):
        with pytest.raises(ValueError, match=message):
            clone(calibrator).fit(correlated(10, 5), sample_weight=weight)


@every_calibrator
class TestInput:
    @pytest.mark.parametrize(
        ("given", "returned"),
        [
            (np.float64, np.float64),
            (np.float32, np.float32),
            (np.float16, np.float32),
            (np.int64, np.float32),
            (np.int8, np.float32),
            (bool, np.float32),
        ],
    )
    def test_dtypes(self, calibrator, given, returned):
        X = np.random.default_rng(0).normal(size=(40, 5)).round(1) * 10
        X = (X > 0) if given is bool else X.astype(given)
        calibrator = clone(calibrator).fit(X)
        Z = calibrator.transform(X)
        assert Z.dtype == returned
        assert Z.flags.c_contiguous
        assert calibrator.mean_.dtype == np.float64
        exact = clone(calibrator).fit(X.astype(np.float64)).transform(X.astype(np.float64))
        np.testing.assert_allclose(Z, exact, rtol=1e-5, atol=2e-5 * np.abs(exact).max())

    def test_list_of_floats_is_float64(self, calibrator):
        X = correlated(10, 3)
        Z = clone(calibrator).fit_transform(X.tolist())
        assert Z.dtype == np.float64

    def test_input_stays_as_it_is(self, calibrator):
        X = correlated(30, 5)
        X.flags.writeable = False
        copy = X.copy()
        Z = clone(calibrator).fit_transform(X)
        assert not np.shares_memory(X, Z)
        np.testing.assert_array_equal(X, copy)

    @pytest.mark.parametrize(
        ("bad", "error", "message"),
        [
            (np.array([[1.0, np.nan]] * 3), ValueError, "contains NaN"),
            (np.array([[1.0, np.inf]] * 3), ValueError, "contains infinity"),
            (np.array([[1.0, np.inf], [1.0, -np.inf]]), ValueError, "contains infinity"),
            (sparse.csr_array(np.eye(3)), TypeError, "[Ss]parse"),
            (np.empty((0, 3)), ValueError, "0 sample"),
            (np.empty((3, 0)), ValueError, "0 feature"),
            (None, ValueError, "(None|2D array)"),
            ([["a", "b"], ["c", "d"]], ValueError, "(convert|numeric|strings)"),
            (np.array([["a", "b"], ["c", "d"]]), ValueError, "(convert|numeric|strings)"),
            (np.array([[1.0, 2e30]] * 3), ValueError, r"largest magnitude in X is 2e\+30.*rescale"),
            (np.array([[0.0, -1e-31]] * 3), ValueError, "largest magnitude in X is 1e-31.*rescale"),
            (np.eye(3) * 1j, ValueError, "[Cc]omplex"),
            (np.arange(3.0), ValueError, "1D array"),
            (np.zeros((2, 2, 2)), ValueError, "dim 3"),
            (7.0, ValueError, "scalar array"),
            ([[1.0, None], [2.0, 3.0]], ValueError, "NaN"),
            ([[1.0, 2.0], [3.0]], ValueError, "(inhomogeneous|sequence)"),
        ],
    )
    def test_hostile(self, calibrator, bad, error, message):
        with pytest.raises(error, match=message):
            clone(calibrator).fit(bad)
        fitted = clone(calibrator).fit(correlated(20, 2)[:, :2])
        with pytest.raises(error, match=message):
            fitted.transform(bad)

    def test_wrong_number_of_features(self, calibrator):
        calibrator = clone(calibrator).fit(correlated(20, 5))
        with pytest.raises(ValueError, match=r"X has 4 features, but .* is expecting 5 features"):
            calibrator.transform(np.ones((3, 4)))
        if hasattr(calibrator, "inverse_transform"):
            n_columns = calibrator.transform(np.ones((1, 5))).shape[1]
            with pytest.raises(ValueError, match=f"X has 7 features, but .* expects {n_columns}"):
                calibrator.inverse_transform(np.ones((3, 7)))
            with pytest.raises(ValueError, match="contains NaN"):
                calibrator.inverse_transform(np.full((3, n_columns), np.nan))

    def test_range_of_what_is_inverted(self, calibrator):
        if not hasattr(calibrator, "inverse_transform"):
            return
        calibrator = clone(calibrator).fit(correlated(20, 2))
        Z = calibrator.transform(np.ones((3, 2)))
        with pytest.raises(ValueError, match="largest magnitude in X is 1e"):
            calibrator.inverse_transform(np.full_like(Z, 1e31))

    def test_failed_fit_leaves_no_trace(self, calibrator):
        pandas = pytest.importorskip("pandas")
        good = pandas.DataFrame(correlated(20, 3), columns=["a", "b", "c"])
        bad = pandas.DataFrame(np.full((4, 2), 1e31), columns=["d", "e"])
        calibrator = clone(calibrator)
        before = dict(vars(calibrator))
        for method in (calibrator.fit, calibrator.partial_fit):
            with pytest.raises(ValueError, match="largest magnitude"):
                method(bad)
            with pytest.raises(ValueError, match=r"[Nn]egative"):
                method(good, sample_weight=-np.ones(20))
            assert vars(calibrator) == before
        calibrator.fit(good)
        before = dict(vars(calibrator))
        for method, X in ((calibrator.fit, bad), (calibrator.partial_fit, good * 1e31)):
            with pytest.raises(ValueError, match="largest magnitude"):
                method(X)
            after = vars(calibrator)
            assert list(after) == list(before)
            assert all(after[name] is value for name, value in before.items())

    def test_interrupted_fit_changes_nothing(self, calibrator, monkeypatch):
        def interrupt(self):
            raise KeyboardInterrupt

        X = correlated(20, 3)
        calibrator, new = clone(calibrator).fit(X), clone(calibrator)
        Z = calibrator.transform(X)
        with monkeypatch.context() as patch:
            patch.setattr(type(calibrator), "_solve", interrupt)
            for method in (calibrator.fit, calibrator.partial_fit, new.fit):
                with pytest.raises(KeyboardInterrupt):
                    method(2 * X)
        np.testing.assert_array_equal(calibrator.transform(X), Z)
        assert not hasattr(new, "n_features_in_")

    def test_overflow_of_all_weights_together(self, calibrator):
        X = correlated(20, 3)
        calibrator = clone(calibrator).fit(X, sample_weight=np.full(20, 5e306))
        with pytest.raises(ValueError, match="sum of sample_weight overflows"):
            calibrator.partial_fit(X, sample_weight=np.full(20, 5e306))
        assert calibrator.n_samples_seen_ == pytest.approx(1e308)

    @pytest.mark.parametrize(("stored", "native"), [(">f8", np.float64), (">f4", np.float32)])
    def test_byte_order(self, calibrator, stored, native):
        """Big-endian files: what native numbers give, bit for bit."""
        X = correlated(40, 5, dtype=native)
        plain, swapped = clone(calibrator).fit(X), clone(calibrator).fit(X.astype(stored))
        Z = swapped.transform(X.astype(stored))
        assert Z.dtype == native
        assert Z.dtype.isnative
        assert_same_fit(plain, swapped, rtol=0)
        np.testing.assert_array_equal(Z, plain.transform(X))
        if hasattr(calibrator, "inverse_transform"):
            back = swapped.inverse_transform(Z.astype(stored))
            assert back.dtype == native
            np.testing.assert_array_equal(back, plain.inverse_transform(Z))

    def test_tensors(self, calibrator):
        torch = pytest.importorskip("torch")
        X = torch.from_numpy(correlated(20, 3, dtype=np.float32)).bfloat16()
        exact = X.float().numpy()
        expected = clone(calibrator).fit_transform(exact)
        assert expected.dtype == np.float32
        for rows in (X, X.clone().requires_grad_(), list(X), tuple(X.float()), X.float().requires_grad_()):
            fitted = clone(calibrator).fit(rows)
            np.testing.assert_array_equal(fitted.transform(rows), expected)
            if hasattr(fitted, "inverse_transform"):
                back = fitted.inverse_transform(torch.from_numpy(expected).requires_grad_())
                np.testing.assert_array_equal(back, fitted.inverse_transform(expected))

    def test_bfloat16_arrays(self, calibrator):
        ml_dtypes = pytest.importorskip("ml_dtypes")
        X = correlated(20, 3).astype(ml_dtypes.bfloat16)
        expected = clone(calibrator).fit_transform(X.astype(np.float32))
        for rows in (X, list(X)):
            np.testing.assert_array_equal(clone(calibrator).fit_transform(rows), expected)

    def test_not_fitted(self, calibrator):
        calibrator = clone(calibrator)
        for method in ("transform", "inverse_transform", "get_feature_names_out"):
            if hasattr(calibrator, method):
                arguments = () if method == "get_feature_names_out" else (np.ones((2, 2)),)
                with pytest.raises(NotFittedError):
                    getattr(calibrator, method)(*arguments)
        assert not hasattr(calibrator, "covariance_")

    def test_pandas(self, calibrator):
        pandas = pytest.importorskip("pandas")
        X = pandas.DataFrame(correlated(20, 3), columns=["a", "b", "c"])
        calibrator = clone(calibrator).set_output(transform="pandas")
        Z = calibrator.fit_transform(X)
        assert list(calibrator.feature_names_in_) == ["a", "b", "c"]
        assert list(Z.columns) == list(calibrator.get_feature_names_out())
        assert list(Z.index) == list(X.index)
        np.testing.assert_array_equal(Z, clone(calibrator).set_output(transform="default").fit_transform(X))
        with pytest.raises(ValueError, match="feature names"):
            calibrator.transform(X[["b", "a", "c"]])

    def test_polars(self, calibrator):
        polars = pytest.importorskip("polars")
        X = polars.DataFrame(correlated(20, 3), schema=["a", "b", "c"])
        Z = clone(calibrator).set_output(transform="polars").fit_transform(X)
        assert isinstance(Z, polars.DataFrame)
        assert Z.columns == list(clone(calibrator).fit(X).get_feature_names_out())

    def test_feature_names_out(self, calibrator):
        calibrator = clone(calibrator).fit(correlated(20, 3))
        names = calibrator.get_feature_names_out()
        assert len(names) == calibrator.transform(np.ones((1, 3))).shape[1]
        if isinstance(calibrator, WhiteningCalibrator) and calibrator.method == "pca":
            assert names[0] == "whiteningcalibrator0"
        else:
            assert list(names) == ["x0", "x1", "x2"]


finite_matrices = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=8),
    elements=st.floats(-1e30, 1e30) | st.floats(-1, 1) | st.sampled_from([0.0, 1e-320, 1e-12, 1e12, 1e6]),
)


class TestAlwaysFinite:
    @settings(deadline=None, max_examples=60)
    @given(X=finite_matrices, index=st.integers(0, len(CALIBRATORS) - 1))
    @pytest.mark.filterwarnings("ignore:.*was fitted on one row")
    def test_property(self, X, index):
        calibrator = clone(CALIBRATORS[index])
        if 0 < np.abs(X).max() < 1e-30:
            with pytest.raises(ValueError, match="largest magnitude"):
                calibrator.fit(X)
            return
        calibrator.fit(X)
        assert all(np.isfinite(array).all() for array in fitted_arrays(calibrator).values())
        assert np.isfinite(calibrator.transform(X)).all()

    @every_calibrator
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize(
        "X",
        [
            correlated(1, 4),
            correlated(2, 4),
            correlated(50, 1),
            correlated(1, 1),
            correlated(5, 40),
            np.repeat(correlated(3, 6), 7, axis=0),
            np.full((6, 4), 1e6),
            np.zeros((6, 4)),
            correlated(50, 2) @ correlated(2, 9, seed=1),
            correlated(50, 6) * [1e-12, 1e12, 1, 1e6, 1e-6, 1],
            np.column_stack([correlated(50, 3), np.full(50, 1e6), np.zeros(50)]),
            np.vstack([correlated(50, 3), np.full((1, 3), 1e6)]),
        ],
        ids=lambda X: "x".join(map(str, X.shape)),
    )
    @pytest.mark.filterwarnings("ignore:.*was fitted on one row")
    def test_degenerate(self, calibrator, dtype, X):
        X = X.astype(dtype)
        calibrator = clone(calibrator)
        if isinstance(calibrator, WhiteningCalibrator) and calibrator.n_components is not None:
            calibrator.n_components = min(calibrator.n_components, X.shape[1])
        Z = calibrator.fit_transform(X)
        assert np.isfinite(Z).all()
        assert all(np.isfinite(array).all() for array in fitted_arrays(calibrator).values())
        assert np.isfinite(calibrator.transform(X + 1)).all()
        if hasattr(calibrator, "inverse_transform"):
            assert np.isfinite(calibrator.inverse_transform(Z)).all()
        # Rows have their mean taken off, so what is left sums to nothing beside its size.
        np.testing.assert_allclose(Z.mean(axis=0, dtype=np.float64), 0, atol=1e-3 * max(1, np.abs(Z).max()))

    @every_calibrator
    @pytest.mark.parametrize(
        ("dtype", "scale"),
        [
            (np.float64, 1e28),
            (np.float64, 1e-30),
            (np.float32, 1e28),
            (np.float32, 1e-30),
        ],
    )
    def test_ends_of_the_range(self, calibrator, dtype, scale):
        """Up to the scale, the result is that of ordinary numbers."""
        X = correlated(50, 5).astype(dtype)
        fitted = clone(calibrator).fit(X)
        plain = fitted.transform(X).astype(np.float64)
        scaled = clone(calibrator).fit(X * dtype(scale)).transform(X * dtype(scale)).astype(np.float64)
        if isinstance(calibrator, WhiteningCalibrator):
            plain = plain * float(scale) ** (1 - fitted.strength_)
        elif isinstance(calibrator, NATSVCalibrator):
            plain = plain * float(scale)
        np.testing.assert_allclose(scaled, plain, rtol=1e-4, atol=1e-5 * np.abs(plain).max())


@every_calibrator
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int16])
@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_map_is_not_copied(calibrator, dtype, order, tmp_path):
    """The rows that fit and transform take are views of the map, whatever its dtype and layout."""
    X = correlated(100, 5).astype(dtype)
    mapped = np.memmap(tmp_path / "rows", dtype=dtype, mode="w+", shape=X.shape, order=order)
    mapped[:] = X
    mapped.flush()
    mapped = np.memmap(tmp_path / "rows", dtype=dtype, mode="r", shape=X.shape, order=order)
    calibrator = clone(calibrator).fit(mapped)
    assert np.shares_memory(calibrator._validate_rows(mapped, reset=False), mapped)
    assert_same_fit(clone(calibrator).fit(X), calibrator, rtol=0)
    Z = calibrator.transform(mapped)
    assert type(Z) is np.ndarray
    np.testing.assert_array_equal(Z, calibrator.transform(X))


def test_standard_scaler_agrees_on_weights():
    X = correlated(50, 4)
    weight = np.random.default_rng(0).uniform(size=50)
    ours = StandardNormalizationCalibrator().fit(X, sample_weight=weight)
    theirs = StandardScaler().fit(X, sample_weight=weight)
    np.testing.assert_allclose(ours.var_, theirs.var_, rtol=1e-12)
    np.testing.assert_allclose(ours.n_samples_seen_, theirs.n_samples_seen_)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(
    "name", ["StandardNormalizationCalibrator", "NATSVCalibrator", "WhiteningCalibrator"]
)
def test_fit_on_three_gigabytes(name, tmp_path):
    """1,000,000 x 768 float32 on disk: fit adds less than 500 MB of anonymous memory."""
    script = f"""
    import threading, time
    import numpy as np
    from skflow.calibrators import {name}

    def anonymous():
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1024

    block = np.random.default_rng(0).normal(size=(10_000, 768)).astype(np.float32)
    X = np.memmap({str(tmp_path / "rows")!r}, dtype=np.float32, mode="w+", shape=(1_000_000, 768))
    for start in range(0, len(X), len(block)):
        X[start : start + len(block)] = block + start / len(X)
    X.flush()
    X = np.memmap({str(tmp_path / "rows")!r}, dtype=np.float32, mode="r", shape=X.shape)
    starts = np.arange(0, len(X), len(block)) / len(X)
    expected = block.mean(axis=0, dtype=np.float64) + starts.mean()
    {name}().fit(block[:10])  # what is imported and allocated once
    del block
    before, peak, done = anonymous(), [0], threading.Event()

    def watch():
        while not done.wait(0.01):
            peak[0] = max(peak[0], anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    calibrator = {name}().fit(X)
    seconds = time.perf_counter() - start
    done.set()
    watcher.join()
    assert np.allclose(calibrator.mean_, expected, atol=1e-6), "wrong mean"
    print(peak[0] - before, seconds)
    """
    output = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], check=True, capture_output=True, text=True
    ).stdout
    added, seconds = map(float, output.split())
    print(f"{name}: {added:.0f} MB of anonymous memory, {seconds:.0f} s")
    assert added < 500


@every_calibrator
def test_one_row(calibrator):
    """Nothing can be learned of a scale; a second row is enough for silence (warnings are errors here)."""
    with pytest.warns(UserWarning, match="was fitted on one row"):
        clone(calibrator).fit([[1.0, 2.0, 3.0]])
    clone(calibrator).fit([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0]])


@every_calibrator
def test_link_to_the_documentation(calibrator):
    """The page that autosummary generates for the public path of the class."""
    page = f"/en/latest/generated/skflow.calibrators.{type(calibrator).__name__}.html"
    assert calibrator._get_doc_link().endswith(page)
