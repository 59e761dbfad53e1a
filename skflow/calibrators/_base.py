"""What every calibrator shares: validation, dtypes, names of the output, version stamps."""

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, validate_data

from .._persistence import SavePretrainedMixin, VersionStamped


def working_dtype(dtype):
    """Return the dtype that input of `dtype` is computed in: float64 for float64, float32 for all else."""
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


class BaseCalibrator(
    SavePretrainedMixin, VersionStamped, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Base class of the calibrators: dense vectors in, as many calibrated vectors out.

    A float64 array is computed in float64 and gives float64, everything else (float32, float16, integers) is
    computed in float32 and gives float32. Output features are named after the class
    (``whiteningcalibrator0``, ...); a calibrator that keeps the meaning of the input features derives from
    :class:`sklearn.base.OneToOneFeatureMixin` as well.
    """

    def _validate_rows(self, X, *, reset) -> np.ndarray:
        """Validate X without converting its floats.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Dense, real and finite.
        reset : bool
            Whether to learn `n_features_in_` and `feature_names_in_` (fit) or to check against them.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Of whatever real dtype and memory layout it came with: an array or memory map is never copied.
        """
        # The check for infinities sums X up: near the largest float that overflows on the way, harmlessly.
        with np.errstate(over="ignore", invalid="ignore"):
            X = validate_data(self, X, reset=reset, dtype="numeric")
            if X.dtype.kind not in "biuf":  # a list with objects in it
                X = check_array(X, dtype=np.float64, estimator=self, input_name="X")
        return X

    def _validate(self, X, *, reset) -> np.ndarray:
        """Validate X and return it as a C-ordered float32 or float64 array, copied only where it must be."""
        X = self._validate_rows(X, reset=reset)
        return np.ascontiguousarray(X, dtype=working_dtype(X.dtype))

    def _validate_calibrated(self, X, n_columns) -> np.ndarray:
        """Validate the input of inverse_transform: `n_columns` columns of whatever real dtype."""
        with np.errstate(over="ignore", invalid="ignore"):
            X = check_array(X, dtype="numeric", estimator=self, input_name="X")
        if X.shape[1] != n_columns:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__}.inverse_transform expects "
                f"{n_columns}, as many as transform returns."
            )
        return X

    @property
    def _n_features_out(self):
        return self.n_features_in_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
