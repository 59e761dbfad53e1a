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
from skflow.calibrators._moments import CHUNK_BYTES, RunningMoments

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


class TestMoments:
    """Against numpy's own two-pass formulas."""

    @pytest.mark.parametrize("full", [False, True])
    @pytest.mark.parametrize("shift", [0, 1e8])
    def test_equal_numpy(self, full, shift):
        X = correlated(2 * CHUNK_BYTES // (8 * 40) + 17, 40) + shift  # three chunks
        moments = RunningMoments.empty(40, full=full)
        moments.update(X)
        X = X - shift  # exact here, and spares numpy the rounding errors that it makes far off the origin
        expected = np.cov(X.T, ddof=0) if full else X.var(axis=0)
        np.testing.assert_allclose(moments.second, expected, rtol=1e-12, atol=1e-12 * expected.max())
        np.testing.assert_allclose(moments.mean, X.mean(axis=0) + shift, rtol=1e-13)
        assert moments.n_samples == len(X)

    @pytest.mark.parametrize("full", [False, True])
    @pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e305])
    def test_squares_out_of_range(self, full, scale):
        """The moments of scaled rows are scaled moments, kept in units that do not overflow."""
        X = correlated(30, 4)
        scaled = RunningMoments.empty(4, full=full)
        scaled.update(X * scale)
        plain = RunningMoments.empty(4, full=full)
        plain.update(np.ldexp(X * scale, -np.frexp(scale)[1]))
        power = scaled.exponent - np.frexp(scale)[1]
        np.testing.assert_allclose(np.ldexp(scaled.second, 2 * power), plain.second, rtol=1e-10, atol=1e-10)

    def test_differences_out_of_range(self):
        """Rows farther apart than the largest float64: population deviation of +-a is a."""
        largest = np.finfo(np.float64).max
        moments = RunningMoments.empty(1, full=False)
        moments.update(np.array([[largest], [-largest]]))
        assert moments.mean[0] == 0
        np.testing.assert_allclose(np.ldexp(np.sqrt(moments.second), moments.exponent - 4), largest / 16)

    @pytest.mark.parametrize("order", [(1e-200, 1.0), (1.0, 1e-200), (1e200, 1e-200), (1e-200, 1e200)])
    def test_pieces_of_different_magnitude(self, order):
        X = correlated(20, 3)
        pieces = [X * scale for scale in order]
        one = RunningMoments.empty(3, full=True)
        one.update(np.vstack(pieces))
        two = RunningMoments.empty(3, full=True)
        for piece in pieces:
            two.update(piece)
        assert one.exponent == two.exponent
        np.testing.assert_allclose(one.second, two.second, rtol=1e-10)

    @pytest.mark.parametrize("full", [False, True])
    def test_far_off_the_origin(self, full):
        """Sorted pieces whose means differ by whole deviations, at 1e10 of them from the origin."""
        X = np.sort(correlated(900, 3) % 8, axis=0).round(3)
        far = X + 2.0**33
        X = far - 2.0**33  # exactly what is left of it
        moments = RunningMoments.empty(3, full=full)
        for piece in np.array_split(far, 9):
            moments.update(piece)
        expected = np.cov(X.T, ddof=0) if full else X.var(axis=0)
        np.testing.assert_allclose(moments.second, expected, rtol=1e-12)

    @pytest.mark.parametrize("full", [False, True])
    @pytest.mark.parametrize("value", [1e6, 0.1, -1 / 3, 1e-30, 1e300])
    def test_constant_has_no_variance(self, full, value):
        """Exactly none, over several chunks and updates: numpy's own var gives rounding noise here."""
        moments = RunningMoments.empty(2, full=full)
        for n_samples in (1, 7, CHUNK_BYTES // 8):
            moments.update(np.full((n_samples, 2), value))
        assert not moments.second.any()
        np.testing.assert_array_equal(moments.mean, value)

    def test_failed_update_changes_nothing(self):
        X = correlated(20, 3)
        moments = RunningMoments.empty(3, full=True)
        moments.update(X)
        mean, second = moments.mean, moments.second
        copies = mean.copy(), second.copy()
        moments.update(X + 1)
        assert moments.second is not second
        np.testing.assert_array_equal(mean, copies[0])
        np.testing.assert_array_equal(second, copies[1])


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
        """Not even through the choice of a shift, or as an overflow."""
        X = correlated(60, 5)
        extreme = np.vstack([np.full((1, 5), 1e300), X, np.full((1, 5), -1e300)])
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

    def test_not_fitted(self, calibrator):
        calibrator = clone(calibrator)
        for method in ("transform", "inverse_transform", "get_feature_names_out"):
            if hasattr(calibrator, method):
                arguments = () if method == "get_feature_names_out" else (np.ones((2, 2)),)
                with pytest.raises(NotFittedError):
                    getattr(calibrator, method)(*arguments)
        if not isinstance(calibrator, StandardNormalizationCalibrator):
            with pytest.raises(NotFittedError):
                calibrator.covariance_  # noqa: B018

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
    elements=st.floats(-1e150, 1e150) | st.floats(-1, 1) | st.sampled_from([0.0, 1e-320, 1e-12, 1e12, 1e6]),
)


class TestAlwaysFinite:
    @settings(deadline=None, max_examples=60)
    @given(X=finite_matrices, index=st.integers(0, len(CALIBRATORS) - 1))
    def test_property(self, X, index):
        calibrator = clone(CALIBRATORS[index]).fit(X)
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
            (np.float64, 1e200),
            (np.float64, 1e-200),
            (np.float64, 1e300),
            (np.float32, 1e30),
            (np.float32, 1e-30),
        ],
    )
    def test_squares_out_of_range(self, calibrator, dtype, scale):
        """Up to the scale, the result is that of ordinary numbers."""
        X = correlated(50, 5).astype(dtype)
        plain = clone(calibrator).fit(X).transform(X).astype(np.float64)
        scaled = clone(calibrator).fit(X * dtype(scale)).transform(X * dtype(scale)).astype(np.float64)
        if isinstance(calibrator, WhiteningCalibrator):
            plain = plain * float(scale) ** (1 - calibrator.strength)
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
