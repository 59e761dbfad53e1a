"""Batches on the device of a flow: the same wherever the rows are."""

import itertools

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from skflow.flows import Glow, _batches, _residence
from skflow.flows._batches import ShuffledEpochs, batches_in_order
from skflow.flows._residence import batches_for, free_memory, resident_batches


def halved(rows):
    return rows / 2


@pytest.mark.parametrize("access", ["random", "blocks"])
@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize("buffer_bytes", [800, 2**26])
def test_resident_batches_are_those_that_are_read_one_by_one(access, some, buffer_bytes, monkeypatch):
    monkeypatch.setattr(_residence, "BUFFER_BYTES", buffer_bytes)
    if access == "blocks":
        monkeypatch.setattr(_batches, "RANDOM_ACCESS_BYTES", 0)
        monkeypatch.setattr(_batches, "BLOCK_BYTES", 80)
        monkeypatch.setattr(_batches, "BUFFER_BYTES", 800)
    X = np.arange(2000, dtype=np.float32).reshape(1000, 2)
    rows = np.sort(np.random.RandomState(1).permutation(1000)[:700]) if some else None
    flow = Glow(2)
    one_by_one, resident = (
        itertools.islice(batches(flow, ShuffledEpochs(X, rows, 64, np.random.RandomState(0)), halved), 40)
        for batches in (batches_for, resident_batches)
    )
    for expected, batch in zip(one_by_one, resident, strict=True):
        assert_array_equal(batch, expected)


def test_rows_are_resident_where_they_fit(monkeypatch):
    X = np.zeros((10, 4), dtype=np.float32)
    flow = Glow(4).to("meta")
    seen = []

    def before(rows):
        seen.append(len(rows))
        return rows

    def batches():
        return batches_for(flow, ShuffledEpochs(X, None, 5, np.random.RandomState(0)), before)

    # 160 bytes: more than half of 319, not of 320.
    monkeypatch.setattr(_residence, "free_memory", lambda device: 319)
    assert next(batches()).shape == (5, 4)
    assert seen.pop() == 5
    monkeypatch.setattr(_residence, "free_memory", lambda device: 320)
    assert next(batches()).device.type == "meta"
    assert seen.pop() == 10
    # A single pass needs no row twice.
    assert next(batches_for(flow, batches_in_order(X, 5), before)).shape == (5, 4)
    assert seen.pop() == 5


def test_no_memory_is_free_where_torch_does_not_say():
    assert free_memory(torch.device("meta")) == 0
