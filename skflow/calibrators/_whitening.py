"""Whitening, whole or in part."""

from numbers import Integral, Real
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import qr
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._typing import OneToOneFeatureMixin
from ._linear import PrincipalCalibrator, fix_signs
from ._moments import row_chunks
from ._strength import automatic_strength

FLOAT32_EPS = 2.0**-24
MAX_ERROR = 1e-5  # of float32 products, beside the norm of a row of the result


def is_float32_enough(deviations, gains):
    """Return whether a product with ``axes.T * gains`` may be computed in float32.

    The rounding errors of a float32 product are of the size eps |x - mean| |gains|, in any direction, while
    the rows of the result are of the size |deviations * gains|. It may where that is at most 1e-5 of them,
    eps being 6e-8: at low strength, or where the spectrum is flat.
    """
    if not len(gains):
        return True
    error = FLOAT32_EPS * np.linalg.norm(deviations) * gains.max()
    return bool(error <= MAX_ERROR * np.linalg.norm(deviations * gains))


class WhiteningCalibrator(PrincipalCalibrator):
    r"""Center the vectors and even out their variance along all directions (BERT-whitening).

    With the covariance :math:`\Sigma = \frac{1}{n} \sum_i (x_i - \mu)(x_i - \mu)^T = U \Lambda U^T` of the
    training rows and the strength s,

    .. math::

        z_\mathrm{pca} = \Lambda^{-s/2} U^T (x - \mu), \qquad
        z_\mathrm{zca} = U \Lambda^{-s/2} U^T (x - \mu).

    At full strength, s = 1, the covariance of the result is the identity. Both methods give the same
    cosines and distances: they differ by a rotation.

    Full whitening over-corrects: it gives directions of noise the weight of the others. An encoder that was
    tuned for similarity is best left nearly alone, one that was not gains most at about 0.5 to 0.75.
    ``strength="auto"`` chooses between them from the vectors alone, by

    .. math::

        s = \sqrt[3]{\frac{\max_j |\mu_j|}{\|\mu\|}} \left(1 - \frac{\mathrm{tr}\,\Sigma}{\mu^T \mu
        + \mathrm{tr}\,\Sigma} \cdot
        \frac{\mathrm{tr}\,\Sigma^2}{\mu^T \Sigma \mu + \mathrm{tr}\,\Sigma^2}\right).

    The two fractions in brackets are about dot products, whose parts are
    :math:`x^T y = \mu^T \mu + \mu^T (x - \mu) + \mu^T (y - \mu) + (x - \mu)^T (y - \mu)`. The first is the
    share of the mean squared norm that is not the mean's: 1 minus the average cosine, for vectors of equal
    norm. The second is about the dot products of one vector with all others: how much of their variance is
    specific to that vector. The rest is the same for every vector, namely how far the others lie along the
    mean, which is what makes some of them neighbors of all (Suzuki et al., 2013). The root looks at what
    kind of mean it is. That of an encoder that was not tuned stands out in a few features, which dominate
    every cosine (rogue dimensions; Timkey and van Schijndel, 2021); a tuned one may have a large mean that is
    spread over all features and does no harm. That it is the third root is the one choice without a
    derivation. A change of scale does not alter the strength; a rotation does, since it spreads the mean. The
    rule knows the vectors, not the task: where graded pairs are at hand, a search over `strength` is better.

    Directions along which the training rows do not vary, or hardly so, carry no signal. Dividing by their
    standard deviation would blow up rounding errors: they map to zero, whatever the strength.

    float64 input gives float64, everything else float32; sums and the decomposition are float64 always.

    Parameters
    ----------
    n_components : int, default=None
        Number of leading directions to keep, from 1 to n_features; the rest is dropped. With
        ``method="pca"`` it is the number of output columns as well; with ``method="zca"`` the output stays
        in the space of the input features, and is of rank `n_components`. None keeps all.
    method : {"pca", "zca"}, default="pca"
        "pca" returns coordinates along the principal axes, leading first, as Su et al. (2021) do. "zca"
        rotates back to the axes of the input features; of all whitenings it moves the vectors least (Kessy
        et al., 2018).
    strength : float or "auto", default="auto"
        Power of the whitening, from 0 to 1: eigenvalues of the covariance are raised to ``-strength / 2``.
        1.0 whitens, which is BERT-whitening as published; 0 only centers (and, with "pca", rotates); what
        lies between evens the variances out in part. "auto" chooses it by the rule above. It is read in
        `transform`: setting it on a fitted calibrator needs no new fit, but where rows are fewer than
        features, since `shrinkage` then depends on it.
    tol : float, default=1e-10
        Directions whose eigenvalue is below `tol` times the largest carry no signal. Whatever `tol`,
        eigenvalues within the rounding error of the covariance, n_features times the machine epsilon of
        float64 relative to the largest, count as zero.
    shrinkage : {"auto", "ledoit-wolf"} or None, default="auto"
        Whether `fit` shrinks the covariance towards a multiple of the identity, by the coefficient of Ledoit
        and Wolf (2004). Of fewer rows than features, the covariance says that most directions have no
        variance at all, and whitening would blow up those that seem to have little. "auto" shrinks where
        there are fewer rows than features and ``strength="auto"``, so that with a strength given by hand the
        covariance of the result is what the formula says; set "ledoit-wolf" to shrink at any strength. Rows
        of `partial_fit` are never shrunk for: the coefficient takes all rows at once.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of each feature, float64.
    components_ : ndarray of shape (n_components_, n_features)
        Principal axes, orthonormal, leading first, float64. The sign of each is chosen so that its entry of
        largest magnitude is positive, which makes the result the same on every machine, up to rounding, where
        no two eigenvalues are equal.
    strength_ : float
        Power that `transform` whitens by: `strength`, or what the rule chose.
    shrinkage_ : float
        How much of the covariance was replaced by a multiple of the identity, from 0 to 1.
    explained_variance_ : ndarray of shape (n_components_,)
        Variance along them, after the shrinkage, 0 where there is no signal.
    explained_variance_ratio_ : ndarray of shape (n_components_,)
        Share of the total variance along each.
    n_components_ : int
        Number of directions kept, among them those without signal.
    rank_ : int
        Number of directions kept that carry signal; along the other ``n_components_ - rank_`` the output is
        zero.
    covariance_ : ndarray of shape (n_features, n_features)
        Population covariance of the training rows, not shrunk, which `partial_fit` resumes from.
    n_samples_seen_ : int or float
        Number of rows seen by `fit` and `partial_fit`; the sum of their weights if they had any.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X had names that are all strings.

    See Also
    --------
    NATSVCalibrator : Removes the leading directions instead of shrinking them.
    sklearn.decomposition.PCA : ``PCA(whiten=True)`` divides by the sample standard deviation, of n - 1 rows.

    Notes
    -----
    The covariance is that of the population, divided by n as in Su et al. (2021): it is defined for one
    row, and for weights that are not counts. The result differs from that of the sample covariance by the
    constant factor ``sqrt(n / (n - 1))`` at full strength, which no cosine notices.

    References
    ----------
    J. Su, J. Cao, W. Liu, Y. Ou (2021), "Whitening sentence representations for better semantics and faster
    retrieval", arXiv:2103.15316.

    O. Ledoit, M. Wolf (2004), "A well-conditioned estimator for large-dimensional covariance matrices",
    Journal of Multivariate Analysis 88(2), doi:10.1016/S0047-259X(03)00096-4.

    I. Suzuki, K. Hara, M. Shimbo, M. Saerens, K. Fukumizu (2013), "Centering similarity measures to reduce
    hubs", EMNLP, aclanthology.org/D13-1058.

    W. Timkey, M. van Schijndel (2021), "All bark and no bite: rogue dimensions in transformer language models
    obscure representational quality", EMNLP, arXiv:2109.04404.

    A. Kessy, A. Lewin, K. Strimmer (2018), "Optimal whitening and decorrelation", The American Statistician
    72(4), doi:10.1080/00031305.2016.1277159.

    Examples
    --------
    >>> import numpy as np
    >>> from skflow.calibrators import WhiteningCalibrator
    >>> X = np.random.default_rng(0).normal(size=(500, 3)) @ np.array([[4, 0, 1], [0, 2, 1], [0, 0, 1]])
    >>> Z = WhiteningCalibrator(strength=1.0).fit_transform(X)
    >>> np.allclose(np.cov(Z.T, ddof=0), np.eye(3))
    True
    >>> WhiteningCalibrator(n_components=2, strength=0.5).fit_transform(X).shape
    (500, 2)

    Vectors about the origin are left nearly alone, those of a narrow cone are not:

    >>> round(WhiteningCalibrator(strength="auto").fit(X).strength_, 2)
    0.03
    >>> round(WhiteningCalibrator(strength="auto").fit(X + [3, 3, 3]).strength_, 2)
    0.64

    What was whitened can be brought back:

    >>> calibrator = WhiteningCalibrator(strength=1.0).fit(X)
    >>> Z = calibrator.transform(X)
    >>> np.allclose(calibrator.inverse_transform(Z), X)
    True
    >>> calibrator.get_feature_names_out().tolist()
    ['whiteningcalibrator0', 'whiteningcalibrator1', 'whiteningcalibrator2']
    """

    _fitted_shapes: ClassVar[dict] = {
        "mean_": ("n_features_in_",),
        "_residual": ("n_features_in_",),
        "components_": ("n_components_", "n_features_in_"),
        "explained_variance_": ("n_components_",),
        "explained_variance_ratio_": ("n_components_",),
        "_deviations": ("n_components_",),
        "covariance_": ("n_features_in_", "n_features_in_"),
    }
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "method": [StrOptions({"pca", "zca"})],
        "strength": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "tol": [Interval(Real, 0, 1, closed="left")],
        "shrinkage": [StrOptions({"auto", "ledoit-wolf"}), None],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        method: Literal["pca", "zca"] = "pca",
        strength: float | Literal["auto"] = "auto",
        tol: float = 1e-10,
        shrinkage: Literal["auto", "ledoit-wolf"] | None = "auto",
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.strength = strength
        self.tol = tol
        self.shrinkage = shrinkage

    def _check_parameters(self, X):
        n_features = X.shape[1]
        if self.n_components is not None and self.n_components > n_features:
            raise ValueError(
                f"n_components={self.n_components} must be at most the number of features of X, "
                f"n_features={n_features}."
            )

    def _choose_shrinkage(self, X, sample_weight):
        self.shrinkage_ = 0.0
        n_features = len(self.mean_)
        # A weight of k counts as k rows. Weights that sum up to 1 make no fewer rows than there are.
        n_rows = self.n_samples_seen_
        if sample_weight is not None:
            n_rows = max(n_rows, np.count_nonzero(sample_weight))
        is_small = self.strength == "auto" and n_rows < n_features
        total = np.trace(self.covariance_)
        is_wanted = self.shrinkage == "ledoit-wolf" or (self.shrinkage == "auto" and is_small)
        if X is None or total == 0 or not is_wanted:
            return
        # scikit-learn's ledoit_wolf_shrinkage takes no weights, and all rows at once.
        fourth = 0.0  # mean of the fourth powers of the norms
        for rows in row_chunks(X):
            squares = np.square(self._center(X[rows], np.dtype(np.float64))).sum(axis=1)
            share = np.full(len(squares), 1.0) if sample_weight is None else sample_weight[rows]
            fourth += share @ np.square(squares / total) / self.n_samples_seen_
        squared = np.square(self.covariance_ / total).sum()
        distance = squared - 1 / n_features  # of the covariance from the multiple of the identity, squared
        error = (fourth - squared) / n_rows  # of the covariance from the true one
        if error > 0:
            self.shrinkage_ = float(min(1.0, error / distance)) if distance > 0 else 1.0

    def _solve(self):
        n_features = len(self.mean_)
        n_axes = n_features if self.n_components is None else self.n_components
        axes, deviations = self._principal_axes(n_axes)
        total = np.trace(self.covariance_)
        level = self.shrinkage_ * total / n_features
        variances = (1 - self.shrinkage_) * deviations**2 + level
        if self.shrinkage_ > 0:
            # Where the rows do not vary all axes are alike: choose some that rounding does not decide.
            n_signal = np.count_nonzero(deviations)
            rest = np.eye(n_features) - axes[:n_signal].T @ axes[:n_signal]
            axes[n_signal:] = qr(rest, pivoting=True)[0].T[: n_axes - n_signal]
            fix_signs(axes[n_signal:])
            deviations = np.sqrt(variances)
        is_noise = deviations < np.sqrt(self.tol) * deviations[0]
        deviations[is_noise] = variances[is_noise] = 0
        self.components_ = axes
        self.n_components_ = len(axes)
        self.rank_ = int(np.count_nonzero(deviations))
        self._deviations = deviations
        self.explained_variance_ = variances
        self.explained_variance_ratio_ = variances / total if total > 0 else np.zeros_like(variances)
        covariance = (1 - self.shrinkage_) * self.covariance_
        covariance[np.diag_indices(n_features)] += level
        self._automatic_strength = automatic_strength(self.mean_, covariance)

    @property
    def strength_(self) -> float:
        """Power that `transform` whitens by, float from 0 to 1."""
        check_is_fitted(self)
        return self._automatic_strength if self.strength == "auto" else float(self.strength)

    def _check_fitted_state(self):
        super()._check_fitted_state()
        for name in ("_automatic_strength", "shrinkage_"):
            value = getattr(self, name, None)
            if not isinstance(value, float) or not 0 <= value <= 1:
                raise ValueError(f"{name} is {value!r}, expected a number from 0 to 1")

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Whiten X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components_) or (n_samples, n_features)
            Coordinates along the principal axes (``method="pca"``) or the input's (``method="zca"``).
            float64 for float64 input, else float32.

        Raises
        ------
        ValueError
            If X is not finite, out of range (see `fit`), or does not have the number of features seen in fit.
        """
        check_is_fitted(self)
        X = self._validate_rows(X, reset=False)
        dtype = self._product_dtype(X.dtype)
        sources = (self.components_, self._deviations)
        project = self._built.get(
            ("project", dtype, self.strength_),
            sources,
            lambda: (self.components_.T * self._gains(-self.strength_)).astype(dtype),
        )
        rotate = None
        if self.method == "zca":
            rotate = self._built.get(("rotate", dtype), sources, lambda: self.components_.astype(dtype))

        def whiten(rows):
            rows = self._center(rows, dtype) @ project
            return rows if rotate is None else rows @ rotate

        return self._map_chunks(whiten, X)

    def __skflow_operations__(self):
        dtype = self._product_dtype(np.float32)
        project = self.components_.T * self._gains(-self.strength_)
        rotate = [("multiply", self.components_)] if self.method == "zca" else []
        return dtype, [*self._centering(dtype), ("multiply", project), *rotate]

    def inverse_transform(self, X: ArrayLike) -> np.ndarray:
        """Undo `transform` on the directions kept that carry signal; the rest gets the mean's share.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components_) or (n_samples, n_features)
            Whitened vectors, as `transform` returns them.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            float64 for float64 input, else float32.

        Raises
        ------
        ValueError
            If X is not finite, out of range, or does not have the number of columns that `transform` returns.
        """
        check_is_fitted(self)
        X = self._validate_calibrated(X, self._n_features_out)
        dtype = self._product_dtype(X.dtype)
        recolor = (self.components_.T * self._gains(self.strength_)).astype(dtype).T
        rotate = self.components_.T.astype(dtype) if self.method == "zca" else None

        def color(rows):
            rows = rows.astype(dtype, copy=False)
            if rotate is not None:
                rows = rows @ rotate
            return self._uncenter(rows @ recolor)

        return self._map_chunks(color, X)

    def _product_dtype(self, dtype):
        """Return the dtype to multiply in: float64 where float32 rounding would show."""
        signal = self._deviations[self._deviations > 0]
        if not is_float32_enough(signal, signal**-self.strength_):
            return np.dtype(np.float64)
        return self._precision(dtype, signal)

    def _gains(self, power):
        """Return ``deviations**power`` for directions that carry signal, 0 for the rest."""
        gains = np.zeros(self.n_components_)
        signal = self._deviations > 0
        gains[signal] = self._deviations[signal] ** power
        return gains

    @property
    def _n_features_out(self):
        return self.n_components_ if self.method == "pca" else self.n_features_in_

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Return the names of the output features.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the input features, for ``method="zca"``; those seen in fit by default.

        Returns
        -------
        names : ndarray of str objects
            ``whiteningcalibrator0``, ... for ``method="pca"``; the input's names for ``method="zca"``.

        Raises
        ------
        NotFittedError
            If the calibrator is not fitted.
        ValueError
            If `input_features` are not as many as were seen in fit, or other names.
        """
        if self.method == "zca":
            return OneToOneFeatureMixin.get_feature_names_out(self, input_features)  # type: ignore[arg-type]
        return super().get_feature_names_out(input_features)
