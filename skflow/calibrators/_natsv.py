"""Nulling away the top singular vectors (all-but-the-top)."""

from numbers import Integral
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._typing import OneToOneFeatureMixin
from ._linear import PrincipalCalibrator


class NATSVCalibrator(OneToOneFeatureMixin, PrincipalCalibrator):
    r"""Center the vectors and null away their top singular vectors.

    .. math:: z = (x - \mu) - V^T V (x - \mu)

    where the rows of V are the leading `n_components` right singular vectors of the centered training rows.
    The few directions that hold most of a cloud of embeddings carry word frequency more than meaning;
    without them the cloud is more isotropic. The method is the "all-but-the-top" of Mu and Viswanath
    (2018), who remove about n_features / 100 components; Li et al. (2020) call it NATSV.

    float64 input gives float64, everything else float32; sums and the decomposition are float64 always.

    Parameters
    ----------
    n_components : int or "auto", default=1
        Number of directions to remove; 0 only centers. "auto" removes n_features / 100, rounded, and at least
        one, as Mu and Viswanath (2018) do. No more are removed than the training rows vary in:
        with as many as that, or more, nothing is left of the training rows but rounding errors.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of each feature, float64.
    components_ : ndarray of shape (n_components_, n_features)
        The removed directions, orthonormal, leading first, float64. The sign of each is chosen so that its
        entry of largest magnitude is positive.
    singular_values_ : ndarray of shape (n_components_,)
        Singular values of the centered training rows along them.
    explained_variance_ratio_ : ndarray of shape (n_components_,)
        Share of the total variance along each.
    n_components_ : int
        Number of directions removed: `n_components`, or fewer where the training rows vary in fewer.
    covariance_ : ndarray of shape (n_features, n_features)
        Population covariance of the training rows, which `partial_fit` resumes from.
    n_samples_seen_ : int or float
        Number of rows seen by `fit` and `partial_fit`; the sum of their weights if they had any.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X had names that are all strings.

    See Also
    --------
    WhiteningCalibrator : Evens out the variance along all directions.

    Notes
    -----
    The projection is applied twice: once leaves rounding errors of the size of what was removed, which
    would be large beside a small rest. There is no inverse_transform, since what is removed is lost.

    References
    ----------
    J. Mu, P. Viswanath (2018), "All-but-the-top: simple and effective postprocessing for word
    representations", ICLR, arXiv:1702.01417.

    B. Li, H. Zhou, J. He, M. Wang, Y. Yang, L. Li (2020), "On the sentence embeddings from pre-trained
    language models", EMNLP, arXiv:2011.05864.

    Examples
    --------
    >>> import numpy as np
    >>> from skflow.calibrators import NATSVCalibrator
    >>> X = np.array([[9.0, 1.0], [1.0, 1.0], [5.0, 2.0], [5.0, 0.0]])
    >>> calibrator = NATSVCalibrator(n_components=1).fit(X)
    >>> calibrator.components_
    array([[1., 0.]])
    >>> calibrator.transform(X)[:, 1]
    array([ 0.,  0.,  1., -1.])
    """

    _fitted_shapes: ClassVar[dict] = {
        "mean_": ("n_features_in_",),
        "_residual": ("n_features_in_",),
        "components_": ("n_components_", "n_features_in_"),
        "singular_values_": ("n_components_",),
        "explained_variance_ratio_": ("n_components_",),
        "_deviations": ("n_components_",),
        "covariance_": ("n_features_in_", "n_features_in_"),
    }
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})]
    }

    def __init__(self, n_components: int | Literal["auto"] = 1) -> None:
        self.n_components = n_components

    def _solve(self):
        n_features = len(self.mean_)
        n_components = max(1, round(n_features / 100)) if self.n_components == "auto" else self.n_components
        axes, deviations = self._principal_axes(min(n_components, n_features))
        self.n_components_ = int(np.count_nonzero(deviations))
        self.components_ = axes[: self.n_components_]
        self._deviations = deviations[: self.n_components_]
        self.singular_values_ = self._deviations * np.sqrt(self.n_samples_seen_)
        self.explained_variance_ratio_ = self._deviations**2 / np.trace(self.covariance_)

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Center X and remove the top directions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_features)
            Orthogonal to `components_`; float64 for float64 input, else float32.

        Raises
        ------
        ValueError
            If X is not finite, out of range (see `fit`), or does not have the number of features seen in fit.
        """
        check_is_fitted(self)
        X = self._validate_rows(X, reset=False)
        dtype = self._precision(X.dtype, self._deviations)
        components = self.components_.astype(dtype)

        def remove(rows):
            centered = self._center(rows, dtype)
            for _ in range(2):
                centered -= (centered @ components.T) @ components
            return centered

        return self._map_chunks(remove, X)

    def __skflow_operations__(self):
        dtype = self._precision(np.float32, self._deviations)
        return dtype, [*self._centering(dtype), *[("deflate", self.components_)] * 2]
