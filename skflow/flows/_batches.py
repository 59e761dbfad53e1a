"""Shuffled minibatches of an array that may be larger than memory."""

import itertools

import numpy as np

# Up to this size rows are drawn from everywhere at random; beyond it the array may be a file, and is read in
# blocks of neighbouring rows, a bufferful of randomly chosen blocks at a time.
RANDOM_ACCESS_BYTES = 2**28
BLOCK_BYTES = 2**16
BUFFER_BYTES = 2**26


def split_evenly(n_rows, batch_size):
    """Return the bounds of ceil(n_rows / batch_size) batches whose sizes differ by at most one."""
    n_batches = -(-n_rows // batch_size)
    return np.linspace(0, n_rows, n_batches + 1).astype(np.intp)


def shuffled_batches(X, rows, batch_size, rng):
    """Yield one epoch of minibatches, every row once, in random order.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Only read, a memory map too.
    rows : ndarray of int, or None
        Which rows of X to take, in increasing order; None for all.
    batch_size : int
        Rows a batch; where it does not divide their number, all batches are a little smaller.
    rng : numpy.random.RandomState

    Yields
    ------
    batch : ndarray of shape (at most batch_size, d)
    """
    n_rows = len(X) if rows is None else len(rows)
    row_bytes = max(1, X.shape[1] * X.itemsize)
    bounds = split_evenly(n_rows, batch_size)
    if n_rows * row_bytes <= RANDOM_ACCESS_BYTES:
        order = rng.permutation(n_rows) if rows is None else rng.permutation(rows)
        for start, stop in itertools.pairwise(bounds):
            yield X[order[start:stop]]
        return
    block = max(1, BLOCK_BYTES // row_bytes)
    starts = rng.permutation(-(-n_rows // block)) * block
    blocks_per_buffer = max(BUFFER_BYTES // (block * row_bytes), -(-batch_size // block))
    pending = X[:0]
    sizes = iter(np.diff(bounds))
    size = next(sizes)
    for first in range(0, len(starts), blocks_per_buffer):
        chosen = starts[first : first + blocks_per_buffer]
        index = np.concatenate([np.arange(start, min(start + block, n_rows)) for start in chosen])
        rng.shuffle(index)
        if rows is not None:
            index = rows[index]
        # Read in the order of the file, then shuffle in memory.
        order = np.argsort(index)
        buffer = np.empty((len(pending) + len(index), X.shape[1]), dtype=X.dtype)
        buffer[: len(pending)] = pending
        buffer[len(pending) + order] = X[index[order]]
        start = 0
        while size is not None and start + size <= len(buffer):
            yield buffer[start : start + size]
            start += size
            size = next(sizes, None)
        pending = buffer[start:].copy()
