"""From sentence pairs to similarities."""

import warnings
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import roc_auc_score
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ._documentation import DocumentationLink
from ._magnitudes import check_scores
from ._pairs import (
    check_pairs,
    encode_pairs,
    fit_encode,
    fit_encoder,
    pair_cosines,
    pair_similarities,
    training_set,
)
from ._persistence import VersionStamped
from ._typing import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
    fit_context,
)
from .metrics import spearman_score

__all__ = [
    "CosineSimilarityClassifier",
    "CosineSimilarityRegressor",
    "check_pairs",
    "encode_pairs",
    "pair_cosines",
]


class _CosineSimilarity(
    DocumentationLink, VersionStamped, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Base class of the estimators of pairs: an encoder fitted without labels, cosines of its vectors."""

    _parameter_constraints: dict = {  # noqa: RUF012
        "encoder": [HasMethods(["fit", "transform"]), StrOptions({"passthrough"})],
        "extra": ["array-like", None],
    }

    encoder: Any
    extra: Any
    _n_features_out = 1

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return the cosine similarity of each pair as a column, a feature for another model.

        Parameters
        ----------
        X : array-like of shape (n_pairs, 2) of str, or of shape (n_pairs, 2, n_features)
            Sentence pairs, as in `fit`.

        Returns
        -------
        similarity : ndarray of shape (n_pairs, 1), dtype float64
            From -1 to 1. Where one of the vectors is zero it is 0.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If `X` is empty, is not of pairs, or a sentence is missing.
        TypeError
            If a sentence is not a str.
        """
        return self._cosines(X)[:, np.newaxis]

    def _cosines(self, X):
        check_is_fitted(self)
        return pair_similarities(self.encoder_, *self._check_pairs(X, reset=False))

    def _check_pairs(self, X, *, reset):
        first, second = check_pairs(X, accept_vectors=True)
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
        tags.input_tags.three_d_array = True
        return tags


class CosineSimilarityRegressor(RegressorMixin, _CosineSimilarity):
    """Predict how similar two sentences are by the cosine of their vectors.

    It makes an encoder something that scikit-learn's model selection can score: `X` holds sentence pairs, `y`
    their gold similarity, and the score is Spearman's rank correlation. Fitting uses no gold scores.

    Parameters
    ----------
    encoder : estimator or "passthrough"
        For pairs of texts a transformer of sentences to vectors, such as `BertEmbedder`, usually at the head
        of a Pipeline that ends in a calibrator. For pairs of vectors a calibrator, a Pipeline of several, or
        ``"passthrough"`` for the vectors as they are. It is cloned before it is fitted.
    extra : sequence of str, or array-like of shape (n_sentences, n_features), default=None
        Unlabeled sentences that the encoder is fitted on besides those of `X`: texts or vectors, whichever
        the pairs are. A parameter of the estimator and not of `fit`, so that cross-validation gives all of it
        to each fold.

    Attributes
    ----------
    encoder_ : estimator or "passthrough"
        The fitted clone of `encoder`.
    n_features_in_ : int
        2, the sentences of a pair.
    feature_names_in_ : ndarray of shape (2,), dtype object
        Names of the columns, if `X` in fit is a DataFrame whose column names are all strings.

    See Also
    --------
    CosineSimilarityClassifier : For pairs that belong together or do not.
    skflow.evaluation.evaluate_sts : The seven tasks that encoders are compared on.
    skflow.metrics.spearman_scorer, skflow.metrics.pearson_scorer : Scorers for `scoring=`.

    Notes
    -----
    What a fit sees: the first sentences of all pairs in `X`, then the second ones, duplicates kept (one that
    stands in three pairs counts three times in a mean or covariance, as in Li et al., 2020,
    arXiv:2011.05864), then `extra`. In cross-validation `X` is the training part of the fold: no sentence of
    the test part is seen unless it also stands in the training part or in `extra`. (Calibrators use no
    labels, so that fitting on the test sentences is no leak of labels; to do so, as the "target" scores of
    the literature do, give them as `extra` or use `evaluate_sts`.)

    Vectors may come as a memory map: `fit` copies those that it is given, `predict` reads them in chunks.

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
    >>> model.transform(pairs).shape, model.get_feature_names_out()
    ((3, 1), array(['cosinesimilarityregressor0'], dtype=object))

    Vectors that you have already:

    >>> import numpy as np
    >>> vectors = np.array([[[1.0, 0.0], [1.0, 1.0]], [[0.0, 2.0], [3.0, 0.0]]])
    >>> CosineSimilarityRegressor("passthrough").fit(vectors).predict(vectors).round(2)
    array([0.71, 0.  ])
    """

    def __init__(self, encoder: Any, *, extra: ArrayLike | None = None) -> None:
        self.encoder = encoder
        self.extra = extra

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Fit the encoder on the sentences of all pairs.

        Parameters
        ----------
        X : array-like of shape (n_pairs, 2) of str, or of shape (n_pairs, 2, n_features)
            Sentence pairs: a list of tuples or of dicts with two keys, an array, or a DataFrame with two
            columns of text; or pairs of vectors.
        y : array-like of shape (n_pairs,), default=None
            Ignored: no labels are used.

        Returns
        -------
        self : CosineSimilarityRegressor
            The fitted estimator.

        Raises
        ------
        ValueError
            If `X` is empty, is not of pairs, or a sentence is missing.
        TypeError
            If a sentence is not a str.
        """
        first, second = self._check_pairs(X, reset=True)
        self.encoder_ = fit_encoder(self.encoder, training_set(first, second, self.extra))
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the cosine similarity of each pair.

        Parameters
        ----------
        X : array-like of shape (n_pairs, 2) of str, or of shape (n_pairs, 2, n_features)
            Sentence pairs, as in `fit`.

        Returns
        -------
        similarity : ndarray of shape (n_pairs,), dtype float64
            From -1 to 1. Where one of the vectors is zero it is 0.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If `X` is empty, is not of pairs, or a sentence is missing.
        TypeError
            If a sentence is not a str.
        """
        return self._cosines(X)

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return Spearman's rank correlation between predicted similarities and gold scores.

        Parameters
        ----------
        X : array-like of shape (n_pairs, 2) of str, or of shape (n_pairs, 2, n_features)
            Sentence pairs, as in `fit`.
        y : array-like of shape (n_pairs,)
            Gold score of each pair.

        Returns
        -------
        rho : float
            From -1 to 1, or nan where it is undefined, see `skflow.metrics.spearman_score`.

        Raises
        ------
        ValueError
            If `y` does not have one finite number for each pair.
        """
        if y is None:
            raise ValueError("score needs the gold score of each pair, got y=None")
        return spearman_score(check_scores(y), self.predict(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags


class CosineSimilarityClassifier(ClassifierMixin, _CosineSimilarity):
    """Tell pairs of sentences that belong together from those that do not, by a threshold on their cosine.

    For duplicates, paraphrases, questions and their answers. The encoder is fitted without labels; of the
    labels only the threshold is learned.

    Parameters
    ----------
    encoder : estimator or "passthrough"
        For pairs of texts a transformer of sentences to vectors, for pairs of vectors a calibrator, a
        Pipeline of several, or ``"passthrough"``, see `CosineSimilarityRegressor`. It is cloned before it is
        fitted.
    threshold : "auto" or float from -1 to 1, default="auto"
        Pairs whose cosine is at least this are of the class ``classes_[1]``. ``"auto"`` takes the threshold
        of the best balanced accuracy on the training pairs, halfway between two of their cosines; of several
        that are equally good, the lowest.
    extra : sequence of str, or array-like of shape (n_sentences, n_features), default=None
        Unlabeled sentences that the encoder is fitted on besides those of `X`: texts or vectors, whichever
        the pairs are.

    Attributes
    ----------
    encoder_ : estimator or "passthrough"
        The fitted clone of `encoder`.
    classes_ : ndarray of shape (2,)
        The two labels, sorted; similar pairs are of the second, the larger one.
    threshold_ : float
        The threshold used.
    n_features_in_ : int
        2, the sentences of a pair.
    feature_names_in_ : ndarray of shape (2,), dtype object
        Names of the columns, if `X` in fit is a DataFrame whose column names are all strings.

    Warns
    -----
    UserWarning
        In `fit`, if the area under the ROC curve on the training pairs is below 0.5: the labels may run the
        other way.

    See Also
    --------
    CosineSimilarityRegressor : For pairs with graded similarities.
    skflow.metrics.auc_scorer : A scorer for `scoring=`.
    sklearn.model_selection.TunedThresholdClassifierCV : Chooses a threshold by cross-validation.

    Notes
    -----
    A high cosine means ``classes_[1]``. Where the labels run the other way, as in GLUE's QNLI, whose 0 is
    "entailment", pass ``y = label == "entailment"``.

    `decision_function` is the cosine itself: the boundary is `threshold_`, not 0. Tools that assume 0, such
    as :class:`~sklearn.model_selection.FixedThresholdClassifier` with its default threshold, must be told so.
    :class:`~sklearn.ensemble.StackingClassifier` takes pairs with ``passthrough=False``;
    :class:`~sklearn.ensemble.BaggingClassifier` refuses arrays of three dimensions.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn.model_selection import FixedThresholdClassifier
    >>> from skflow.similarity import CosineSimilarityClassifier
    >>> pairs = [("a cat", "a cat"), ("the cat sleeps", "the dog sleeps"), ("a cat", "no dog")]
    >>> model = CosineSimilarityClassifier(TfidfVectorizer()).fit(pairs, [1, 1, 0])
    >>> model.decision_function(pairs).round(2)
    array([1.  , 0.73, 0.  ])
    >>> round(model.threshold_, 2)
    0.36
    >>> model.predict([("the cat sleeps", "a dog sleeps")])
    array([1])
    >>> model.transform(pairs).shape
    (3, 1)
    >>> strict = FixedThresholdClassifier(model, threshold=0.9, response_method="decision_function")
    >>> strict.fit(pairs, [1, 1, 0]).predict(pairs)
    array([1, 0, 0])
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        **_CosineSimilarity._parameter_constraints,
        "threshold": [StrOptions({"auto"}), Interval(Real, -1, 1, closed="both")],
    }

    def __init__(
        self, encoder: Any, *, threshold: float | str = "auto", extra: ArrayLike | None = None
    ) -> None:
        self.encoder = encoder
        self.threshold = threshold
        self.extra = extra

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the encoder on the sentences of all pairs, without labels, and the threshold with them.

        Parameters
        ----------
        X : array-like of shape (n_pairs, 2) of str, or of shape (n_pairs, 2, n_features)
            Sentence pairs: a list of tuples or of dicts with two keys, an array, or a DataFrame with two
            columns of text; or pairs of vectors.
        y : array-like of shape (n_pairs,)
            The class of each pair, of two classes of any name; that of similar pairs is the larger label.

        Returns
        -------
        self : CosineSimilarityClassifier
            The fitted estimator.

        Raises
        ------
        ValueError
            If `y` does not have two classes and one label for each pair, or `X` is empty, is not of pairs, or
            a sentence is missing.
        TypeError
            If a sentence is not a str.
        """
        first, second = self._check_pairs(X, reset=True)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        y = check_array(column_or_1d(y, warn=True), ensure_2d=False, dtype=None, input_name="y")
        check_consistent_length(first, y)
        check_classification_targets(y)
        classes, is_similar = np.unique(y, return_inverse=True)
        if len(classes) != 2:
            raise ValueError(f"y must have two classes, got {len(classes)}: {classes[:5].tolist()}")
        encoder, Z = fit_encode(self.encoder, training_set(first, second, self.extra))
        cosines = pair_cosines(Z[: 2 * len(first)])
        auc = roc_auc_score(is_similar, cosines)
        if auc < 0.5:
            other, similar = classes.tolist()
            warnings.warn(
                f"pairs of the class {similar!r} are less similar than those of {other!r}: the area under "
                f"the ROC curve is {auc:.2f}. A high cosine means {similar!r}, the larger label. If yours "
                f"run the other way, pass y == {other!r}.",
                UserWarning,
                stacklevel=2,
            )
        self.encoder_, self.classes_ = encoder, classes
        self.threshold_ = (
            _best_threshold(is_similar, cosines) if self.threshold == "auto" else float(self.threshold)
        )
        return self

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Return the cosine similarity of each pair.

        Parameters
        ----------
        X : array-like of shape (n_pairs, 2) of str, or of shape (n_pairs, 2, n_features)
            Sentence pairs, as in `fit`.

        Returns
        -------
        similarity : ndarray of shape (n_pairs,), dtype float64
            From -1 to 1; the boundary of the two classes is `threshold_`.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If `X` is empty, is not of pairs, or a sentence is missing.
        TypeError
            If a sentence is not a str.
        """
        return self._cosines(X)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the class of each pair: ``classes_[1]`` where the cosine is at least `threshold_`.

        Parameters
        ----------
        X : array-like of shape (n_pairs, 2) of str, or of shape (n_pairs, 2, n_features)
            Sentence pairs, as in `fit`.

        Returns
        -------
        y : ndarray of shape (n_pairs,)
            Labels.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If `X` is empty, is not of pairs, or a sentence is missing.
        TypeError
            If a sentence is not a str.
        """
        cosines = self._cosines(X)
        return self.classes_[(cosines >= self.threshold_).astype(int)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _best_threshold(is_similar, cosines):
    """Return the lowest of the thresholds of best balanced accuracy, halfway between neighboring cosines."""
    values, place = np.unique(cosines, return_inverse=True)
    positive = np.bincount(place, weights=is_similar)
    negative = np.bincount(place) - positive
    # Of the threshold under each value: pairs rightly above and rightly below it, in exact whole numbers.
    above = positive[::-1].cumsum()[::-1]
    below = negative.cumsum() - negative
    best = int(np.argmax(above * negative.sum() + below * positive.sum()))
    if best == 0:
        return float(values[0])
    middle = (values[best - 1] + values[best]) / 2
    return float(middle if middle > values[best - 1] else values[best])
