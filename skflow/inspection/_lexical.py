"""Does similarity follow the wording instead of the meaning: Table 6 and Figure 2 of BERT-flow."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from .._tables import Table
from ..metrics import spearman_score
from ..similarity import check_pairs


def lexical_overlap(
    pairs: ArrayLike,
    similarity: ArrayLike | Mapping[str, ArrayLike],
    y_true: ArrayLike | None = None,
    *,
    unit: Literal["word", "character"] = "word",
    max_distance: float | None = None,
) -> LexicalOverlap:
    r"""Correlate similarity with edit distance.

    Vectors of an anisotropic space find two sentences similar that share words, whatever they mean: the
    correlation between similarity and edit distance is then further below zero than people's judgment gives
    reason for (Section 5 of [1]_). The edit distance [2]_ is the smallest number of insertions, deletions and
    substitutions that turn one sentence into the other.

    Parameters
    ----------
    pairs : array-like of shape (n_pairs, 2) of str
        Sentence pairs: a list of tuples, an array, or a DataFrame with two columns of text.
    similarity : array-like of shape (n_pairs,), or mapping of str to such
        Similarity of each pair; several, such as those of raw and calibrated vectors, by name.
    y_true : array-like of shape (n_pairs,), default=None
        Gold scores, the similarity as judged by people.
    unit : {"word", "character"}, default="word"
        What is inserted, deleted or substituted. Words are what white space separates, in lower case.
    max_distance : float, default=None
        If given, the same scores are also computed for the pairs of at most this edit distance: whether
        pairs that look alike are told apart. The paper takes 4.

    Returns
    -------
    result : LexicalOverlap
        Spearman's rho x 100 of every similarity, and of `y_true`, with edit distance, plain and normalized,
        and with `y_true`.

    Raises
    ------
    ValueError
        If the lengths differ, a value is not a finite number, or an argument is none of the above.
    TypeError
        If a sentence is not a str.
    ImportError
        If rapidfuzz is not installed.

    Warns
    -----
    ConstantInputWarning
        If a similarity, `y_true` or the edit distance is constant; its correlations are nan.
    UndefinedMetricWarning
        If there are fewer than two pairs, in all or within `max_distance`; correlations are nan.

    See Also
    --------
    LexicalOverlapDisplay : Plot it, as Figure 2 of the paper does.

    Notes
    -----
    The normalized edit distance is the distance divided by the length of the longer sentence, in the same
    unit: from 0 for equal sentences to 1; 0 for two empty ones. The plain one grows with the length of
    sentences, the normalized one does not, and correlations with the latter are stronger. The paper does not
    say which it takes, nor in which unit: its number for the gold scores of STS-B, -24.61, is met within 0.1
    by the plain distance of words over the 1,500 pairs of the dev split, and by no other combination.

    References
    ----------
    .. [1] B. Li, H. Zhou, J. He, M. Wang, Y. Yang, L. Li. "On the Sentence Embeddings from Pre-trained
       Language Models", EMNLP 2020. arXiv:2011.05864.
    .. [2] V. I. Levenshtein. "Binary codes capable of correcting deletions, insertions, and reversals",
       Soviet Physics Doklady 10(8), 1966.

    Examples
    --------
    >>> from skflow.inspection import lexical_overlap
    >>> pairs = [("a cat sat", "a cat sat"), ("a cat sat", "a cat ran"), ("a cat", "it rains now")]
    >>> result = lexical_overlap(pairs, [1.0, 0.9, 0.2], y_true=[5.0, 2.0, 0.0])
    >>> result.distances.tolist()
    [0, 1, 3]
    >>> result.edit_distance
    {'y_true': -100.0, 'similarity': -100.0}
    """
    first, second = check_pairs(pairs, name="pairs")
    values = _named_values(similarity, y_true)
    check_consistent_length(first, *values.values())
    if max_distance is not None and (not isinstance(max_distance, Real) or not max_distance >= 0):
        raise ValueError(f"max_distance must be a number of at least 0 or None, got {max_distance!r}")
    distances, normalized = edit_distances(first, second, unit)
    result = _correlate(values, distances, normalized, unit)
    if max_distance is not None:
        close = distances <= max_distance
        result.max_distance = max_distance
        result.within = _correlate(
            {name: value[close] for name, value in values.items()},
            distances[close],
            normalized[close],
            unit,
        )
    return result


def edit_distances(first, second, unit="word"):
    """Return the edit distance of every pair, plain and normalized.

    Parameters
    ----------
    first, second : list of str
        Sentences.
    unit : {"word", "character"}, default="word"
        What is edited.

    Returns
    -------
    distances : ndarray of shape (n_pairs,) of int
        Numbers of edits.
    normalized : ndarray of shape (n_pairs,)
        Divided by the length of the longer sentence.

    Raises
    ------
    ValueError
        If `unit` is none of the above.
    ImportError
        If rapidfuzz is not installed.
    """
    if unit not in ("word", "character"):
        raise ValueError(f"unit must be 'word' or 'character', got {unit!r}")
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError as error:
        raise ImportError(
            "edit distances need the package rapidfuzz: pip install 'scikit-bertflow[inspection]'"
        ) from error
    cut = str.split if unit == "word" else list
    parts = [(cut(a.lower()), cut(b.lower())) for a, b in zip(first, second, strict=True)]
    distances = np.array([Levenshtein.distance(a, b) for a, b in parts])
    return distances, np.array([Levenshtein.normalized_distance(a, b) for a, b in parts])


@dataclass(repr=False, eq=False)
class LexicalOverlap(Table):
    """Correlations of similarities with edit distance, as `lexical_overlap` computes them.

    Correlations are Spearman's rho x 100, in dicts by the name of the similarity; ``"y_true"`` comes first.

    Attributes
    ----------
    n_pairs : int
        Number of pairs.
    edit_distance, normalized_edit_distance : dict of str to float
        Correlation with the edit distance, plain and divided by the length of the longer sentence.
    y_true : dict of str to float
        Correlation with the gold scores; empty without any.
    mean : dict of str to float
        Mean similarity.
    distances, normalized_distances : ndarray of shape (n_pairs,)
        The edit distances.
    unit : {"word", "character"}
        Their unit.
    max_distance : float or None
        Largest distance in `within`.
    within : LexicalOverlap or None
        The same for the pairs of at most that distance.
    """

    n_pairs: int
    edit_distance: dict
    normalized_edit_distance: dict
    y_true: dict
    mean: dict
    distances: np.ndarray
    normalized_distances: np.ndarray
    unit: str
    max_distance: float | None = None
    within: LexicalOverlap | None = None

    _title = "Spearman's rho x 100"

    def _table(self):
        parts = [("all pairs", self)]
        if self.within is not None:
            parts.append((f"edit distance <= {self.max_distance:g}", self.within))
        scores = [
            "edit distance",
            "normalized edit distance",
            *(["y_true"] if self.y_true else []),
            "mean",
        ]
        header = ["similarity", "pairs", "n_pairs", *scores]
        rows = []
        for pairs, part in parts:
            columns = [part.edit_distance, part.normalized_edit_distance, part.y_true, part.mean]
            rows += [
                [name, pairs, part.n_pairs, *(column[name] for column in columns if column)]
                for name in part.edit_distance
            ]
        return header, rows


def _named_values(similarity, y_true):
    if not isinstance(similarity, Mapping):
        similarity = {"similarity": similarity}
    if not similarity:
        raise ValueError("similarity is an empty mapping; give at least one similarity")
    if "y_true" in similarity:
        raise ValueError("similarity has an entry named 'y_true'; give gold scores as the argument y_true")
    named = dict(similarity) if y_true is None else {"y_true": y_true, **similarity}
    return {
        name: check_array(column_or_1d(value), ensure_2d=False, dtype=np.float64, input_name=name)
        for name, value in named.items()
    }


def _correlate(values, distances, normalized, unit):
    y_true = values.get("y_true")
    return LexicalOverlap(
        n_pairs=len(distances),
        edit_distance={name: _rho(distances, value) for name, value in values.items()},
        normalized_edit_distance={name: _rho(normalized, value) for name, value in values.items()},
        y_true={} if y_true is None else {name: _rho(y_true, value) for name, value in values.items()},
        mean={name: float(value.mean()) if len(value) else float("nan") for name, value in values.items()},
        distances=distances,
        normalized_distances=normalized,
        unit=unit,
    )


def _rho(a, b):
    if not len(a):  # which spearman_score takes for a mistake
        warnings.warn("Spearman's rho is undefined without any pairs", UndefinedMetricWarning, stacklevel=5)
        return float("nan")
    # Rounded to hide what floating point adds to a perfect correlation.
    return round(100 * spearman_score(a, b), 10)
