"""How far the features of vectors are from Gaussian ones."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.special
from numpy.typing import ArrayLike
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import check_array

from .._magnitudes import check_magnitudes, to_numpy

# The spread of a constant feature is not quite zero after rounding.
_ROUNDING = 1e-6


@dataclass(eq=False)
class Normality:
    """How far each feature is from a Gaussian one, as `normality` measures it.

    Attributes
    ----------
    mean, std : ndarray of shape (n_features,)
        Mean and standard deviation; 0 and 1 are what the flow is fitted to.
    ks : ndarray of shape (n_features,)
        Kolmogorov-Smirnov statistic against N(0, 1), from 0 to 1.
    ks_shape : ndarray of shape (n_features,)
        The same after the feature is standardized: the shape alone, without location and scale.
    skewness, excess_kurtosis : ndarray of shape (n_features,)
        0 and 0 for a Gaussian one.
    """

    mean: np.ndarray
    std: np.ndarray
    ks: np.ndarray
    ks_shape: np.ndarray
    skewness: np.ndarray
    excess_kurtosis: np.ndarray


def normality(X: ArrayLike) -> Normality:
    r"""Measure how far each feature is from a Gaussian one.

    A flow maps vectors to a latent of standard Gaussian features. The Kolmogorov-Smirnov statistic

    .. math:: \sup_t |F_n(t) - \Phi(t)|

    is the largest difference between the share of values up to t and what a standard Gaussian has there
    (Kolmogorov, 1933; Smirnov, 1948, doi:10.1214/aoms/1177730256). Features are looked at one by one: that
    each is Gaussian does not make them independent.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Vectors, at least two.

    Returns
    -------
    result : Normality
        The statistics of every feature.

    Raises
    ------
    ValueError
        If `X` is not a finite 2-D array of at least two rows.

    Warns
    -----
    UndefinedMetricWarning
        If a feature is constant, which leaves it without a shape: skewness, kurtosis and `ks_shape` are nan.

    Notes
    -----
    There are no p-values on purpose: with thousands of rows, deviations of no consequence are significant.
    A sample of n independent standard Gaussian values has a statistic above :math:`1.36 / \sqrt n` once in
    twenty times.

    Examples
    --------
    >>> import numpy as np
    >>> from skflow.inspection import normality
    >>> X = np.random.RandomState(0).uniform(size=(1000, 1))
    >>> result = normality(X)
    >>> bool(result.ks[0] > 0.4), bool(result.ks_shape[0] < 0.1)  # far from N(0, 1), near in shape
    (True, True)
    """
    X = check_array(to_numpy(X), dtype=np.float64, ensure_min_samples=2, input_name="X")
    check_magnitudes(X)
    result = measure_normality(X)
    n_constant = np.count_nonzero(np.isnan(result.ks_shape))
    if n_constant:
        warnings.warn(
            f"{n_constant} of {len(result.ks_shape)} features are constant: their skewness, kurtosis and "
            "ks_shape are nan.",
            UndefinedMetricWarning,
            stacklevel=2,
        )
    return result


def measure_normality(X):
    """Do what `normality` does for a finite float64 array, without a warning."""
    mean, std = X.mean(axis=0), X.std(axis=0)
    Z = (X - mean) / np.where(std <= _ROUNDING * np.abs(mean), np.nan, std)
    return Normality(
        mean=mean,
        std=std,
        ks=ks_statistic(X),
        ks_shape=ks_statistic(Z),
        skewness=np.mean(Z**3, axis=0),
        excess_kurtosis=np.mean(Z**4, axis=0) - 3,
    )


def ks_statistic(X):
    """Return the Kolmogorov-Smirnov statistic of every column against N(0, 1); nan for columns of nan."""
    n = len(X)
    cdf = scipy.special.ndtr(np.sort(X, axis=0))
    steps = np.arange(n + 1)[:, None] / n
    return np.maximum(np.max(steps[1:] - cdf, axis=0), np.max(cdf - steps[:-1], axis=0))
