"""Exact nearest neighbors among many vectors, by products of blocks of rows."""

import numpy as np

# Entries of a block of scores: 16 MB in float32, and small enough to stay near the processor.
_BLOCK = 2**22
# Scores are searched in groups of so many columns.
_GROUP = 64
# Candidates beyond k, so that rounding in the product cannot push a neighbor out.
_SPARE = 8


def neighbor_profile(X, rows, k):
    """Find the k nearest other vectors of some vectors, once by distance and once by dot product.

    Every candidate is looked at: a block of dot products is one matrix product, from which the distances
    follow. The distances and dot products of what is found are then computed anew from the vectors, so that
    no digits are lost where vectors nearly coincide.

    Parameters
    ----------
    X : ndarray of shape (n_vectors, n_features)
        All vectors, float32 or float64; the search runs in the same precision.
    rows : ndarray of shape (n_queries,) of int
        The vectors whose neighbors are wanted. A vector is no neighbor of its own; an equal one is.
    k : int
        Number of neighbors, below n_vectors.

    Returns
    -------
    distance : ndarray of shape (n_queries, k)
        l2 distances to the k nearest vectors, increasing; float64.
    dot : ndarray of shape (n_queries, k)
        Dot products with the same vectors, in the same order.
    largest_dot : ndarray of shape (n_queries, k)
        The k largest dot products with any other vector, decreasing.

    Examples
    --------
    >>> import numpy as np
    >>> from skflow.inspection._neighbors import neighbor_profile
    >>> X = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 5.0]])
    >>> distance, dot, largest_dot = neighbor_profile(X, np.array([0]), 1)
    >>> distance.item(), dot.item(), largest_dot.item()
    (1.0, 2.0, 5.0)
    """
    n = len(X)
    n_candidates = min(k + _SPARE, n - 1)
    # Distances need the vectors centered, lest a common offset cost digits. With y = x - m, the products with
    # the others are x.x' = y.y' + m.x' + a constant of the row: one matrix product serves both.
    mean = X.mean(axis=0, dtype=np.float64).astype(X.dtype)
    Y = X - mean
    offsets = X @ mean
    half_squares = np.einsum("ij,ij->i", Y, Y) / 2
    size = max(1, _BLOCK // n)
    scores = np.empty((min(size, len(rows)), n), dtype=X.dtype)
    distance, dot, largest_dot = (np.empty((len(rows), k)) for _ in range(3))
    for start in range(0, len(rows), size):
        own = rows[start : start + size]
        block = scores[: len(own)]
        np.matmul(Y[own], Y.T, out=block)
        block[np.arange(len(own)), own] = -np.inf
        products = _dots(X, own, _largest(block + offsets, n_candidates))
        part = slice(start, start + len(own))
        largest_dot[part] = -np.sort(-products, axis=1)[:, :k]
        block -= half_squares  # y.y' - |y'|^2 / 2 falls as |y - y'| grows
        found = _largest(block, n_candidates)
        squares = _squared_distances(X, own, found)
        order = np.argsort(squares, axis=1, kind="stable")[:, :k]
        distance[part] = np.sqrt(np.take_along_axis(squares, order, axis=1))
        dot[part] = _dots(X, own, np.take_along_axis(found, order, axis=1))
    return distance, dot, largest_dot


def _largest(scores, k):
    """Return the columns of the k largest scores of each row, in any order.

    Columns are taken in groups. If an entry is among the k largest, fewer than k groups have a larger
    maximum than its own, so that the k groups of the largest maxima hold all that is wanted: one pass over
    the scores, then a search among few.
    """
    n_rows, n = scores.shape
    n_groups = n // _GROUP
    if n_groups <= k:
        return np.argpartition(scores, n - k, axis=1)[:, n - k :]
    grouped = scores[:, : n_groups * _GROUP].reshape(n_rows, n_groups, _GROUP)
    groups = np.argpartition(grouped.max(axis=2), n_groups - k, axis=1)[:, n_groups - k :]
    values = np.take_along_axis(grouped, groups[:, :, None], axis=1).reshape(n_rows, -1)
    columns = (groups[:, :, None] * _GROUP + np.arange(_GROUP)).reshape(n_rows, -1)
    rest = np.arange(n_groups * _GROUP, n)
    values = np.hstack([values, scores[:, rest]])
    columns = np.hstack([columns, np.broadcast_to(rest, (n_rows, len(rest)))])
    places = np.argpartition(values, values.shape[1] - k, axis=1)[:, -k:]
    return np.take_along_axis(columns, places, axis=1)


def _squared_distances(X, rows, columns):
    # One column at a time: the differences of all of them at once would not fit the memory.
    parts = (X[rows] - X[column] for column in columns.T)
    return np.stack([np.einsum("ij,ij->i", d, d, dtype=np.float64) for d in parts], axis=1)


def _dots(X, rows, columns):
    A = X[rows]
    return np.stack([np.einsum("ij,ij->i", A, X[c], dtype=np.float64) for c in columns.T], axis=1)
