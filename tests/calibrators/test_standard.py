import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from skflow.calibrators import StandardNormalizationCalibrator


@pytest.fixture(name="X")
def fixture_x():
    rng = np.random.default_rng(0)
    return rng.normal(size=(400, 7)) * np.logspace(-12, 12, 7) + rng.normal(size=7)


class TestValues:
    def test_by_hand(self):
        """Mean 2 and 20, population deviations 1 and 10."""
        calibrator = StandardNormalizationCalibrator().fit([[1.0, 10.0], [3.0, 30.0]])
        np.testing.assert_array_equal(calibrator.mean_, [2, 20])
        np.testing.assert_array_equal(calibrator.var_, [1, 100])
        np.testing.assert_array_equal(calibrator.scale_, [1, 10])
        np.testing.assert_array_equal(calibrator.transform([[4.0, 0.0]]), [[2, -2]])

    def test_numpy(self, X):
        calibrator = StandardNormalizationCalibrator().fit(X)
        # The smallest scale, 1e-12, is next to what float64 resolves around these means.
        np.testing.assert_allclose(
            calibrator.transform(X), (X - X.mean(axis=0)) / X.std(axis=0), rtol=1e-9, atol=1e-3
        )
        np.testing.assert_allclose(calibrator.scale_[1:], X.std(axis=0)[1:], rtol=1e-9)

    def test_standard_scaler(self, X):
        X = X[:, 2:]
        np.testing.assert_allclose(
            StandardNormalizationCalibrator().fit_transform(X), StandardScaler().fit_transform(X), rtol=1e-9
        )

    def test_unit_variance(self, X):
        Z = StandardNormalizationCalibrator().fit_transform(X)
        np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-3)
        np.testing.assert_allclose(Z.std(axis=0), 1, rtol=1e-9)

    def test_float32_far_from_the_origin(self):
        """A mean that float32 cannot hold is still taken off in full: the result has none."""
        X = (1e6 + np.random.default_rng(0).normal(size=(1000, 3))).astype(np.float32)
        Z = StandardNormalizationCalibrator().fit_transform(X)
        np.testing.assert_allclose(Z.mean(axis=0, dtype=np.float64), 0, atol=1e-6)
        np.testing.assert_allclose(Z.std(axis=0, dtype=np.float64), 1, rtol=1e-5)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_inverse(self, X, dtype):
        X = X.astype(dtype)
        calibrator = StandardNormalizationCalibrator().fit(X)
        back = calibrator.inverse_transform(calibrator.transform(X))
        assert back.dtype == dtype
        # What is taken off and put back can be no more exact than the rounding of its largest part.
        atol = 4 * np.finfo(dtype).eps * np.abs(X).max(axis=0)
        assert (np.abs(back.astype(np.float64) - X) <= atol).all()


class TestConstantFeatures:
    @pytest.mark.parametrize("value", [0, 1e6, 0.1, -3e-30])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_becomes_zero(self, value, dtype):
        X = np.random.default_rng(0).normal(size=(1000, 3)).astype(dtype)
        X[:, 1] = value
        calibrator = StandardNormalizationCalibrator().fit(X)
        assert calibrator.scale_[1] == 1
        assert calibrator.var_[1] == 0
        Z = calibrator.transform(X)
        # float32 rounds the mean again on its way back, so a float64 result only is exact.
        np.testing.assert_allclose(Z[:, 1], 0, atol=0 if dtype is np.float64 else 1e-7)
        np.testing.assert_allclose(calibrator.inverse_transform(Z), X, atol=1e-6)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_rounding_noise_is_no_signal(self, dtype):
        """A feature that flips between two neighboring floats is constant as far as its dtype can tell."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(1000, 2)).astype(dtype)
        X[:, 1] = np.where(rng.uniform(size=1000) < 0.5, dtype(1e6), np.nextafter(dtype(1e6), dtype(2e6)))
        calibrator = StandardNormalizationCalibrator().fit(X)
        assert calibrator.scale_[1] == 1
        assert np.abs(calibrator.transform(X)[:, 1]).max() < 0.1

    def test_tiny_variation_is_signal(self):
        """1e-12 around 0.001 is a thousand times what float64 resolves there."""
        X = 1e-3 + 1e-12 * np.random.default_rng(0).normal(size=(1000, 1))
        Z = StandardNormalizationCalibrator().fit_transform(X)
        np.testing.assert_allclose(Z.std(), 1, rtol=1e-9)

    def test_precision_of_the_coarsest_piece_counts(self):
        step = float(np.finfo(np.float32).eps) / 4
        fine = np.array([[1.0], [1.0 + step]])
        assert StandardNormalizationCalibrator().fit(fine).var_[0] > 0
        mixed = StandardNormalizationCalibrator().partial_fit(fine.astype(np.float32)).partial_fit(fine)
        assert mixed.var_[0] == 0
