"""What stands before and after a flow: a scaling, or a whitening whose spectrum is given back in part."""

from functools import cached_property

import numpy as np
from scipy.linalg import svd

from ._whitening import WhiteningCalibrator

# Deviations below this share of the largest are rounding errors of the vectors: every encoder that ends in a
# layer normalization has a direction of them. A map that has an inverse can drop no direction. So they count
# as that large, which leaves them next to nothing of the spectrum.
MIN_DEVIATION = 1e-5
MAX_OFFSET = 1e300


def fit_linear_stage(X):
    """Learn the whitening of X.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)

    Returns
    -------
    stage : dict of str to ndarray
        "mean", "axes" (rows, orthonormal) and positive "deviations" along them.
    strength : float
        The strength that :class:`WhiteningCalibrator` chooses for X.
    """
    whitening = WhiteningCalibrator(strength="auto").fit(X)
    deviations = whitening._deviations
    # From one row nothing can be learned but the mean: no axis is divided by anything.
    deviations = deviations if deviations[0] > 0 else np.ones_like(deviations)
    largest = deviations[0]
    stage = {
        "mean": whitening.mean_,
        "axes": whitening.components_,
        "deviations": np.maximum(deviations, MIN_DEVIATION * largest),
    }
    return stage, whitening.strength_


def input_deviations(stage):
    """Return what the principal axes are divided by before the flow.

    Rounding errors are divided by the largest deviation, not by their own: the flow, which brings features to
    variance 1 unless they are next to constant, would make noise of them as large as any signal.
    """
    deviations = stage["deviations"]
    return np.where(deviations > MIN_DEVIATION * deviations[0], deviations, deviations[0])


class Frame:
    """The maps before and after a flow, with their matrices made once.

    Parameters
    ----------
    offset, scale : ndarray of shape (n_features,)
    stage : dict of str to ndarray, or None
        From :func:`fit_linear_stage`, with a "turn" beside it.
    strength : float

    Attributes
    ----------
    is_scaled : bool
        Whether `offset` and `scale` do anything.
    input_matrix, inverse_input_matrix : ndarray of shape (n_features, n_features)
        Of the whitening, ``(X - stage["mean"]) @ input_matrix``, and of its inverse.
    output_matrix, inverse_output_matrix : ndarray of shape (n_features, n_features)
        Turn latents back to the principal axes and restore the spectrum, and the inverse.
    """

    def __init__(self, offset, scale, stage, strength):
        self.offset, self.scale = offset, scale
        self.stage = stage
        self.strength = strength
        self.is_scaled = bool(np.any(offset != 0) or np.any(scale != 1))
        # The difference of such numbers could overflow, their quotients cannot.
        self._divides_first = bool(np.abs(offset).max() > MAX_OFFSET)

    @cached_property
    def input_matrix(self):
        return self.stage["axes"].T / input_deviations(self.stage)

    @cached_property
    def inverse_input_matrix(self):
        return self.stage["axes"] * input_deviations(self.stage)[:, np.newaxis]

    @cached_property
    def output_matrix(self):
        return self.stage["turn"] * self.stage["deviations"] ** (1 - self.strength)

    @cached_property
    def inverse_output_matrix(self):
        return (self.stage["turn"] * self.stage["deviations"] ** (self.strength - 1)).T

    def enter(self, X):
        """Turn vectors into what the flow sees."""
        if self._divides_first:
            X = X / self.scale - self.offset / self.scale
        elif self.is_scaled:
            X = (X - self.offset) / self.scale
        return X if self.stage is None else (X - self.stage["mean"]) @ self.input_matrix

    def leave(self, Y):
        """Invert :meth:`enter`."""
        if self.stage is not None:
            Y = Y @ self.inverse_input_matrix + self.stage["mean"]
        return Y * self.scale + self.offset if self.is_scaled else Y

    def restore(self, latents):
        """Give latents of the flow back a part of the spectrum, where it was taken away first."""
        return latents if self.stage is None else latents @ self.output_matrix

    def unrestore(self, Z):
        """Invert :meth:`restore`."""
        return Z if self.stage is None else Z @ self.inverse_output_matrix


def latent_rotation(flow, n_features):
    r"""Find the rotation that brings a flow's latents nearest to what it was given.

    Flows permute features. With y drawn evenly from the sphere of radius :math:`\sqrt{d}`, where a Gaussian
    of d dimensions has its mass, R minimises :math:`E \|f(y) R - y\|^2` among the orthogonal matrices
    (Procrustes' problem). The expectation is taken over the rows of one random orthogonal matrix and their
    negatives, by which an affine f is found exactly.

    Parameters
    ----------
    flow : callable
        ndarray of shape (n, n_features) to latents of the same shape.
    n_features : int

    Returns
    -------
    rotation : ndarray of shape (n_features, n_features)

    References
    ----------
    P. H. Schönemann (1966), "A generalized solution of the orthogonal Procrustes problem", Psychometrika
    31(1), doi:10.1007/BF02289451.
    """
    basis = np.linalg.qr(np.random.RandomState(0).standard_normal((n_features, n_features)))[0]
    basis *= np.sqrt(n_features)
    latents = flow(np.vstack([basis, -basis]))
    if not np.isfinite(latents).all():
        return np.eye(n_features)
    left, _, right = svd((latents[:n_features] - latents[n_features:]).T @ basis)
    return left @ right
