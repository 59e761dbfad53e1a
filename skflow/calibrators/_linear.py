"""What the closed-form calibrators share: streamed moments, transform in chunks, principal axes."""

from numbers import Real
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from sklearn.utils.validation import _check_sample_weight, _num_samples

from .._typing import fit_context
from ._base import BaseCalibrator, working_dtype
from ._moments import RunningMoments, centered, row_chunks


class LinearCalibrator(BaseCalibrator):
    """Base class of the calibrators that are affine maps computed from means and second moments.

    A subclass says in `_second_moment` under which name it keeps its variances or covariance, computes its
    parameters from them in `_solve`, and maps a chunk of centered rows.
    """

    _second_moment = "_variance"

    @fit_context(prefer_skip_nested_validation=True)
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
            If X or sample_weight is not finite, or does not have the right shape, or all weights are zero, or
            their sum overflows, or if a parameter of the calibrator does not suit X, or if the largest
            magnitude in X is above 1e30 or, unless all of X is zero, below 1e-30. The calibrator then stays
            as it was.

        Examples
        --------
        >>> import numpy as np
        >>> from skflow.calibrators import StandardNormalizationCalibrator
        >>> calibrator = StandardNormalizationCalibrator()
        >>> calibrator.fit(np.array([[1.0], [3.0]]), sample_weight=[3, 1]).mean_
        array([1.5])
        """
        with self._restored_on_failure():
            self._accumulate(X, sample_weight, reset=True, is_all=True)
        self._warn_of_one_row(_num_samples(X))
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Go on learning from more rows; the result is that of `fit` on all rows together.

        The parameters are computed anew after each call. Where that takes a decomposition of a covariance,
        whose cost is cubic in the number of features, few large pieces are faster than many small ones.

        :class:`WhiteningCalibrator` is the exception to the first sentence: where rows are fewer than
        features, `fit` can shrink the covariance, for which it needs all rows at once, and `partial_fit` does
        not.

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
        with self._restored_on_failure():
            return self._accumulate(X, sample_weight, reset=not hasattr(self, "n_samples_seen_"))

    def _accumulate(self, X, sample_weight, *, reset, is_all=False):
        X = self._validate_rows(X, reset=reset)
        n_before = 0 if reset else self.n_samples_seen_
        if sample_weight is not None:
            sample_weight = self._check_weight(sample_weight, X, n_before)
        self._check_parameters(X)
        if reset:
            moments = RunningMoments.empty(X.shape[1], full=self._second_moment == "covariance_")
        else:
            moments = RunningMoments(n_before, self.mean_, self._residual, getattr(self, self._second_moment))
        moments.update(X, sample_weight)
        # What X cannot resolve is no variation. Integers are exact, floats are as fine as their precision.
        resolution = float(np.finfo(X.dtype).eps) if X.dtype.kind == "f" else 0.0
        self._resolution = max(resolution, 0.0 if reset else self._resolution)
        self.n_samples_seen_ = moments.n_samples
        self.mean_ = moments.mean
        self._residual = moments.residual
        setattr(self, self._second_moment, moments.second)
        self._choose_shrinkage(X if is_all else None, sample_weight)
        self._solve()
        return self

    def _check_fitted_state(self):
        super()._check_fitted_state()
        for name in ("n_samples_seen_", "_resolution"):
            value = getattr(self, name, None)
            if not isinstance(value, Real) or not 0 <= value < np.inf:
                raise ValueError(f"{name} is {value!r}, expected a number from 0 up")
        if np.any(getattr(self, "scale_", 1.0) <= 0):
            raise ValueError("scale_ is not positive")
        if np.any(getattr(self, "_deviations", 0.0) < 0):
            raise ValueError("_deviations is negative")

    @staticmethod
    def _check_weight(sample_weight, X, n_before):
        """Return the weights as a float64 array, or raise ValueError where they add up to nothing finite."""
        with np.errstate(over="ignore"):
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            total = n_before + weight.sum()
        if not weight.any():
            raise ValueError("sample_weight has no positive entry: at least one row must have weight.")
        if not np.isfinite(total):
            raise ValueError(
                f"the sum of sample_weight overflows (its largest entry is {weight.max():.3g}): rescale it."
            )
        return weight

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

    def _center(self, rows, dtype):
        """Return ``rows - mean_`` as a new array of `dtype`, mean_ in full precision."""
        return centered(rows, self.mean_, dtype)

    def _centering(self, dtype):
        """Return the operations of `_center`."""
        high = self.mean_.astype(dtype)
        return [("subtract", high), ("subtract", self.mean_ - high)]

    def _uncenter(self, centered):
        """Return ``centered + mean_`` in the dtype of `centered`."""
        return centered + self.mean_.astype(centered.dtype)


class PrincipalCalibrator(LinearCalibrator):
    """Base class of the calibrators that rest on the principal axes of the rows."""

    _second_moment = "covariance_"

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
        variances, vectors = eigh(self.covariance_, subset_by_index=leading, check_finite=False)
        variances, axes = variances[::-1], np.ascontiguousarray(vectors.T[::-1])
        fix_signs(axes)
        noise = n_features * np.finfo(np.float64).eps * max(variances[0], 0)
        deviations = np.sqrt(np.where(variances > noise, variances, 0))
        return axes, deviations


def fix_signs(axes):
    """Give each row the sign, in place, with which its entry of largest magnitude is positive."""
    largest = axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)]
    axes *= np.sign(largest)[:, np.newaxis]
