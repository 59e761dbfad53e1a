"""Sentence pairs, as texts or as vectors: what counts as such, how encoders are fitted on and encode them."""

import itertools
import reprlib
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_array, gen_batches
from sklearn.utils.validation import _num_samples

from ._magnitudes import to_numpy
from ._texts import check_texts

_CHUNK = 2**21  # numbers of each side of the pairs of vectors that are encoded at a time
_TEXTS = (
    "an (n_pairs, 2) array, a list of (str, str) pairs or of dicts with the same two keys, or a DataFrame "
    "with two columns of text"
)
_VECTORS = "an (n_pairs, 2, n_features) array of numbers"


def check_pairs(X: ArrayLike, *, name: str = "X", accept_vectors: bool = False) -> tuple[Any, Any]:
    """Return sentence pairs as their first sentences and their second ones.

    Parameters
    ----------
    X : array-like of shape (n_pairs, 2) of str, or of shape (n_pairs, 2, n_features)
        A list (or other sequence) of pairs or of dicts with the same two keys, an array, or a pandas or
        polars DataFrame with two columns. Vectors are taken in the same ways.
    name : str, default="X"
        Name of the argument in error messages.
    accept_vectors : bool, default=False
        Whether `X` may hold the vectors of sentences instead of their texts.

    Returns
    -------
    first, second : list of str, or ndarray of shape (n_pairs, n_features)
        At least one of each. Arrays are views of `X`, of its dtype, if it is a numpy array or memory map.

    Raises
    ------
    ValueError
        If there is no pair, an element does not have two parts, or a sentence is missing; if vectors differ
        in length or are not finite. Names the position.
    TypeError
        If `X` is no collection of pairs or a sentence is not a str. Names the position.

    Examples
    --------
    >>> from skflow.similarity import check_pairs
    >>> check_pairs([("a cat", "a dog"), ("rain", "sun")])
    (['a cat', 'rain'], ['a dog', 'sun'])
    >>> check_pairs([{"a": "a cat", "b": "a dog"}, {"b": "sun", "a": "rain"}])
    (['a cat', 'rain'], ['a dog', 'sun'])
    """
    X = to_numpy(X)
    expected = f"{_TEXTS}, or of vectors, {_VECTORS}" if accept_vectors else _TEXTS
    columns: Any
    if hasattr(X, "shape"):
        if accept_vectors and len(X.shape) == 3:
            return _check_vectors(X, name)
        columns = np.asarray(X, dtype=object).T if len(X.shape) == 2 else np.empty(0)
        if columns.ndim != 2 or len(columns) != 2:
            raise ValueError(f"{name} has shape {tuple(X.shape)}; expected {expected}.")
    elif isinstance(X, Sequence) and not isinstance(X, str | bytes):
        columns = _columns(X, name)
    else:
        raise TypeError(f"{name} is a {type(X).__name__}; expected {expected}.")
    if not len(columns[0]):
        raise ValueError(f"{name} is empty: found 0 sample(s) while a minimum of 1 is required.")
    if accept_vectors and _is_vector(columns[0][0]):
        try:
            stacked = np.stack([np.asarray(to_numpy(list(column))) for column in columns], axis=1)
        except ValueError:
            raise ValueError(
                f"{name} has vectors that are missing or differ in length; expected {_VECTORS}."
            ) from None
        return _check_vectors(stacked, name)
    return tuple(check_texts(column, name=f"{name}[:, {side}]") for side, column in enumerate(columns))


def check_unpaired(X, first, *, name):
    """Return texts or vectors, whichever the `first` sentences of the pairs are; errors say `name`."""
    if isinstance(first, list):
        return check_texts(X, name=name)
    with np.errstate(over="ignore", invalid="ignore"):  # the check for infinities sums up
        X = check_array(to_numpy(X), dtype="numeric", input_name=name)
    if X.shape[1] != first.shape[1]:
        raise ValueError(f"{name} has {X.shape[1]} features, the vectors of the pairs have {first.shape[1]}")
    return X


def training_set(first, second, extra=None):
    """Return all that an encoder is fitted on: first sentences, second ones, then the extra ones, if any."""
    if extra is None or not len(extra):
        return stack(first, second)
    return stack(first, second, check_unpaired(extra, first, name="extra"))


def stack(*parts):
    """Return lists of texts as one list, or arrays of vectors as one new array."""
    if isinstance(parts[0], list):
        return list(itertools.chain.from_iterable(parts))
    return np.concatenate(parts)


def is_passthrough(estimator):
    """Return whether vectors are left as they are."""
    return isinstance(estimator, str) and estimator == "passthrough"


def fit_encoder(encoder, X):
    """Return a clone of the encoder that is fitted, without labels, on texts or vectors."""
    if is_passthrough(encoder):
        return _for_vectors(encoder, X)
    return clone(encoder).fit(X, None)


def fit_encode(encoder, X):
    """Return a fitted clone and the vectors of what it is fitted on, encoded once."""
    if is_passthrough(encoder):
        return _for_vectors(encoder, X), X
    encoder = clone(encoder)
    if hasattr(encoder, "fit_transform"):
        Z = encoder.fit_transform(X, None)
    else:  # as a FrozenEstimator, whose fit requires y
        Z = encoder.fit(X, None).transform(X)
    return encoder, check_n_vectors(Z, len(X))


def encode_pairs(encoder: Any, first: Any, second: Any) -> Any:
    """Return the vectors of all first sentences, then those of all second ones.

    Parameters
    ----------
    encoder : estimator or "passthrough"
        Fitted: a transformer of sentences, or of vectors if the pairs are such. "passthrough" leaves vectors
        as they are.
    first, second : list of str, or ndarray of shape (n_pairs, n_features)
        The two sentences of each pair, as `check_pairs` returns them.

    Returns
    -------
    Z : ndarray, sparse matrix or DataFrame of shape (2 * n_pairs, n_features_out)
        What the encoder returns; for `pair_cosines`.

    Raises
    ------
    ValueError
        If there is not one vector for each sentence, or "passthrough" is given texts.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from skflow.similarity import encode_pairs
    >>> encoder = CountVectorizer().fit(["cat dog"])
    >>> encode_pairs(encoder, ["cat", "dog"], ["cat dog", "cow"]).toarray()
    array([[1, 0],
           [0, 1],
           [1, 1],
           [0, 0]])
    """
    X = stack(first, second)
    if is_passthrough(encoder):
        _for_vectors(encoder, X)
        return X
    return check_n_vectors(encoder.transform(X), len(X))


def pair_similarities(encoder, first, second):
    """Return the cosine similarity of each pair; vectors are encoded in chunks, as a memory map needs."""
    if isinstance(first, list):
        return pair_cosines(encode_pairs(encoder, first, second))
    chunks = gen_batches(len(first), max(1, _CHUNK // first.shape[1]))
    return np.concatenate([pair_cosines(encode_pairs(encoder, first[c], second[c])) for c in chunks])


def check_n_vectors(Z, n):
    """Return Z, or raise ValueError unless it has one vector for each sentence."""
    if _num_samples(Z) != n:
        raise ValueError(f"the encoder returned {_num_samples(Z)} vectors for {n} sentences")
    return Z


def pair_cosines(Z: ArrayLike | scipy.sparse.sparray) -> np.ndarray:
    """Return the cosine of each row of the first half of `Z` with its counterpart in the second half.

    Parameters
    ----------
    Z : array-like or sparse matrix of shape (2 * n_pairs, n_features)
        The vectors of all first sentences, then those of all second ones.

    Returns
    -------
    cosines : ndarray of shape (n_pairs,), dtype float64
        From -1 to 1; 0 where one of the two vectors is zero.

    Raises
    ------
    ValueError
        If `Z` is not a finite 2-D array.

    Examples
    --------
    >>> from skflow.similarity import pair_cosines
    >>> pair_cosines([[1, 0], [1, 1], [0, 2], [2, 2]])  # (1, 0) with (0, 2), (1, 1) with (2, 2)
    array([0., 1.])
    """
    Z = check_array(to_numpy(Z), accept_sparse="csr", dtype=np.float64, input_name="the encoder's output")
    n_pairs = Z.shape[0] // 2
    # Rows are scaled by their largest entry first, so that no square leaves the range of floats.
    if scipy.sparse.issparse(Z):
        scale = abs(Z).max(axis=1).toarray()[:, 0]
        Z = scipy.sparse.diags(1 / np.where(scale > 0, scale, 1)) @ Z
    else:
        scale = np.max(np.abs(Z), axis=1, keepdims=True)
        Z = Z / np.where(scale > 0, scale, 1)
    A, B = Z[:n_pairs], Z[n_pairs:]
    # The root of the product, not the product of the roots: a vector's cosine with itself is exactly 1.
    lengths = np.sqrt(_row_dots(A, A) * _row_dots(B, B))
    cosines = _row_dots(A, B) / np.where(lengths > 0, lengths, 1)
    return np.clip(cosines, -1, 1)


def _row_dots(A, B):
    if scipy.sparse.issparse(A):
        return np.asarray(A.multiply(B).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", A, B)


def _columns(rows, name):
    """Return the two columns of a sequence of pairs, or of dicts with the keys of the first."""
    sides: Any = (0, 1)
    expected = "a pair of str"
    if len(rows) and isinstance(rows[0], Mapping):
        sides, expected = tuple(rows[0]), "a dict with two keys, the same in every row"
    for position, pair in enumerate(rows):
        is_pair = not isinstance(pair, str | bytes | Set) and hasattr(pair, "__len__") and len(pair) == 2
        keys = set(pair) if isinstance(pair, Mapping) else {0, 1}
        if not is_pair or keys != set(sides):
            raise ValueError(f"{name}[{position}] is {reprlib.repr(pair)}; expected {expected}.")
    return [[pair[side] for pair in rows] for side in sides]


def _is_vector(value):
    if isinstance(value, str | bytes):
        return False
    value = np.asarray(to_numpy(value))
    return value.ndim == 1 and value.dtype.kind in "biuf"


def _check_vectors(X, name):
    """Return the two sides of an array of pairs of vectors, as views."""
    X = np.asarray(X)
    if X.shape[1] != 2 or X.ndim != 3 or X.dtype.kind not in "biuf":
        raise ValueError(f"{name} has shape {X.shape} and dtype {X.dtype}; expected {_VECTORS}.")
    if not X.size:
        raise ValueError(f"{name} is empty: found 0 sample(s) while a minimum of 1 is required.")
    with np.errstate(over="ignore", invalid="ignore"):  # the check for infinities sums up
        check_array(X, allow_nd=True, dtype=None, input_name=name)
    return X[:, 0], X[:, 1]


def _for_vectors(encoder, X):
    if isinstance(X, list):
        raise ValueError("encoder='passthrough' is for pairs of vectors, got pairs of texts")
    return encoder
