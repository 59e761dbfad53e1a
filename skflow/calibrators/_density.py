"""What follows from a likelihood and an inverse: a score, and samples."""

from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted


class DensityMixin:
    """Mixin of a calibrator that is a density: it has `score_samples`, and a Gaussian latent to draw."""

    if TYPE_CHECKING:

        def score_samples(self, X: ArrayLike) -> np.ndarray: ...

    def score(self, X: ArrayLike, y: ArrayLike | None = None) -> float:
        """Compute the mean log-likelihood of X, in nats per row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors.
        y : None
            Ignored.

        Returns
        -------
        log_likelihood : float
            The mean.

        Raises
        ------
        NotFittedError
            If the calibrator is not fitted.
        ValueError
            If X is not finite or does not have the number of features seen in fit.
        """
        return float(self.score_samples(X).mean())

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> np.ndarray:
        """Draw vectors from the fitted density.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState instance or None, default=None
            Draws the Gaussian latents that are mapped back.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            In the dtype that the flow was fitted in.

        Raises
        ------
        ValueError
            If `n_samples` is not a positive integer.
        """
        check_is_fitted(self, "parameters_")
        if not isinstance(n_samples, Integral) or isinstance(n_samples, bool) or n_samples < 1:
            raise ValueError(f"n_samples must be an integer of at least 1, got {n_samples!r}")
        latents = check_random_state(random_state).standard_normal((n_samples, self.n_features_in_))
        return self.inverse_transform(self._after(latents).astype(self._dtype))
