"""What the closed-form calibrators share: streamed moments, transform in chunks, principal axes."""

from numbers import Real
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from sklearn.base import _fit_context
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from ._base import BaseCalibrator, working_dtype
from ._moments import RunningMoments, row_chunks

_LARGEST = np.finfo(np.float64).max


class LinearCalibrator(BaseCalibrator):
    """Base class of the calibrators that are affine maps computed from means and second moments.

    A subclass says in `_full_covariance` which moments it needs, computes its parameters from them in
    `_solve`, and maps a chunk of centred rows.
    """

    _full_covariance = False

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the parameters from X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors, finite and dense. They are read once, in order and in chunks, and summed up in float64:
            a :class:`numpy.memmap` may be larger than memory.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. A weight of k means the same as the row repeated k times.

        Returns
        -------
        self : object
            The fitted calibrator.

        Raises
        ------
        ValueError
            If X or sample_weight is not finite, not of the right shape, or all weights are zero, or if a
            parameter of the calibrator does not suit X.

        Examples
        --------
        >>> import numpy as np
        >>> from skflow.calibrators import StandardNormalizationCalibrator
        >>> calibrator = StandardNormalizationCalibrator()
        >>> calibrator.fit(np.array([[1.0], [3.0]]), sample_weight=[3, 1]).mean_
        array([1.5])
        """
        return self._accumulate(X, sample_weight, reset=True, is_all=True)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Go on learning from more rows; the result is that of `fit` on all rows together.

        The parameters are computed anew after each call. Where that takes a decomposition of a covariance,
        whose cost is cubic in the number of features, few large pieces are faster than many small ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            More vectors, finite and dense.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. A weight of k means the same as the row repeated k times.

        Returns
        -------
        self : object
            The fitted calibrator.

        Raises
        ------
        ValueError
            As in `fit`; what was learned before is then still there.

        Examples
        --------
        >>> import numpy as np
        >>> from skflow.calibrators import StandardNormalizationCalibrator
        >>> calibrator = StandardNormalizationCalibrator()
        >>> for piece in (np.array([[1.0], [3.0]]), np.array([[5.0]])):
        ...     calibrator = calibrator.partial_fit(piece)
        >>> calibrator.mean_
        array([3.])
        """
        return self._accumulate(X, sample_weight, reset=not hasattr(self, "n_samples_seen_"))

    def _accumulate(self, X, sample_weight, *, reset, is_all=False):
        X = self._validate_rows(X, reset=reset)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            if not sample_weight.any():
                raise ValueError("sample_weight has no positive entry: at least one row must have weight.")
        self._check_parameters(X)
        if reset:
            moments = RunningMoments.empty(X.shape[1], full=self._full_covariance)
        else:
            moments = RunningMoments(
                self.n_samples_seen_, self.mean_, self._residual, self._second_moment, self._exponent
            )
        moments.update(X, sample_weight)
        # What X cannot resolve is no variation. Integers are exact, floats are as fine as their precision.
        resolution = float(np.finfo(X.dtype).eps) if X.dtype.kind == "f" else 0.0
        self._resolution = max(resolution, 0.0 if reset else self._resolution)
        self.n_samples_seen_ = moments.n_samples
        self.mean_ = moments.mean
        self._residual = moments.residual
        self._second_moment = moments.second
        self._exponent = moments.exponent
        self._choose_shrinkage(X if is_all else None, sample_weight)
        self._solve()
        return self

    def _check_fitted_state(self):
        super()._check_fitted_state()
        for name in ("n_samples_seen_", "_resolution"):
            value = getattr(self, name, None)
            if not isinstance(value, Real) or not 0 <= value < np.inf:
                raise ValueError(f"{name} is {value!r}, expected a number from 0 up")
        if self._exponent.dtype.kind != "i" or np.any(np.abs(self._exponent) > 1100):
            raise ValueError("_exponent is not the exponent of a float64")
        if np.any(getattr(self, "scale_", 1.0) <= 0):
            raise ValueError("scale_ is not positive")
        if np.any(getattr(self, "_deviations", 0.0) < 0):
            raise ValueError("_deviations is negative")

    def _check_parameters(self, X):
        """Raise ValueError where a parameter of the constructor does not suit X."""

    def _choose_shrinkage(self, X, sample_weight):
        """Learn from X, all rows at once, how much to shrink; X is None where they are not at hand."""

    def _solve(self):
        """Compute the fitted parameters from the moments."""
        raise NotImplementedError

    @staticmethod
    def _map_chunks(function, X):
        """Return ``function(rows)`` over bounded chunks of rows as one array."""
        result = None
        for rows in row_chunks(X):
            chunk = function(X[rows])
            if result is None:
                result = np.empty((X.shape[0], chunk.shape[1]), dtype=working_dtype(X.dtype))
            result[rows] = chunk
        return result

    def _precision(self, dtype, deviations):
        """Return the dtype to compute in for X of `dtype`: float64 where parameters do not fit float32."""
        dtype = working_dtype(dtype)
        deviations = deviations[deviations > 0]
        limits = np.finfo(dtype)
        largest = max(np.abs(self.mean_).max(), deviations.max(initial=0))
        safe = largest < limits.max**0.75 and deviations.min(initial=1) > limits.tiny**0.75
        return dtype if safe else np.dtype(np.float64)

    def _centre(self, rows, dtype, exponent=0):
        """Return ``(rows - mean_) / 2**exponent`` as a new array of `dtype`, mean_ in full precision."""
        if exponent > 0:
            centred = np.ldexp(rows.astype(np.float64), -exponent) - np.ldexp(self.mean_, -exponent)
        elif exponent < 0:
            centred = np.ldexp(rows.astype(np.float64) - self.mean_, -exponent)
        else:
            # Two narrow subtractions are several times faster than one of mixed precision, and as exact.
            high = self.mean_.astype(dtype)
            centred = np.subtract(rows, high, out=np.empty(rows.shape, dtype=dtype), casting="same_kind")
            if dtype != np.float64:
                centred -= (self.mean_ - high).astype(dtype)
        return centred

    def _uncentre(self, centred, exponent=0, power=1.0):
        """Return ``centred * 2**(exponent * power) + mean_``, for a power from 0 to 1."""
        if exponent > 0:
            centred = centred * 2.0 ** (exponent * (power - 1)) + np.ldexp(self.mean_, -exponent)
            return np.ldexp(centred, exponent)
        if exponent < 0:
            return centred * 2.0 ** (exponent * power) + self.mean_
        return centred + self.mean_.astype(centred.dtype)


class PrincipalCalibrator(LinearCalibrator):
    """Base class of the calibrators that rest on the principal axes of the rows."""

    _full_covariance = True

    @property
    def covariance_(self) -> np.ndarray:
        """Population covariance of the rows seen, ndarray of shape (n_features, n_features)."""
        check_is_fitted(self)
        return saturated(self._second_moment, 2 * self._exponent)

    def _principal_axes(self, n_axes):
        """Decompose the covariance.

        Parameters
        ----------
        n_axes : int
            How many axes, from 0 to n_features.

        Returns
        -------
        axes : ndarray of shape (n_axes, n_features)
            Orthonormal rows, leading first, signed so that the entry of largest magnitude is positive.
        deviations : ndarray of shape (n_axes,)
            Standard deviations along them; what is below the rounding error of the covariance is 0.
        """
        n_features = len(self.mean_)
        if n_axes == 0:
            return np.empty((0, n_features)), np.empty(0)
        leading = None if n_axes == n_features else [n_features - n_axes, n_features - 1]
        variances, vectors = eigh(self._second_moment, subset_by_index=leading, check_finite=False)
        variances, axes = variances[::-1], np.ascontiguousarray(vectors.T[::-1])
        largest = axes[np.arange(n_axes), np.abs(axes).argmax(axis=1)]
        axes *= np.sign(largest)[:, np.newaxis]
        noise = n_features * np.finfo(np.float64).eps * max(variances[0], 0)
        deviations = np.sqrt(np.where(variances > noise, variances, 0))
        return axes, np.ldexp(deviations, self._exponent)

    @staticmethod
    def _scaling_exponent(deviations):
        """Return the binary exponent to scale rows by, 0 unless their size is extreme."""
        exponent = int(np.frexp(deviations.max(initial=0))[1]) - 1
        return exponent if abs(exponent) > 300 else 0


def saturated(values, exponent):
    """Return ``values * 2**exponent``, cut to the largest float64 where it would overflow."""
    with np.errstate(over="ignore"):
        return np.clip(np.ldexp(values, exponent), -_LARGEST, _LARGEST)
