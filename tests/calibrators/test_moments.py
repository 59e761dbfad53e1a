"""Running moments, against numpy's own formulas."""

import numpy as np
import pytest

from skflow.calibrators._moments import CHUNK_BYTES, RunningMoments

from .test_base import correlated


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
    @pytest.mark.parametrize("order", [(1e-12, 1.0), (1.0, 1e-12), (1e12, 1e-12), (1e-30, 1e30)])
    def test_pieces_of_different_magnitude(self, full, order):
        X = correlated(20, 3)
        pieces = [X * scale for scale in order]
        one = RunningMoments.empty(3, full=full)
        one.update(np.vstack(pieces))
        two = RunningMoments.empty(3, full=full)
        for piece in pieces:
            two.update(piece)
        np.testing.assert_allclose(one.second, two.second, rtol=1e-10)

    @pytest.mark.parametrize("full", [False, True])
    def test_columns_of_different_magnitude(self, full):
        """Scales by powers of two alter the moments by just these powers."""
        X = correlated(50, 4)
        scale = np.array([2.0**-40, 2.0**40, 1, 2.0**-90])  # 1e-12, 1e12, 1, 1e-27
        plain, scaled = (RunningMoments.empty(4, full=full) for _ in range(2))
        plain.update(X)
        scaled.update(X * scale)
        factor = np.outer(scale, scale) if full else scale**2
        np.testing.assert_allclose(scaled.second, plain.second * factor, rtol=1e-12)
        np.testing.assert_array_equal(scaled.mean, plain.mean * scale)

    @pytest.mark.parametrize("full", [False, True])
    def test_weights_over_decades(self, full):
        """Against numpy's weighted covariance."""
        X = correlated(60, 3)
        weight = 10.0 ** np.random.default_rng(0).uniform(-12, 12, size=60)
        moments = RunningMoments.empty(3, full=full)
        for rows in np.array_split(np.arange(60), 7):
            moments.update(X[rows], weight[rows])
        expected = np.cov(X.T, ddof=0, aweights=weight)
        expected = expected if full else np.diag(expected)
        np.testing.assert_allclose(moments.second, expected, rtol=1e-10, atol=1e-12 * expected.max())

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
    @pytest.mark.parametrize("value", [1e6, 0.1, -1 / 3, 1e-30, 1e30])
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
