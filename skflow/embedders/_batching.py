"""Batches of texts of similar length."""

import itertools
import time

import numpy as np

# Tokens of a batch, padding included, per unit of `batch_size`. The activations of 64 x 16 tokens fit the
# caches of a CPU, which was measured to be fastest; a GPU wants more to do at once.
TOKENS_PER_TEXT = {"cpu": 16}
TOKENS_PER_TEXT_ELSEWHERE = 128
# What one more forward pass costs beside its tokens, as a share of the tokens of a full batch. Up to this
# price, padding is saved by more batches.
COST_OF_A_PASS = 1 / 32


def batches(rows, lengths, batch_size, device, *, by_length):
    """Split rows sorted by length into batches.

    Parameters
    ----------
    rows : ndarray of shape (n_rows,)
        Positions of the texts, the longest first.
    lengths : ndarray of shape (n_texts,)
        Their lengths in tokens.
    batch_size : int
        Texts of 16 tokens on a CPU, of 128 elsewhere, in a batch.
    device : torch.device
    by_length : bool
        Whether only texts of equal length may share a batch.

    Yields
    ------
    batch : ndarray
        Consecutive rows.
    """
    budget = batch_size * TOKENS_PER_TEXT.get(device.type, TOKENS_PER_TEXT_ELSEWHERE)
    groups = np.split(rows, np.flatnonzero(np.diff(lengths[rows])) + 1) if by_length else [rows]
    for group in groups:
        yield from split(group, lengths, budget)


def split(rows, lengths, budget):
    """Split rows sorted by length, longest first, into batches that cost least in all.

    A batch costs its tokens, padding included, and a constant for being one more forward pass. Which cuts are
    best up to a row follows from the best cuts up to the rows before it.

    Parameters
    ----------
    rows : ndarray of shape (n_rows,)
        Positions of the texts.
    lengths : ndarray of shape (n_texts,)
        Their lengths in tokens.
    budget : int
        Most tokens of a batch, padding included; a longer text is a batch of its own.

    Yields
    ------
    batch : ndarray
        Consecutive rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skflow.embedders._batching import split
    >>> [batch.tolist() for batch in split(np.arange(5), np.array([9, 4, 4, 2, 2]), 8)]
    [[0], [1, 2], [3, 4]]
    """
    n = len(rows)
    sizes = lengths[rows].astype(np.float64)
    numbers = np.arange(n + 1)
    costs = np.zeros(n + 1)
    starts = np.zeros(n + 1, dtype=np.int64)
    first = 0  # of the longest batch that may end before `stop`
    for stop in range(1, n + 1):
        while first < stop - 1 and (stop - first) * sizes[first] > budget:
            first += 1
        choices = costs[first:stop] + (stop - numbers[first:stop]) * sizes[first:stop]
        best = int(choices.argmin())
        starts[stop], costs[stop] = first + best, choices[best] + budget * COST_OF_A_PASS
    cuts = [n]
    while cuts[-1] > 0:
        cuts.append(int(starts[cuts[-1]]))
    for start, stop in itertools.pairwise(reversed(cuts)):
        yield rows[start:stop]


def timed_parts(rows, size, seconds):
    """Split rows into parts that take no longer than so many seconds each, one row at least.

    Parameters
    ----------
    rows : sequence
        What to split.
    size : int
        Length of the first part. How long the consumer takes for one sets that of the next.
    seconds : float
        Time for a part.

    Yields
    ------
    part : sequence
        Consecutive rows.

    Examples
    --------
    >>> from skflow.embedders._batching import timed_parts
    >>> [len(part) for part in timed_parts(range(100), 10, 60)]
    [10, 20, 40, 30]
    """
    first = 0
    while first < len(rows):
        start = time.monotonic()
        yield rows[first : first + size]
        first += size
        share = seconds / max(time.monotonic() - start, 1e-9)
        size = max(1, int(size * min(2, share)))
