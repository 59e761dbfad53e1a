"""Exact neighbors against scikit-learn's and against all pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from skflow.inspection import _neighbors
from skflow.inspection._neighbors import neighbor_profile


def by_hand(X, rows, k):
    """All pairs in float64, one row at a time."""
    X = X.astype(np.float64)
    results = []
    for row in rows:
        others = np.delete(np.arange(len(X)), row)
        distances = np.linalg.norm(X[others] - X[row], axis=1)
        dots = X[others] @ X[row]
        order = np.argsort(distances, kind="stable")[:k]
        results.append((distances[order], dots[order], -np.sort(-dots)[:k]))
    return [np.array(parts) for parts in zip(*results, strict=True)]


@settings(deadline=None, max_examples=40, derandomize=True)
@given(
    n=st.integers(2, 300),
    d=st.integers(1, 9),
    k=st.integers(1, 12),
    seed=st.integers(0, 2**16),
    wide=st.booleans(),
    block=st.sampled_from([1, 700, 2**22]),
)
def test_all_pairs(n, d, k, seed, wide, block):
    k = min(k, n - 1)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(np.float64 if wide else np.float32)
    rows = rng.permutation(n)[: rng.integers(1, n + 1)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_neighbors, "_BLOCK", block)
        found = neighbor_profile(X, rows, k)
    tolerance = 1e-10 if wide else 1e-4
    for ours, theirs in zip(found, by_hand(X, rows, k), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def test_agrees_with_scikit_learn(rng):
    X = rng.standard_normal((2000, 30)).astype(np.float32)
    theirs, _ = NearestNeighbors(algorithm="brute").fit(X).kneighbors(X, 8)
    distance, _, _ = neighbor_profile(X, np.arange(2000), 7)
    np.testing.assert_allclose(distance, theirs[:, 1:], rtol=1e-5)


def test_an_equal_vector_is_a_neighbour_and_a_vector_itself_is_not():
    X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 3.0]])
    distance, dot, largest = neighbor_profile(X, np.array([0, 2]), 1)
    np.testing.assert_array_equal(distance, [[0], [np.sqrt(10)]])
    np.testing.assert_array_equal(dot, [[1], [0]])
    np.testing.assert_array_equal(largest, [[1], [0]])


def test_no_digits_are_lost_between_vectors_that_nearly_coincide(rng):
    # The squares of the lengths are 1e6 times those of the distances.
    X = (10 + 0.01 * rng.standard_normal((500, 20))).astype(np.float32)
    rows = np.arange(100)
    distance, _, _ = neighbor_profile(X, rows, 3)
    expected, _, _ = by_hand(X, rows, 3)
    np.testing.assert_allclose(distance, expected, rtol=1e-4)
