"""Brings features of extraordinary scale into the range that BERT-flow's recipe is made for."""

import math

import numpy as np

from ._base import working_dtype

# The recipe moves every parameter by about the learning rate at each update, whatever the scale of its
# feature: biases of a feature with a spread of 1e-6 jump by a thousand standard deviations. Sentence vectors
# have spreads between 0.01 and 10; they are left exactly as they are.
SPREAD_RANGE = (1e-2, 1e2)
MAX_OFFSET_IN_SPREADS = 1e3
# No value may be further away than this from the center of its feature, in spreads: float32 ends at 3e38 and
# the likelihood squares.
MAX_DISTANCE_IN_SPREADS = 1e12
# A spread so far below the median of all is that of a dead feature: rounding noise. The recipe itself leaves
# it out, by adding 1e-6 to the standard deviations that it divides by.
DEAD_SPREAD = 1e-6
# Quantiles are taken of so many rows at the most, evenly spaced.
MAX_SAMPLE = 1000


def input_scaling(X, *, standardize):
    """Return what to subtract from each feature of X and what to divide it by.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Finite; only read, a memory map too.
    standardize : bool
        Whether to bring every feature to median 0 and spread 1, and not only those that need it.

    Returns
    -------
    offset, scale : ndarray of shape (n_features,)
        In float64. (0, 1) for a feature of ordinary scale; (median, 1) for one that is constant, up to the
        precision of its dtype or beside the other features; (median, spread) for any other, where the spread
        is the interquartile range over 1.349 (that of a Gaussian), or the standard deviation where half of
        the values are equal.
    """
    dtype = working_dtype(X.dtype)
    resolution = 16 * np.finfo(dtype).eps
    lowest, highest = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    peak = np.maximum(-lowest, highest)
    peak = np.exp2(np.ceil(np.log2(np.where(peak > 0, peak, 1.0))))  # a power of 2: dividing by it is exact
    sample = X[:: math.ceil(len(X) / MAX_SAMPLE)] / peak.astype(dtype)
    quartile1, median, quartile3 = quartiles(sample)
    spread = (quartile3 - quartile1) / 1.349
    spread = np.where(spread > 0, spread, sample.std(axis=0, dtype=np.float64))
    distance = np.maximum(highest / peak - median, median - lowest / peak)
    is_constant = np.maximum(spread, distance / MAX_DISTANCE_IN_SPREADS) <= resolution * np.abs(median)
    spread = np.maximum(spread, distance / MAX_DISTANCE_IN_SPREADS)
    median, spread = median * peak, spread * peak
    if not is_constant.all():
        is_constant |= spread <= DEAD_SPREAD * np.median(spread[~is_constant])
    is_ordinary = (
        (spread >= SPREAD_RANGE[0])
        & (spread <= SPREAD_RANGE[1])
        & (np.abs(median) <= MAX_OFFSET_IN_SPREADS * spread)
        & (not standardize)
    )
    offset = np.where(is_ordinary, 0.0, median)
    scale = np.where(is_ordinary | is_constant | (spread == 0), 1.0, spread)
    return offset, scale


def quartiles(X):
    """Return the quartiles of each column, in float64; numpy.percentile takes several times as long."""
    ordered = np.sort(X, axis=0)
    position = np.array([[0.25], [0.5], [0.75]]) * (len(X) - 1)
    below = np.floor(position).astype(int)[:, 0]
    low, high = ordered[below].astype(np.float64), ordered[below + (position[:, 0] > below)]
    return low + (high - low) * (position % 1)


def typical_rows(X):
    """Return the rows of X without those far from all others in some feature, unless that is every row.

    One outlier among the rows that initialize an ActNorm would make its scale so small that the other rows
    become one point.
    """
    quartile1, median, quartile3 = quartiles(X)
    spread = quartile3 - quartile1
    is_typical = (np.abs(X - median) <= np.where(spread > 0, MAX_OFFSET_IN_SPREADS * spread, np.inf)).all(
        axis=1
    )
    return X[is_typical] if is_typical.any() else X
