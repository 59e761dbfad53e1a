import itertools

import numpy as np
import pytest
import torch

from skflow.embedders._batching import COST_OF_A_PASS, batches, split, timed_parts


def cost(parts, lengths, budget):
    return sum(len(part) * lengths[part].max() + budget * COST_OF_A_PASS for part in parts)


def every_split(n):
    for cuts in itertools.chain.from_iterable(itertools.combinations(range(1, n), k) for k in range(n)):
        yield [np.arange(a, b) for a, b in itertools.pairwise((0, *cuts, n))]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("budget", [1, 40, 400])
def test_no_split_costs_less(seed, budget):
    lengths = np.sort(np.random.default_rng(seed).integers(1, 60, 9))[::-1]
    found = list(split(np.arange(9), lengths, budget))
    np.testing.assert_array_equal(np.concatenate(found), np.arange(9))
    fits = [
        parts
        for parts in every_split(9)
        if all(len(part) == 1 or len(part) * lengths[part].max() <= budget for part in parts)
    ]
    assert any([p.tolist() for p in parts] == [p.tolist() for p in found] for parts in fits)
    assert cost(found, lengths, budget) == pytest.approx(min(cost(parts, lengths, budget) for parts in fits))


def test_batches_by_length_hold_one_length_each():
    lengths = np.array([5, 3, 5, 3, 3, 1])
    rows = np.array([0, 2, 1, 3, 4, 5])
    found = list(batches(rows, lengths, 64, torch.device("cpu"), by_length=True))
    assert [batch.tolist() for batch in found] == [[0, 2], [1, 3, 4], [5]]


def test_nothing_makes_no_batch():
    assert list(split(np.arange(0), np.array([], dtype=int), 8)) == []


def test_parts_shrink_when_they_take_long(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    sizes = []
    for part in timed_parts(range(40), 20, seconds=1.0):
        sizes.append(len(part))
        now[0] += 0.2 * len(part)  # five rows in a second
    assert sizes == [20, 5, 5, 5, 5]
