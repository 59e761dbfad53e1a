import numpy as np
import pytest

from skflow.calibrators import NATSVCalibrator


@pytest.fixture(name="X")
def fixture_x():
    rng = np.random.default_rng(0)
    return rng.normal(size=(300, 12)) * np.arange(12, 0, -1) @ rng.normal(size=(12, 12)) + 5


class TestValues:
    def test_by_hand(self):
        """All but the top: the cross of a long and a short bar loses the long one."""
        X = np.array([[9.0, 1.0], [1.0, 1.0], [5.0, 2.0], [5.0, 0.0]])
        calibrator = NATSVCalibrator().fit(X)
        np.testing.assert_allclose(calibrator.components_, [[1, 0]], atol=1e-15)
        np.testing.assert_allclose(calibrator.singular_values_, [np.sqrt(32)])
        np.testing.assert_allclose(calibrator.explained_variance_ratio_, [32 / 34])
        np.testing.assert_allclose(calibrator.transform(X), [[0, 0], [0, 0], [0, 1], [0, -1]], atol=1e-15)

    @pytest.mark.parametrize("n_components", [1, 3, 11])
    def test_numpy(self, X, n_components):
        """Against the singular value decomposition of the centered rows."""
        centered = X - X.mean(axis=0)
        _, singular_values, right = np.linalg.svd(centered, full_matrices=False)
        top = right[:n_components]
        calibrator = NATSVCalibrator(n_components).fit(X)
        np.testing.assert_allclose(calibrator.transform(X), centered - centered @ top.T @ top, atol=1e-10)
        np.testing.assert_allclose(calibrator.singular_values_, singular_values[:n_components])
        np.testing.assert_allclose(np.abs(np.sum(calibrator.components_ * top, axis=1)), 1)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_orthogonal_to_what_it_removed(self, X, dtype):
        """To the precision of the output, even where it is a millionth of what was removed."""
        X = X.astype(dtype)
        X[:, 0] *= 1e7
        calibrator = NATSVCalibrator(n_components=1).fit(X)
        Z = calibrator.transform(X)
        assert np.abs(Z).max() < 1e-5 * np.abs(X).max()
        # 50 epsilon of the size of a row: what summing twelve rounded products may cost
        bound = 50 * np.finfo(dtype).eps * np.linalg.norm(Z, axis=1).max()
        assert np.abs(Z @ calibrator.components_.T).max() < bound

    def test_real_vectors(self, embeddings):
        for X in embeddings:
            calibrator = NATSVCalibrator(n_components=4).fit(X)
            Z = calibrator.transform(X)
            assert np.abs(Z @ calibrator.components_.T).max() < 1e-5 * np.abs(Z).max()

    def test_none_removed(self, X):
        calibrator = NATSVCalibrator(n_components=0).fit(X)
        assert calibrator.components_.shape == (0, 12)
        np.testing.assert_allclose(calibrator.transform(X), X - X.mean(axis=0), atol=1e-12)


class TestComponents:
    def test_signs(self, X):
        """The entry of largest magnitude is positive, whatever the sign of the data."""
        for rows in (X, -X):
            components = NATSVCalibrator(n_components=5).fit(rows).components_
            assert (components[np.arange(5), np.abs(components).argmax(axis=1)] > 0).all()
            np.testing.assert_allclose(components @ components.T, np.eye(5), atol=1e-13)

    @pytest.mark.parametrize("n_components", [2, 3, 9, 1000])
    def test_more_than_the_rank(self, n_components):
        """Rows of a plane: there are two directions to remove, and then nothing is left."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 9)) + 3
        calibrator = NATSVCalibrator(n_components).fit(X)
        assert calibrator.n_components_ == 2
        assert calibrator.components_.shape == (2, 9)
        np.testing.assert_allclose(calibrator.transform(X), 0, atol=1e-13)
        outside = calibrator.transform(X[:1] + rng.normal(size=9))
        assert np.abs(outside).max() > 0.1

    def test_constant_rows(self):
        calibrator = NATSVCalibrator(n_components=3).fit(np.full((5, 4), 0.1))
        assert calibrator.n_components_ == 0
        np.testing.assert_array_equal(calibrator.transform(np.full((2, 4), 0.1)), 0)

    def test_rank_may_grow(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(40, 6))
        calibrator = NATSVCalibrator(n_components=3).partial_fit(X[:2])
        assert calibrator.n_components_ == 1
        assert calibrator.partial_fit(X[2:]).n_components_ == 3


@pytest.mark.parametrize(("n_features", "expected"), [(2, 1), (149, 1), (151, 2), (300, 3), (384, 4)])
def test_auto_removes_a_hundredth(n_features, expected):
    """Mu and Viswanath (2018): d / 100, 3 for their vectors of 300."""
    X = np.random.default_rng(0).normal(size=(400, n_features))
    assert NATSVCalibrator(n_components="auto").fit(X).n_components_ == expected


@pytest.mark.parametrize("n_components", [-1, 1.5, "all", None])
def test_bad_n_components(X, n_components):
    with pytest.raises(ValueError, match="'n_components' parameter of NATSVCalibrator"):
        NATSVCalibrator(n_components=n_components).fit(X)


def test_there_is_no_inverse():
    assert not hasattr(NATSVCalibrator(), "inverse_transform")
