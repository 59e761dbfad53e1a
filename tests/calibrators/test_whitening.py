import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.covariance import LedoitWolf
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import cosine_similarity

from skflow.calibrators import WhiteningCalibrator
from skflow.calibrators._whitening import is_float32_enough


@pytest.fixture(name="X")
def fixture_x():
    rng = np.random.default_rng(0)
    return rng.normal(size=(300, 12)) * np.arange(12, 0, -1) @ rng.normal(size=(12, 12)) + 5


def covariance(Z):
    return np.cov(Z.T.astype(np.float64), ddof=0)


class TestValues:
    def test_by_hand(self):
        """The cross of a long and a short bar: variances 8 and 1/2 along the axes."""
        X = np.array([[9.0, 1.0], [1.0, 1.0], [5.0, 2.0], [5.0, 0.0]])
        calibrator = WhiteningCalibrator(strength=1.0).fit(X)
        np.testing.assert_allclose(calibrator.explained_variance_, [8, 0.5])
        np.testing.assert_allclose(calibrator.explained_variance_ratio_, [8 / 8.5, 0.5 / 8.5])
        np.testing.assert_allclose(calibrator.components_, np.eye(2), atol=1e-15)
        root = np.sqrt(2)
        expected = [[root, 0], [-root, 0], [0, root], [0, -root]]
        np.testing.assert_allclose(calibrator.transform(X), expected, atol=1e-15)

    @pytest.mark.parametrize("strength", [0, 0.25, 1])
    def test_numpy(self, X, strength):
        """A few lines by another road: singular values of the centered rows instead of a covariance."""
        centered = X - X.mean(axis=0)
        _, singular_values, right = np.linalg.svd(centered, full_matrices=False)
        gains = (singular_values / np.sqrt(len(X))) ** -strength
        zca = centered @ right.T * gains @ right
        Z = WhiteningCalibrator(method="zca", strength=strength).fit_transform(X)
        np.testing.assert_allclose(Z, zca, atol=1e-9)
        pca = np.abs(centered @ right.T * gains)  # up to the signs of the axes
        np.testing.assert_allclose(
            np.abs(WhiteningCalibrator(strength=strength).fit_transform(X)), pca, atol=1e-9
        )

    def test_scikit_learn(self, X):
        """PCA whitens by the sample covariance: a factor of sqrt(n / (n - 1)), up to signs."""
        theirs = PCA(whiten=True, svd_solver="full").fit_transform(X) * np.sqrt(300 / 299)
        np.testing.assert_allclose(
            np.abs(WhiteningCalibrator(strength=1.0).fit_transform(X)), np.abs(theirs), rtol=1e-8
        )

    @pytest.mark.parametrize("method", ["pca", "zca"])
    @pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-10), (np.float32, 1e-4)])
    def test_identity_covariance(self, X, method, dtype, atol):
        Z = WhiteningCalibrator(method=method, strength=1.0).fit_transform(X.astype(dtype))
        np.testing.assert_allclose(covariance(Z), np.eye(12), atol=atol)
        np.testing.assert_allclose(Z.mean(axis=0, dtype=np.float64), 0, atol=atol)

    def test_real_vectors(self, embeddings):
        """The lower layers have one direction without signal, the last has two constant features."""
        for X, dead in zip(embeddings, [1, 1, 2], strict=True):
            for method in ("pca", "zca"):
                calibrator = WhiteningCalibrator(method=method, strength=1.0).fit(X)
                assert X.shape[1] - calibrator.rank_ >= dead
                eigenvalues = np.linalg.eigvalsh(covariance(calibrator.transform(X)))
                np.testing.assert_allclose(eigenvalues[-calibrator.rank_ :], 1, atol=1e-4)
                np.testing.assert_allclose(eigenvalues[: -calibrator.rank_], 0, atol=1e-9)

    def test_badly_conditioned_float32(self):
        """Standard deviations over a factor of 30,000: products in float32 alone would be off by percents."""
        rng = np.random.default_rng(0)
        axes = np.linalg.qr(rng.normal(size=(20, 20)))[0]
        X = (rng.normal(size=(500, 20)) * np.logspace(0, 4.5, 20) @ axes).astype(np.float32)
        Z = WhiteningCalibrator(method="zca", strength=1.0).fit_transform(X)
        assert Z.dtype == np.float32
        np.testing.assert_allclose(covariance(Z), np.eye(20), atol=1e-5)

    @pytest.mark.parametrize("strength", [0, 0.3, 1])
    def test_methods_differ_by_a_rotation(self, X, strength):
        pca = WhiteningCalibrator(strength=strength).fit_transform(X)
        zca = WhiteningCalibrator(method="zca", strength=strength).fit_transform(X)
        np.testing.assert_allclose(cosine_similarity(pca), cosine_similarity(zca), atol=1e-9)

    def test_zca_moves_least(self, X):
        """Kessy et al. (2018): of all whitenings, ZCA keeps closest to the centered rows."""
        centered = X - X.mean(axis=0)
        zca = WhiteningCalibrator(method="zca", strength=1.0).fit_transform(X)
        rng = np.random.default_rng(0)
        for _ in range(5):
            rotation = np.linalg.qr(rng.normal(size=(12, 12)))[0]
            assert np.linalg.norm(zca - centered) < np.linalg.norm(zca @ rotation - centered)


class TestStrength:
    def test_zero_only_centres(self, X):
        Z = WhiteningCalibrator(method="zca", strength=0).fit_transform(X)
        np.testing.assert_allclose(Z, X - X.mean(axis=0), atol=1e-11)
        rotated = WhiteningCalibrator(strength=0).fit_transform(X)
        np.testing.assert_allclose(cosine_similarity(rotated), cosine_similarity(Z), atol=1e-11)

    @settings(deadline=None, max_examples=25)
    @given(strength=st.floats(0, 1))
    def test_eigenvalues(self, strength):
        """The variance along an axis goes from v to v**(1 - strength)."""
        variances = np.array([100.0, 1.0, 0.01])
        X = np.vstack([np.diag(np.sqrt(3 * variances)), -np.diag(np.sqrt(3 * variances))])
        calibrator = WhiteningCalibrator(strength=strength).fit(X)
        np.testing.assert_allclose(
            covariance(calibrator.transform(X)), np.diag(variances ** (1 - strength)), atol=1e-12
        )

    def test_needs_no_new_fit(self, X):
        calibrator = WhiteningCalibrator(method="zca", strength=1.0).fit(X).set_params(strength=0.5)
        expected = WhiteningCalibrator(method="zca", strength=0.5).fit_transform(X)
        np.testing.assert_array_equal(calibrator.transform(X), expected)


class TestAutomaticStrength:
    def test_by_hand(self):
        """Variances 8 and 1/2; mean (5, 1), of which 5 / sqrt(26) is in the first feature."""
        X = np.array([[9.0, 1.0], [1.0, 1.0], [5.0, 2.0], [5.0, 0.0]])
        calibrator = WhiteningCalibrator(strength="auto").fit(X)
        expected = np.cbrt(5 / np.sqrt(26)) * (1 - 8.5 / 34.5 * 64.25 / 264.75)
        assert calibrator.strength_ == pytest.approx(expected, abs=1e-14)
        expected = WhiteningCalibrator(strength=calibrator.strength_).fit_transform(X)
        np.testing.assert_array_equal(calibrator.transform(X), expected)

    def test_shares_of_dot_products(self):
        """The two fractions, measured on dot products themselves."""
        rng = np.random.default_rng(0)
        X, Y = rng.normal(size=(2, 20_000, 4)) * [3, 2, 1, 1] + [1, 1, 2, 0]
        mean = np.concatenate([X, Y]).mean(axis=0)
        level = 1 - (X * Y).sum(axis=1).mean() / (np.vstack([X, Y]) ** 2).sum(axis=1).mean()
        specific = ((X - mean) * (Y - mean)).sum(axis=1).var() / (X * (Y - mean)).sum(axis=1).var()
        strength = WhiteningCalibrator(strength="auto").fit(np.vstack([X, Y])).strength_
        concentration = np.cbrt(np.abs(mean).max() / np.linalg.norm(mean))
        assert strength == pytest.approx(concentration * (1 - level * specific), abs=0.02)

    @pytest.mark.parametrize("scale", [1e-29, 1e-3, 1e3, 1e28])
    def test_scale_and_order_of_features_do_not_matter(self, X, scale):
        expected = WhiteningCalibrator(strength="auto").fit(X).strength_
        assert 0 < expected < 1
        altered = -scale * X[:, np.random.default_rng(0).permutation(12)]
        assert WhiteningCalibrator(strength="auto").fit(altered).strength_ == pytest.approx(expected)

    def test_a_mean_of_few_features_asks_for_more(self):
        """A mean of one length, in one feature of 64 or in all: max / norm is 1 or 1 / 8, its root 1 / 2."""
        X = np.random.default_rng(0).normal(size=(5000, 64))
        X -= X.mean(axis=0)
        rogue = WhiteningCalibrator(strength="auto").fit(X + 8 * np.eye(64)[0]).strength_
        spread = WhiteningCalibrator(strength="auto").fit(X + np.ones(64)).strength_
        assert spread == pytest.approx(rogue / 2, rel=0.02)

    def test_in_pieces(self, X):
        calibrator = WhiteningCalibrator(strength="auto")
        for rows in np.array_split(X, 7):
            calibrator.partial_fit(rows)
        assert calibrator.strength_ == pytest.approx(WhiteningCalibrator(strength="auto").fit(X).strength_)

    def test_extremes(self):
        X = np.random.default_rng(0).normal(size=(300, 5))
        X -= X.mean(axis=0)
        assert WhiteningCalibrator(strength="auto").fit(X).strength_ == pytest.approx(0, abs=1e-12)
        one = WhiteningCalibrator(strength="auto").fit(X + 1e4 * np.eye(5)[0])
        assert one.strength_ == pytest.approx(1, abs=1e-6)
        for constant in (np.zeros((3, 2)), np.full((3, 2), 7.0)):
            calibrator = WhiteningCalibrator(strength="auto").fit(constant)
            assert calibrator.strength_ == 0
            np.testing.assert_array_equal(calibrator.transform(constant), 0)

    def test_can_be_set_later(self, X):
        calibrator = WhiteningCalibrator(strength=1.0).fit(X)
        assert calibrator.strength_ == 1
        calibrator.set_params(strength="auto")
        assert calibrator.strength_ == WhiteningCalibrator(strength="auto").fit(X).strength_

    def test_round_trip(self, X):
        calibrator = WhiteningCalibrator(strength="auto").fit(X)
        np.testing.assert_allclose(calibrator.inverse_transform(calibrator.transform(X)), X, atol=1e-10)

    def test_real_vectors(self, embeddings):
        """Layers 0 and 4 are like those of an untuned encoder, the last one was tuned for similarity."""
        first, middle, last = (
            WhiteningCalibrator(strength="auto").fit(vectors).strength_ for vectors in embeddings
        )
        assert 0.4 < first < 0.8
        assert 0.4 < middle < 0.8
        assert last < 0.2


class TestShrinkage:
    @pytest.mark.parametrize("scale", [1.0, 1e-29, 1e28])
    def test_scikit_learn(self, scale):
        X = np.random.default_rng(0).normal(size=(15, 20)) * np.arange(1, 21) + 3
        calibrator = WhiteningCalibrator(strength="auto").fit(scale * X)
        theirs = LedoitWolf().fit(X)
        assert calibrator.shrinkage_ == pytest.approx(theirs.shrinkage_, rel=1e-10)
        variances = np.linalg.eigvalsh(theirs.covariance_)[::-1]
        assert calibrator.rank_ == 20
        np.testing.assert_allclose(calibrator.set_params(strength=1)._deviations / scale, np.sqrt(variances))

    @pytest.mark.parametrize("n_components", [None, 18])
    def test_signs(self, n_components):
        """Of the directions, too, that the rows do not vary in."""
        X = np.random.default_rng(0).normal(size=(6, 20))
        calibrator = WhiteningCalibrator(n_components, strength="auto").fit(X)
        assert calibrator.shrinkage_ > 0
        components = calibrator.components_
        assert (components[np.arange(len(components)), np.abs(components).argmax(axis=1)] > 0).all()
        np.testing.assert_allclose(components @ components.T, np.eye(len(components)), atol=1e-12)

    def test_where(self):
        X = np.random.default_rng(0).normal(size=(15, 20)) + 1
        for calibrator in (
            WhiteningCalibrator(strength=1.0),
            WhiteningCalibrator(strength=0.5),
            WhiteningCalibrator(strength="auto", shrinkage=None),
        ):
            assert calibrator.fit(X).shrinkage_ == 0
            assert calibrator.rank_ == 14
        assert WhiteningCalibrator(strength="auto").partial_fit(X).shrinkage_ == 0
        assert WhiteningCalibrator(strength="auto").fit(np.vstack([X, X])).shrinkage_ == 0
        assert 0 < WhiteningCalibrator(strength=0.5, shrinkage="ledoit-wolf").fit(X).shrinkage_ < 1

    def test_weights_are_counts(self):
        X = np.random.default_rng(0).normal(size=(9, 20)) + 1
        weight = np.arange(9) % 3
        weighted = WhiteningCalibrator(strength="auto").fit(X, sample_weight=weight)
        repeated = WhiteningCalibrator(strength="auto").fit(np.repeat(X, weight, axis=0))
        assert 0 < weighted.shrinkage_ == pytest.approx(repeated.shrinkage_)

    def test_weights_that_sum_up_to_one_make_no_small_corpus(self):
        X = np.random.default_rng(0).normal(size=(200, 10)) + 1
        for shrinkage in ("auto", "ledoit-wolf"):
            plain = WhiteningCalibrator(strength="auto", shrinkage=shrinkage).fit(X)
            weighted = WhiteningCalibrator(strength="auto", shrinkage=shrinkage).fit(
                X, sample_weight=np.full(200, 1 / 200)
            )
            assert weighted.shrinkage_ == pytest.approx(plain.shrinkage_)

    def test_partial_fit_goes_on_from_what_was_seen(self):
        X = np.random.default_rng(0).normal(size=(60, 20)) + 1
        calibrator = WhiteningCalibrator(strength="auto").fit(X[:15])
        np.testing.assert_allclose(calibrator.covariance_, covariance(X[:15]), atol=1e-12)
        calibrator.partial_fit(X[15:])
        whole = WhiteningCalibrator(strength="auto").fit(X)
        np.testing.assert_allclose(calibrator.transform(X), whole.transform(X), atol=1e-10)

    def test_small_corpus_of_known_covariance(self):
        """Rows that fit never saw come out nearer to white than by the covariance as it is."""
        rng = np.random.default_rng(0)
        deviations = 1 / np.sqrt(np.arange(1, 101))
        train, new = rng.normal(size=(60, 100)) * deviations, rng.normal(size=(2000, 100)) * deviations
        anisotropy = {}
        for shrinkage in ("ledoit-wolf", None):
            calibrator = WhiteningCalibrator(shrinkage=shrinkage, strength=1.0).fit(train)
            variances = np.linalg.eigvalsh(covariance(calibrator.transform(new)))
            anisotropy[shrinkage] = np.linalg.norm(variances / variances.mean() - 1)
        assert anisotropy["ledoit-wolf"] < anisotropy[None] / 2

    @pytest.mark.parametrize("n_samples", [1, 2, 5])
    @pytest.mark.filterwarnings("ignore:.*was fitted on one row")
    def test_few_rows(self, n_samples):
        X = np.random.default_rng(0).normal(size=(n_samples, 40))
        Z = WhiteningCalibrator(strength="auto").fit_transform(X)
        assert np.isfinite(Z).all()
        assert (Z == 0).all() == (n_samples == 1)


class TestComponents:
    @pytest.mark.parametrize("n_components", [1, 5, 12])
    def test_keeps_the_leading(self, X, n_components):
        whole = WhiteningCalibrator(strength=1.0).fit(X)
        part = WhiteningCalibrator(n_components, strength=1.0).fit(X)
        assert part.components_.shape == (n_components, 12)
        assert (np.diff(part.explained_variance_) <= 0).all()
        np.testing.assert_allclose(part.transform(X), whole.transform(X)[:, :n_components], atol=1e-8)

    def test_zca_keeps_the_space(self, X):
        """The output has all columns and rank n_components: it is the full one, projected."""
        part = WhiteningCalibrator(4, method="zca", strength=1.0).fit(X)
        Z = part.transform(X)
        assert Z.shape == X.shape
        assert np.linalg.matrix_rank(Z) == 4
        full = WhiteningCalibrator(method="zca", strength=1.0).fit_transform(X)
        np.testing.assert_allclose(Z, full @ part.components_.T @ part.components_, atol=1e-8)

    def test_signs(self, X):
        for rows in (X, -X):
            components = WhiteningCalibrator(strength=1.0).fit(rows).components_
            assert (components[np.arange(12), np.abs(components).argmax(axis=1)] > 0).all()
            np.testing.assert_allclose(components @ components.T, np.eye(12), atol=1e-13)

    def test_more_than_features(self, X):
        with pytest.raises(ValueError, match=r"n_components=13 must be at most .* n_features=12"):
            WhiteningCalibrator(13, strength=1.0).fit(X)

    @pytest.mark.parametrize(
        ("parameter", "value"),
        [
            ("n_components", 0),
            ("n_components", 1.5),
            ("method", "cholesky"),
            ("strength", -0.1),
            ("strength", 1.1),
            ("strength", None),
            ("tol", -1e-3),
            ("tol", 1.0),
        ],
    )
    def test_bad_parameters(self, X, parameter, value):
        with pytest.raises(ValueError, match=f"'{parameter}' parameter of WhiteningCalibrator"):
            WhiteningCalibrator(**{parameter: value}).fit(X)


class TestDirectionsWithoutSignal:
    @pytest.mark.parametrize("strength", [0, 0.5, 1])
    @pytest.mark.parametrize("method", ["pca", "zca"])
    def test_map_to_zero(self, strength, method):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(100, 3)) @ rng.normal(size=(3, 8)) + 1
        calibrator = WhiteningCalibrator(method=method, strength=strength).fit(X)
        assert calibrator.rank_ == 3
        assert calibrator.n_components_ == 8
        np.testing.assert_array_equal(calibrator.explained_variance_[3:], 0)
        off_plane = np.linalg.svd(X - X.mean(axis=0))[2][3:]
        Z = calibrator.transform(X[:5] + 100 * off_plane[:5])
        np.testing.assert_allclose(Z, calibrator.transform(X[:5]), atol=1e-10)

    def test_tol(self):
        """Variances 1, 1e-4 and 1e-8 of the largest."""
        X = np.vstack([np.diag([1, 1e-2, 1e-4]), -np.diag([1, 1e-2, 1e-4])])
        ranks = [WhiteningCalibrator(tol=tol, strength=1.0).fit(X).rank_ for tol in (0, 1e-10, 1e-6, 1e-3)]
        assert ranks == [3, 3, 2, 1]

    def test_rounding_errors_are_no_signal_without_tol(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 8))
        assert WhiteningCalibrator(tol=0, strength=1.0).fit(X).rank_ == 3

    @pytest.mark.parametrize("n_samples", [1, 2, 5])
    @pytest.mark.filterwarnings("ignore:.*was fitted on one row")
    def test_few_rows(self, n_samples):
        X = np.random.default_rng(0).normal(size=(n_samples, 40))
        calibrator = WhiteningCalibrator(strength=1.0).fit(X)
        Z = calibrator.transform(X)
        assert Z.shape == (n_samples, 40)
        assert calibrator.rank_ == n_samples - 1
        np.testing.assert_array_equal(Z[:, n_samples - 1 :], 0)
        expected = np.zeros((40, 40))
        expected[range(n_samples - 1), range(n_samples - 1)] = 1
        np.testing.assert_allclose(Z.T @ Z / n_samples, expected, atol=1e-12)


class TestInverse:
    @pytest.mark.parametrize("method", ["pca", "zca"])
    @pytest.mark.parametrize("strength", [0, 0.5, 1])
    @pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-11), (np.float32, 1e-3)])
    def test_round_trip(self, X, method, strength, dtype, atol):
        calibrator = WhiteningCalibrator(method=method, strength=strength).fit(X.astype(dtype))
        back = calibrator.inverse_transform(calibrator.transform(X.astype(dtype)))
        assert back.dtype == dtype
        np.testing.assert_allclose(back, X, atol=atol)

    @pytest.mark.parametrize("method", ["pca", "zca"])
    def test_is_the_projection_where_directions_were_dropped(self, X, method):
        calibrator = WhiteningCalibrator(4, method=method, strength=1.0).fit(X)
        back = calibrator.inverse_transform(calibrator.transform(X))
        centered = X - X.mean(axis=0)
        top = np.linalg.svd(centered)[2][:4]
        np.testing.assert_allclose(back, X.mean(axis=0) + centered @ top.T @ top, atol=1e-10)


@pytest.mark.parametrize("strength", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("smallest", [1e-1, 1e-2, 1e-3, 1e-4])
def test_float32_products_keep_their_bound(strength, smallest):
    # The same rows in float64, which are computed in float64, are the reference.
    rng = np.random.RandomState(0)
    deviations = np.geomspace(1, smallest, 64)
    axes = np.linalg.qr(rng.standard_normal((64, 64)))[0]
    X = (rng.standard_normal((500, 64)) * deviations @ axes + 3).astype(np.float32)
    calibrator = WhiteningCalibrator(strength=strength).fit(X)
    Z, expected = calibrator.transform(X), calibrator.transform(X.astype(np.float64))
    assert np.linalg.norm(Z - expected, axis=1) == pytest.approx(
        0, abs=3e-5 * np.linalg.norm(expected, axis=1).min()
    )
    allowed = is_float32_enough(deviations, deviations**-strength)
    assert allowed == (calibrator._product_dtype(X.dtype) == np.float32)


def test_float64_where_float32_is_not_enough():
    flat, steep = np.ones(4), np.array([1.0, 1e-4])
    assert is_float32_enough(flat, 1 / flat)
    assert is_float32_enough(steep, steep**-0.25)
    assert not is_float32_enough(steep, 1 / steep)
    assert is_float32_enough(np.empty(0), np.empty(0))
