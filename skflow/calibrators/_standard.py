"""Standard normalization: every feature to zero mean and unit variance."""

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._typing import OneToOneFeatureMixin
from ._linear import LinearCalibrator


class StandardNormalizationCalibrator(OneToOneFeatureMixin, LinearCalibrator):
    r"""Shift and scale every feature to zero mean and unit variance.

    .. math:: z_j = (x_j - \mu_j) / \sigma_j

    with the mean :math:`\mu_j` and the population standard deviation :math:`\sigma_j` of feature j. It is
    the weakest baseline, "SN" in the table of Li et al. (2020): it evens out the features' scales and
    leaves their correlations alone.

    A feature that is constant, up to the precision of the dtype that it came in, is shifted and not scaled:
    it becomes 0. float64 input gives float64, everything else float32; sums are float64 always.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of each feature, float64.
    var_ : ndarray of shape (n_features,)
        Population variance of each feature, float64.
    scale_ : ndarray of shape (n_features,)
        What each feature is divided by: the square root of the variance, 1 for a constant feature.
    n_samples_seen_ : int or float
        Number of rows seen by `fit` and `partial_fit`; the sum of their weights if they had any.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X had names that are all strings.

    See Also
    --------
    WhiteningCalibrator : Removes the correlations as well.
    sklearn.preprocessing.StandardScaler : The same map, for sparse data and missing values too.

    References
    ----------
    B. Li, H. Zhou, J. He, M. Wang, Y. Yang, L. Li (2020), "On the sentence embeddings from pre-trained
    language models", EMNLP, arXiv:2011.05864.

    Examples
    --------
    >>> import numpy as np
    >>> from skflow.calibrators import StandardNormalizationCalibrator
    >>> X = np.array([[1.0, 10.0, 7.0], [3.0, 30.0, 7.0]])
    >>> calibrator = StandardNormalizationCalibrator().fit(X)
    >>> calibrator.transform(X)
    array([[-1., -1.,  0.],
           [ 1.,  1.,  0.]])

    >>> calibrator.inverse_transform(calibrator.transform([[2.0, 20.0, 7.0]]))
    array([[ 2., 20.,  7.]])
    """

    _fitted_shapes: ClassVar[dict] = {
        "mean_": ("n_features_in_",),
        "_residual": ("n_features_in_",),
        "var_": ("n_features_in_",),
        "scale_": ("n_features_in_",),
        "_variance": ("n_features_in_",),
    }
    _parameter_constraints: ClassVar[dict] = {}

    def _solve(self):
        deviation = np.sqrt(self._variance)
        constant = deviation <= self._resolution * np.abs(self.mean_)
        self.scale_ = np.where(constant, 1.0, deviation)
        self.var_ = np.where(constant, 0.0, self._variance)

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Shift and scale X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_features)
            float64 for float64 input, else float32.

        Raises
        ------
        ValueError
            If X is not finite, out of range (see `fit`), or does not have the number of features seen in fit.
        """
        check_is_fitted(self)
        X = self._validate_rows(X, reset=False)
        dtype = self._precision(X.dtype, self.scale_)
        scale = self.scale_.astype(dtype)

        def standardize(rows):
            centered = self._center(rows, dtype)
            return np.divide(centered, scale, out=centered)

        return self._map_chunks(standardize, X)

    def __skflow_operations__(self):
        dtype = self._precision(np.float32, self.scale_)
        return dtype, [*self._centering(dtype), ("divide", self.scale_)]

    def inverse_transform(self, X: ArrayLike) -> np.ndarray:
        """Undo `transform`: a constant feature gets its mean back.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Calibrated vectors.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            float64 for float64 input, else float32.

        Raises
        ------
        ValueError
            If X is not finite, out of range (see `fit`), or does not have the number of features seen in fit.
        """
        check_is_fitted(self)
        X = self._validate_calibrated(X, len(self.mean_))
        dtype = self._precision(X.dtype, self.scale_)
        scale = self.scale_.astype(dtype)
        return self._map_chunks(lambda rows: self._uncenter(rows * scale), X)
