"""Vectors and frequencies of the entries of an encoder's vocabulary."""

import itertools
import re
from collections.abc import Mapping
from numbers import Real

import numpy as np

from .._texts import check_texts

# wordfreq counts all numbers of one shape together, under the name "00", "000"...
_NUMBER_SHAPE = re.compile(r"\d\d")
# So many words of wordfreq; no vocabulary has more of them as single tokens.
_MAX_WORDS = 100_000
# Texts that are tokenized at once.
_CHUNK = 50_000


def load_transformer(embedder):
    """Return the encoder behind a BertEmbedder.

    Parameters
    ----------
    embedder : BertEmbedder
        Fitted or not.

    Returns
    -------
    encoder : skflow.embedders._encoder.Encoder
        The model and its tokenizer.

    Raises
    ------
    TypeError
        If `embedder` is something else.
    ValueError
        If its model is no transformer with a table of word embeddings.
    """
    if not hasattr(embedder, "encoder"):
        raise TypeError(f"embedder must be a BertEmbedder, got {embedder!r}")
    encoder = embedder.encoder()
    table = None if encoder.model is None else encoder.model.get_input_embeddings()
    if getattr(table, "weight", None) is None or table.weight.ndim != 2:
        raise ValueError(f"{embedder.model_name_or_path} has no table of word embeddings to look at")
    return encoder


def word_embeddings(encoder):
    """Return the input embedding of every entry of the vocabulary.

    Parameters
    ----------
    encoder : Encoder
        See :func:`load_transformer`.

    Returns
    -------
    vectors : ndarray of shape (n_vocabulary, n_features)
        float32.
    """
    return encoder.model.get_input_embeddings().weight.detach().float().cpu().numpy()


def average_tokens(encoder, texts, *, layers, max_length, batch_size):
    """Average the vectors of every entry of the vocabulary over its occurrences in texts.

    Parameters
    ----------
    encoder : Encoder
        See :func:`load_transformer`.
    texts : list of str
        Texts. The tokens that the tokenizer adds do not count.
    layers, max_length, batch_size
        As of a BertEmbedder.

    Returns
    -------
    vectors : ndarray of shape (n_vocabulary, n_features)
        float32; zero for entries that do not occur.
    n_occurrences : ndarray of shape (n_vocabulary,) of int
    """
    sums, counts = None, np.zeros(encoder.n_vocabulary, dtype=np.int64)
    options = {"layers": layers, "max_length": max_length, "batch_size": batch_size}
    for ids, vectors in encoder.token_vectors(texts, **options):
        if sums is None:
            sums = np.zeros((encoder.n_vocabulary, vectors.shape[1]))
        np.add.at(sums, ids, vectors)
        counts += np.bincount(ids, minlength=len(counts))
    if sums is None:
        raise ValueError("texts hold no token")
    return (sums / np.maximum(counts, 1)[:, None]).astype(np.float32), counts


def vocabulary_frequencies(encoder, frequencies):
    """Return how frequent every entry of the vocabulary is.

    Parameters
    ----------
    encoder : Encoder
        See :func:`load_transformer`.
    frequencies : mapping, str or sequence of str
        As in :func:`skflow.inspection.frequency_bias`.

    Returns
    -------
    frequency : ndarray of shape (n_vocabulary,)
        float64; 0 for entries of unknown frequency and for special tokens.
    """
    if isinstance(frequencies, str):
        frequencies = _wordfreq(frequencies)
    if isinstance(frequencies, Mapping):
        counts = _frequencies_of_words(encoder, frequencies)
    else:
        counts = _count(encoder, check_texts(frequencies, name="frequencies"))
    counts[encoder.tokenizer.all_special_ids] = 0
    return counts


def _wordfreq(language):
    try:
        import wordfreq
    except ImportError as error:
        raise ImportError(
            f"frequencies={language!r} names a language of the package wordfreq, which is not installed: "
            "pip install 'scikit-bertflow[inspection]', or give a mapping of words to frequencies."
        ) from error
    try:
        known = wordfreq.get_frequency_dict(language, wordlist="best")
    except (LookupError, ValueError) as error:
        languages = ", ".join(sorted(wordfreq.available_languages()))
        raise ValueError(
            f"frequencies={language!r} is no language that wordfreq knows; expected one of {languages}, a "
            "mapping of words to frequencies, or a sequence of texts to count."
        ) from error
    words = (word for word in known if not _NUMBER_SHAPE.search(word))  # the most frequent ones first
    return {word: known[word] for word in itertools.islice(words, _MAX_WORDS)}


def _frequencies_of_words(encoder, mapping):
    words = check_texts(list(mapping), name="frequencies")
    values = list(mapping.values())
    for word, value in zip(words, values, strict=True):
        if not isinstance(value, Real) or not 0 <= value < np.inf:
            raise ValueError(f"frequencies[{word!r}] must be a finite number of at least 0, got {value!r}")
    numbers = _single_tokens(encoder, [f" {word}" for word in words])
    within, at_start = _tokenize(encoder, [" the", "the"])
    if within != at_start:  # a byte-level vocabulary: the former is the common form, the latter may do, too
        bare = np.flatnonzero(numbers < 0)
        numbers[bare] = _single_tokens(encoder, [words[i] for i in bare])
    known = numbers >= 0
    # "The" and "the" may be one entry, whose frequency is then the sum.
    weights = np.asarray(values, dtype=np.float64)[known]
    return np.bincount(numbers[known], weights=weights, minlength=encoder.n_vocabulary)


def _single_tokens(encoder, words):
    """Return the number of the token that each word is, or -1 for a word of several."""
    numbers = [ids[0] if len(ids) == 1 else -1 for ids in _tokenize(encoder, words)]
    return np.array(numbers, dtype=np.int64)


def _count(encoder, texts):
    counts = np.zeros(encoder.n_vocabulary)
    for ids in _tokenize(encoder, texts):
        np.add.at(counts, ids, 1)
    return counts


def _tokenize(encoder, texts):
    options = {
        "add_special_tokens": False,
        "truncation": False,
        "return_attention_mask": False,
        "return_token_type_ids": False,
        "verbose": False,
    }
    for start in range(0, len(texts), _CHUNK):
        with encoder.lock:
            yield from encoder.tokenizer(texts[start : start + _CHUNK], **options)["input_ids"]
