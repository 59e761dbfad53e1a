"""Shuffled minibatches of an array that may be larger than memory."""

import itertools
import math

import numpy as np

# Up to this size rows are drawn from everywhere at random; beyond it the array may be a file, and is read in
# blocks of neighboring rows, a bufferful of randomly chosen blocks at a time.
RANDOM_ACCESS_BYTES = 2**28
BLOCK_BYTES = 2**16
BUFFER_BYTES = 2**26


def hold_out(n_rows, fraction, rng):
    """Return the indices of the rows to train on and of those held out; None for all and none."""
    if not fraction:
        return None, None
    if n_rows < 2:
        raise ValueError(f"early_stopping=True needs at least 2 samples, got n_samples={n_rows}")
    n_held_out = min(max(1, round(fraction * n_rows)), n_rows - 1)
    order = rng.permutation(n_rows)
    return np.sort(order[n_held_out:]), np.sort(order[:n_held_out])


def split_evenly(n_rows, batch_size):
    """Return the bounds of ceil(n_rows / batch_size) batches whose sizes differ by at most one."""
    n_batches = math.ceil(n_rows / batch_size)
    return np.linspace(0, n_rows, n_batches + 1).astype(np.intp)


class ShuffledEpochs:
    """Minibatches without end, every row once an epoch, each epoch in a new random order.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Only read, a memory map too.
    rows : ndarray of int, or None
        Which rows of X to take, in increasing order; None for all.
    batch_size : int
        Rows per batch; where it does not divide their number, all batches are a little smaller.
    rng : numpy.random.RandomState
        Asked for an order when an epoch begins.

    Attributes
    ----------
    n_rows : int
        Rows of an epoch.
    bounds : ndarray of int
        Where the batches of an epoch begin and end.
    """

    def __init__(self, X, rows, batch_size, rng):
        self.X, self._rows, self._batch_size, self._rng = X, rows, batch_size, rng
        self.n_rows = len(X) if rows is None else len(rows)
        self.bounds = split_evenly(self.n_rows, batch_size)
        self._row_bytes = max(1, X.shape[1] * X.itemsize)

    def take(self, index):
        """Return the rows of X at positions among the rows to take."""
        return self.X[index if self._rows is None else self._rows[index]]

    @property
    def _is_small(self):
        return self.n_rows * self._row_bytes <= RANDOM_ACCESS_BYTES

    def order(self):
        """Yield the positions of the rows of one epoch in random order, in pieces that are read at once."""
        if self._is_small:
            yield self._rng.permutation(self.n_rows)
            return
        block = max(1, BLOCK_BYTES // self._row_bytes)
        starts = self._rng.permutation(math.ceil(self.n_rows / block)) * block
        blocks_per_buffer = max(
            BUFFER_BYTES // (block * self._row_bytes), math.ceil(self._batch_size / block)
        )
        for first in range(0, len(starts), blocks_per_buffer):
            chosen = starts[first : first + blocks_per_buffer]
            piece = np.concatenate([np.arange(start, min(start + block, self.n_rows)) for start in chosen])
            self._rng.shuffle(piece)
            yield piece

    def epoch(self):
        """Yield the batches of one epoch, as arrays of shape (at most batch_size, d)."""
        if self._is_small:
            (order,) = self.order()
            for start, stop in itertools.pairwise(self.bounds):
                yield self.take(order[start:stop])
            return
        pending = self.X[:0]
        sizes = iter(np.diff(self.bounds))
        size = next(sizes)
        for piece in self.order():
            # Read in the order of the file, then shuffle in memory.
            order = np.argsort(piece)
            buffer = np.empty((len(pending) + len(piece), self.X.shape[1]), dtype=self.X.dtype)
            buffer[: len(pending)] = pending
            buffer[len(pending) + order] = self.take(piece[order])
            start = 0
            while size is not None and start + size <= len(buffer):
                yield buffer[start : start + size]
                start += size
                size = next(sizes, None)
            pending = buffer[start:].copy()

    def __iter__(self):
        while True:
            yield from self.epoch()


def batches_in_order(X, batch_size):
    """Yield one epoch of minibatches in the order of the rows, of nearly equal size."""
    for start, stop in itertools.pairwise(split_evenly(len(X), batch_size)):
        yield X[start:stop]
