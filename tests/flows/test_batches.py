"""Minibatches: every row once an epoch, in random order, for arrays of any size."""

import numpy as np
import pytest

from skflow.flows import _batches
from skflow.flows._batches import ShuffledEpochs, split_evenly


@pytest.mark.parametrize(
    ("n_rows", "batch_size"), [(1, 64), (64, 64), (65, 64), (100, 64), (1280, 64), (7, 1)]
)
def test_sizes_differ_by_at_most_one(n_rows, batch_size):
    sizes = np.diff(split_evenly(n_rows, batch_size))
    assert sizes.sum() == n_rows
    assert len(sizes) == -(-n_rows // batch_size)
    assert sizes.max() <= batch_size
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("access", ["random", "blocks"])
@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize("batch_size", [1, 7, 64, 5000])
def test_every_row_once(access, some, batch_size, monkeypatch):
    if access == "blocks":
        monkeypatch.setattr(_batches, "RANDOM_ACCESS_BYTES", 0)
        monkeypatch.setattr(_batches, "BLOCK_BYTES", 80)
        monkeypatch.setattr(_batches, "BUFFER_BYTES", 800)
    X = np.arange(2000.0).reshape(1000, 2)
    rows = np.sort(np.random.RandomState(1).permutation(1000)[:700]) if some else None
    expected = X if rows is None else X[rows]
    batches = list(ShuffledEpochs(X, rows, batch_size, np.random.RandomState(0)).epoch())
    assert [len(batch) for batch in batches] == list(np.diff(split_evenly(len(expected), batch_size)))
    seen = np.concatenate(batches)
    np.testing.assert_array_equal(seen[np.argsort(seen[:, 0])], expected)
    again = np.concatenate(list(ShuffledEpochs(X, rows, batch_size, np.random.RandomState(0)).epoch()))
    np.testing.assert_array_equal(seen, again)
    # Of the blocks' random order the correlation with the order they came in has standard deviation 1 /
    # sqrt(n).
    assert abs(np.corrcoef(seen[:, 0], np.arange(len(seen)))[0, 1]) < 5 / np.sqrt(100)
