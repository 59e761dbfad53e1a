"""The whitening before a flow, and the recoloring after it."""

import numpy as np
from scipy.linalg import svd

from ._affine import Affine
from ._whitening import WhiteningCalibrator, is_float32_enough

# Deviations below this share of the largest are rounding errors of the vectors: every encoder that ends in a
# layer normalization has a direction of them. A map that has an inverse can drop no direction. So they count
# as that large, which leaves them next to nothing of the spectrum.
MIN_DEVIATION = 1e-5


def fit_whitening(X):
    """Learn the whitening of X.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)

    Returns
    -------
    linear_parameters : dict of str to ndarray
        "mean", "axes" (rows, orthonormal), positive "deviations" along them, and "rotation", the identity.
    strength : float
        The strength that :class:`WhiteningCalibrator` chooses for X.
    """
    calibrator = WhiteningCalibrator(strength="auto").fit(X)
    deviations = np.sqrt(calibrator.explained_variance_)
    # From one row nothing can be learned but the mean: no axis is divided by anything.
    deviations = deviations if deviations[0] > 0 else np.ones_like(deviations)
    linear_parameters = {
        "mean": calibrator.mean_,
        "axes": calibrator.components_,
        "deviations": np.maximum(deviations, MIN_DEVIATION * deviations[0]),
        "rotation": np.eye(X.shape[1]),
    }
    return linear_parameters, calibrator.strength_


def check_linear_parameters(linear_parameters, n_features):
    """Raise ValueError where the arrays, which may come from anywhere, do not fit together."""
    if linear_parameters is None:
        return
    d = n_features
    for name, shape in {"mean": (d,), "axes": (d, d), "deviations": (d,), "rotation": (d, d)}.items():
        array = linear_parameters[name]
        if array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
            raise ValueError(f"linear_parameters_[{name!r}] is no finite float64 array of shape {shape}")
    if not np.all(linear_parameters["deviations"] > 0):
        raise ValueError("linear_parameters_['deviations'] is not positive")


def whitening(linear_parameters):
    """Return the map that whitens.

    Rounding errors are divided by the largest deviation, not by their own: the flow, which brings features to
    variance 1 unless they are next to constant, would make noise of them as large as any signal.
    """
    deviations = linear_parameters["deviations"]
    scale = np.where(deviations > MIN_DEVIATION * deviations[0], deviations, deviations[0])
    axes = linear_parameters["axes"].T
    narrow = is_float32_enough(deviations, 1 / scale)
    return Affine(linear_parameters["mean"], scale, axes, is_float32_enough=narrow)


def recoloring(linear_parameters, strength):
    """Return the map that rotates latents back to the axes and gives them a part of the spectrum."""
    deviations, rotation = linear_parameters["deviations"], linear_parameters["rotation"]
    gains = deviations ** (1 - strength)
    narrow = is_float32_enough(np.ones_like(gains), gains)
    return Affine(None, 1 / gains, rotation, is_float32_enough=narrow)


def latent_rotation(flow, n_features):
    r"""Find the rotation that brings a flow's latents nearest to what it was given.

    Flows permute features. With y drawn evenly from the sphere of radius :math:`\sqrt{d}`, where a Gaussian
    of d dimensions has its mass, R minimizes :math:`E \|f(y) R - y\|^2` among the orthogonal matrices
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
