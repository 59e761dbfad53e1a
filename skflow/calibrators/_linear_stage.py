"""A whitening before a flow, and the spectrum given back in part after it."""

import numpy as np
from scipy.linalg import svd

from ._whitening import WhiteningCalibrator

# Deviations below this share of the largest are rounding errors of the vectors. They count as that large: a
# map that has an inverse can drop no direction.
MIN_DEVIATION = 1e-5


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
    largest = deviations[0] or 1.0
    stage = {
        "mean": whitening.mean_,
        "axes": whitening.components_,
        "deviations": np.maximum(deviations, MIN_DEVIATION * largest),
    }
    return stage, whitening.strength_


def input_map(stage):
    """Return the mean and the matrix of the whitening, ``(X - mean) @ matrix``."""
    return stage["mean"], stage["axes"].T / stage["deviations"]


def output_map(stage, strength):
    """Return the matrix that turns latents back to the principal axes and restores the spectrum."""
    return stage["turn"] * stage["deviations"] ** (1 - strength)


def inverse_output_map(stage, strength):
    """Return the inverse of :func:`output_map`."""
    return (stage["turn"] * stage["deviations"] ** (strength - 1)).T


def inverse_input_map(stage):
    """Return the mean and the matrix of the inverse of :func:`input_map`, ``Y @ matrix + mean``."""
    return stage["mean"], stage["axes"] * stage["deviations"][:, np.newaxis]


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
