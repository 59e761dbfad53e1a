"""Lexical overlap: by hand, and against the figure that the paper prints."""

import sys

import numpy as np
import pytest
from scipy.stats import ConstantInputWarning, spearmanr
from sklearn.exceptions import UndefinedMetricWarning

from skflow.datasets import load_mini_sts, load_sts
from skflow.inspection import lexical_overlap
from skflow.inspection._lexical import edit_distances

pytest.importorskip("rapidfuzz")

PAIRS = [
    ("A cat sat", "a cat sat"),
    ("a cat sat", "a dog sat"),
    ("a cat sat on the mat", "a dog"),
    ("rain", "it will not rain today"),
]


def levenshtein(a, b):
    """The textbook recurrence."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (x != y)))
    return row[-1]


@pytest.mark.parametrize(("unit", "cut"), [("word", str.split), ("character", list)])
def test_edit_distance(unit, cut):
    pairs = [*PAIRS, ("", ""), ("", "one two"), *load_mini_sts(subset="hard").pairs[:20].tolist()]
    first, second = zip(*pairs, strict=True)
    distances, normalized = edit_distances(first, second, unit)
    parts = [(cut(a.lower()), cut(b.lower())) for a, b in pairs]
    expected = [levenshtein(a, b) for a, b in parts]
    np.testing.assert_array_equal(distances, expected)
    lengths = [max(len(a), len(b), 1) for a, b in parts]
    np.testing.assert_allclose(normalized, np.divide(expected, lengths))


def test_correlations_are_scipys():
    gold, raw = [5.0, 2.0, 1.0, 3.0], [0.9, 0.95, 0.3, 0.4]
    result = lexical_overlap(PAIRS, {"raw": raw}, gold)
    distances = [0, 1, 5, 4]
    np.testing.assert_array_equal(result.distances, distances)
    assert list(result.edit_distance) == ["y_true", "raw"]
    assert result.edit_distance["y_true"] == pytest.approx(100 * spearmanr(distances, gold)[0])
    assert result.edit_distance["raw"] == pytest.approx(100 * spearmanr(distances, raw)[0])
    normalized = np.array([0, 1 / 3, 5 / 6, 4 / 5])
    assert result.normalized_edit_distance["raw"] == pytest.approx(100 * spearmanr(normalized, raw)[0])
    assert result.y_true["raw"] == pytest.approx(100 * spearmanr(gold, raw)[0])
    assert result.y_true["y_true"] == 100
    assert result.mean["raw"] == pytest.approx(np.mean(raw))
    assert result.within is None


def test_within_a_distance():
    similarity, gold = np.array([0.9, 0.95, 0.3, 0.4]), np.array([5.0, 2.0, 1.0, 3.0])
    result = lexical_overlap(PAIRS, similarity, gold, max_distance=4)
    alone = lexical_overlap([PAIRS[i] for i in (0, 1, 3)], similarity[[0, 1, 3]], gold[[0, 1, 3]])
    assert result.within.n_pairs == 3
    assert result.within.edit_distance == alone.edit_distance
    assert result.within.y_true == alone.y_true
    assert result.within.mean == alone.mean
    assert "edit distance <= 4" in repr(result)


def test_published_figure(shared):
    """Table 6 of BERT-flow: the gold scores of STS-B have -24.61."""
    data = load_sts("stsb", shared / "data" / "senteval", split="dev")
    result = lexical_overlap(data.pairs, data.score)
    assert result.edit_distance["similarity"] == pytest.approx(-24.61, abs=0.1)


def test_a_constant_similarity_is_nan_with_a_warning():
    with pytest.warns(ConstantInputWarning):
        result = lexical_overlap(PAIRS, [0.5] * 4)
    assert np.isnan(result.edit_distance["similarity"])


def test_one_pair_is_nan_with_a_warning():
    with pytest.warns(UndefinedMetricWarning):
        result = lexical_overlap(PAIRS[:1], [0.5], [1.0])
    assert np.isnan(result.edit_distance["y_true"])


def test_no_pair_within_the_distance_is_nan_with_a_warning():
    with pytest.warns(UndefinedMetricWarning, match="without any pairs"):
        result = lexical_overlap(PAIRS[1:], [0.1, 0.2, 0.3], max_distance=0)
    assert result.within.n_pairs == 0
    assert np.isnan(result.within.edit_distance["similarity"])
    assert np.isnan(result.within.mean["similarity"])


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"similarity": [0.1, 0.2]}, "inconsistent numbers of samples"),
        ({"similarity": [0.1, 0.2, np.nan, 0.3]}, "NaN"),
        ({"similarity": {}}, "empty mapping"),
        ({"similarity": {"y_true": [1, 2, 3, 4]}}, "named 'y_true'"),
        ({"y_true": [1, 2, 3]}, "inconsistent numbers of samples"),
        ({"unit": "letter"}, "unit must be 'word' or 'character'"),
        ({"max_distance": -1}, "max_distance must be"),
        ({"pairs": [("a", "b", "c")]}, r"pairs\[0\]"),
    ],
)
def test_errors(arguments, match):
    with pytest.raises(ValueError, match=match):
        lexical_overlap(**{"pairs": PAIRS, "similarity": [0.1, 0.2, 0.3, 0.4], **arguments})


def test_without_rapidfuzz_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "rapidfuzz.distance", None)
    with pytest.raises(ImportError, match=r"scikit-bertflow\[inspection\]"):
        lexical_overlap(PAIRS, [0.1, 0.2, 0.3, 0.4])


def test_frame():
    pytest.importorskip("pandas")
    frame = lexical_overlap(PAIRS, {"raw": [0.9, 0.95, 0.3, 0.4]}, max_distance=4).to_frame()
    assert frame.index.tolist() == ["raw", "raw"]
    assert frame["n_pairs"].tolist() == [4, 3]
    assert "y_true" not in frame
