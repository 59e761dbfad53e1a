"""From sentence pairs to similarities."""

import reprlib
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context, clone
from sklearn.utils import check_array
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import check_is_fitted, validate_data

from ._persistence import VersionStamped
from .embedders._text import check_texts
from .metrics import spearman_score

_EXPECTED = "an (n_pairs, 2) array, a list of (str, str) pairs, or a DataFrame with two columns of text"


class CosineSimilarityRegressor(VersionStamped, RegressorMixin, BaseEstimator):
    """Predict how similar two sentences are by the cosine of their vectors.

    It makes an encoder something that scikit-learn's model selection can score: `X` holds sentence pairs, `y`
    their gold similarity, and the score is Spearman's rank correlation. Fitting uses no gold scores.

    Parameters
    ----------
    encoder : estimator
        Maps text to vectors: a transformer of sentences, such as `BertEmbedder`, usually at the head of a
        Pipeline that ends in a calibrator. It is cloned before it is fitted.
    extra_sentences : sequence of str, default=None
        Unlabelled text that the encoder is fitted on besides the sentences of `X`. A parameter of the
        estimator and not of `fit`, so that cross-validation gives all of it to each fold.

    Attributes
    ----------
    encoder_ : estimator
        The fitted clone of `encoder`.
    n_features_in_ : int
        2, the sentences of a pair.
    feature_names_in_ : ndarray of shape (2,), dtype object
        Names of the columns, if `X` in fit is a DataFrame whose column names are all strings.

    See Also
    --------
    skflow.evaluation.evaluate_sts : The seven tasks that encoders are compared on.
    skflow.metrics.spearman_scorer, skflow.metrics.pearson_scorer : Scorers for `scoring=`.

    Notes
    -----
    What a fit sees: the first sentences of all pairs in `X`, then the second ones, duplicates kept (one that
    stands in three pairs counts three times in a mean or covariance, as in Li et al., 2020,
    arXiv:2011.05864), then `extra_sentences`. In cross-validation `X` is the training part of the
    fold: no sentence of the test part is seen unless it also stands in the training part or in
    `extra_sentences`. (Calibrators use no labels, so that fitting on the test sentences is no leak of labels;
    to do so, as the "target" figures of the literature do, give them as `extra_sentences` or use
    `evaluate_sts`.)

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from skflow.similarity import CosineSimilarityRegressor
    >>> pairs = [("a cat", "a cat"), ("the cat sleeps", "the dog sleeps"), ("a cat", "no dog")]
    >>> model = CosineSimilarityRegressor(TfidfVectorizer()).fit(pairs)
    >>> model.predict(pairs).round(2)
    array([1.  , 0.73, 0.  ])
    >>> model.score(pairs, [5, 3, 0])
    1.0
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        "encoder": [HasMethods(["fit", "transform"])],
        "extra_sentences": ["array-like", None],
    }

    def __init__(self, encoder: Any, *, extra_sentences: Sequence[str] | None = None) -> None:
        self.encoder = encoder
        self.extra_sentences = extra_sentences

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Fit the encoder on the sentences of all pairs.

        Parameters
        ----------
        X : array-like of shape (n_pairs, 2) of str
            Sentence pairs: a list of tuples, an array, or a DataFrame with two columns of text.
        y : array-like of shape (n_pairs,), default=None
            Ignored: no labels are used.

        Returns
        -------
        self : CosineSimilarityRegressor
            The fitted estimator.

        Raises
        ------
        ValueError
            If `X` is empty, does not have two columns, or a sentence is missing.
        TypeError
            If a sentence is not a str.
        """
        first, second = self._check_pairs(X, reset=True)
        sentences = first + second
        if self.extra_sentences is not None and len(self.extra_sentences):
            sentences = sentences + check_texts(self.extra_sentences, name="extra_sentences")
        self.encoder_ = clone(self.encoder).fit(sentences)
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the cosine similarity of each pair.

        Parameters
        ----------
        X : array-like of shape (n_pairs, 2) of str
            Sentence pairs.

        Returns
        -------
        similarity : ndarray of shape (n_pairs,), dtype float64
            From -1 to 1. Where one of the vectors is zero it is 0.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If `X` is empty, does not have two columns, or a sentence is missing.
        TypeError
            If a sentence is not a str.
        """
        check_is_fitted(self)
        first, second = self._check_pairs(X, reset=False)
        return _cosines_of(self.encoder_.transform(first + second), 2 * len(first))

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return Spearman's rank correlation between the predicted and the gold similarities.

        Parameters
        ----------
        X : array-like of shape (n_pairs, 2) of str
            Sentence pairs.
        y : array-like of shape (n_pairs,)
            Gold similarity of each pair.

        Returns
        -------
        rho : float
            From -1 to 1, or nan where it is undefined, see `skflow.metrics.spearman_score`.

        Raises
        ------
        ValueError
            If `y` has not one finite number for each pair.
        """
        if y is None:
            raise ValueError("score needs the gold similarity of each pair, got y=None")
        return spearman_score(y, self.predict(X))

    def _check_pairs(self, X, *, reset):
        first, second = check_pairs(X)
        # For the names of a DataFrame's columns; the number of columns is known to be two.
        named = X if hasattr(X, "columns") else np.empty((len(first), 2), dtype=object)
        validate_data(self, named, reset=reset, skip_check_array=True)
        return first, second

    def __sklearn_is_fitted__(self):
        return hasattr(self, "encoder_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = False
        return tags


def check_pairs(X: ArrayLike, *, name: str = "X") -> tuple[list[str], list[str]]:
    """Return sentence pairs as two lists of `str`, first sentences and second ones.

    Parameters
    ----------
    X : array-like of shape (n_pairs, 2) of str
        A list (or other sequence) of pairs, an array, or a pandas or polars DataFrame with two columns.
    name : str, default="X"
        Name of the argument in error messages.

    Returns
    -------
    first, second : list of str
        At least one of each.

    Raises
    ------
    ValueError
        If there is no pair, an element does not have two parts, or a sentence is missing. Names the position.
    TypeError
        If `X` is no collection of pairs or a sentence is not a str. Names the position.

    Examples
    --------
    >>> from skflow.similarity import check_pairs
    >>> check_pairs([("a cat", "a dog"), ("rain", "sun")])
    (['a cat', 'rain'], ['a dog', 'sun'])
    """
    columns: Any
    if hasattr(X, "shape"):
        columns = np.asarray(X, dtype=object).T
        if columns.ndim != 2 or len(columns) != 2:
            raise ValueError(f"{name} has shape {X.shape}; expected {_EXPECTED}.")
    elif isinstance(X, Sequence) and not isinstance(X, str | bytes):
        rows: Any = X
        for position, pair in enumerate(rows):
            if isinstance(pair, str | bytes) or not hasattr(pair, "__len__") or len(pair) != 2:
                raise ValueError(f"{name}[{position}] is {reprlib.repr(pair)}; expected a pair of str.")
        columns = [[pair[side] for pair in rows] for side in (0, 1)]
    else:
        raise TypeError(f"{name} is a {type(X).__name__}; expected {_EXPECTED}.")
    if not len(columns[0]):
        raise ValueError(f"{name} is empty: found 0 sample(s) while a minimum of 1 is required.")
    return tuple(check_texts(column, name=f"{name}[:, {side}]") for side, column in enumerate(columns))


def _cosines_of(Z, n_sentences):
    """Return :func:`pair_cosines`, or raise ValueError unless Z has one vector for each sentence."""
    n_vectors = Z.shape[0] if hasattr(Z, "shape") else len(Z)
    if n_vectors != n_sentences:
        raise ValueError(f"the encoder returned {n_vectors} vectors for {n_sentences} sentences")
    return pair_cosines(Z)


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
    Z = check_array(Z, accept_sparse="csr", dtype=np.float64, input_name="the encoder's output")
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
