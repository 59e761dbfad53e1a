"""What every calibrator shares: validation, dtypes, names of the output, version stamps."""

import contextlib

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from .._documentation import DocumentationLink
from .._magnitudes import check_magnitudes, to_numpy
from .._persistence import SavePretrainedMixin, VersionStamped
from .._typing import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from .._user_warnings import warn_user
from ._built import Built


def working_dtype(dtype):
    """Return the dtype that input of `dtype` is computed in: float64 for float64, float32 for all else."""
    dtype = np.dtype(dtype)
    return np.dtype(np.float64 if dtype.kind == "f" and dtype.itemsize == 8 else np.float32)  # any byte order


class BaseCalibrator(
    DocumentationLink,
    SavePretrainedMixin,
    VersionStamped,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Base class of the calibrators: dense vectors in, as many calibrated vectors out.

    A float64 array is computed in float64 and gives float64, everything else (float32, float16, integers) is
    computed in float32 and gives float32. Output features are named after the class
    (``whiteningcalibrator0``, ...); a calibrator that keeps the meaning of the input features derives from
    :class:`sklearn.base.OneToOneFeatureMixin` as well.

    What `transform` builds from fitted arrays is kept for the next call. Arrays may be replaced, but not
    written into: that would go unnoticed.
    """

    def _validate_rows(self, X, *, reset) -> np.ndarray:
        """Validate X without converting its floats.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Dense, real and finite, its largest magnitude from 1e-30 to 1e30 or 0; a tensor, too.
        reset : bool
            Whether to learn `n_features_in_` and `feature_names_in_` (fit) or to check against them.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Of whatever real dtype and memory layout it came with: an array or memory map is never copied.
        """
        # The check for infinities sums X up, which may overflow on the way, harmlessly.
        with np.errstate(over="ignore", invalid="ignore"):
            X = validate_data(self, to_numpy(X), reset=reset, dtype="numeric")
            if X.dtype.kind not in "biuf":  # a list with objects in it
                X = check_array(X, dtype=np.float64, estimator=self, input_name="X")
        check_magnitudes(X)
        if reset:
            self._built = Built()
        return X

    def _validate_calibrated(self, X, n_columns) -> np.ndarray:
        """Validate the input of inverse_transform: `n_columns` columns of whatever real dtype."""
        with np.errstate(over="ignore", invalid="ignore"):
            X = check_array(to_numpy(X), dtype="numeric", estimator=self, input_name="X")
        check_magnitudes(X)
        if X.shape[1] != n_columns:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__}.inverse_transform expects "
                f"{n_columns}, as many as transform returns."
            )
        return X

    def _warn_of_one_row(self, n_rows):
        if n_rows == 1:
            warn_user(
                f"{type(self).__name__} was fitted on one row, from which no scale can be learned: fit it on "
                "many."
            )

    @contextlib.contextmanager
    def _restored_on_failure(self):
        """Put everything back as it was where a fit fails or is interrupted.

        `validate_data` sets `n_features_in_` and `feature_names_in_` before anything is learned.
        """
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    def __skflow_operations__(self):
        """Return what `transform` does to float32 vectors, for the exports.

        A class that defines `transform` defines this method as well, or cannot be exported: what a subclass
        computes, nobody knows but itself. It is called on fitted estimators, and says what `transform` does
        with the parameters as they are now.

        Returns
        -------
        dtype : numpy.dtype
            What to compute in: float64 where `transform` does for the sake of precision, else float32.
        operations : list of (str, operand)
            To be applied in order: "subtract" is x - a, "divide" is x / a, "multiply" is x @ a, "deflate" is
            x - (x @ a.T) @ a, each with an ndarray a; "flow" is the latent of a torch module such as
            :class:`skflow.flows.Glow`, which computes in float32.

        Raises
        ------
        ValueError
            If what was fitted cannot be exported; the message says why.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say what its transform computes")

    def __getstate__(self):
        # What is kept between calls, and the optimizer's moments, of use only for more training, stay behind.
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in ("_built", "_moments")}

    def __setstate__(self, state):
        super().__setstate__(state)
        if "n_features_in_" in state:
            self._built = Built()

    @property
    def _n_features_out(self):
        return self.n_features_in_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
