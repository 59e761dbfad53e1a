"""How well similarities rank, and what shape a cloud of vectors has.

Every measure of shape is about directions, distances or variances of the rows of a matrix, needs no
labels, and can be computed before and after a calibrator. A matrix whose largest magnitude is above 1e30 or,
unless all of it is zero, below 1e-30 is a ValueError.
"""

import warnings

import numpy as np
import scipy.linalg
import scipy.special
import scipy.stats
from numpy.typing import ArrayLike
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.utils import check_array, check_consistent_length, column_or_1d, gen_batches

from ._magnitudes import check_magnitudes, to_numpy

__all__ = [
    "alignment",
    "auc_scorer",
    "average_cosine",
    "effective_rank",
    "isoscore",
    "partition_isotropy",
    "pearson_score",
    "pearson_scorer",
    "spearman_score",
    "spearman_scorer",
    "uniformity",
]

_BLOCK = 2**24  # entries of a block of pairwise values


def spearman_score(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Spearman's rank correlation between gold scores and predicted similarities.

    Pearson's correlation of the ranks, ties getting their mean rank (Spearman, 1904, doi:10.2307/1412159).

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Gold scores and predictions; only their order matters.

    Returns
    -------
    rho : float
        From -1 to 1. nan where it is undefined: if one of the two is constant, with scipy's
        `ConstantInputWarning`, or for a single sample, with `UndefinedMetricWarning`.

    Raises
    ------
    ValueError
        If the lengths differ, or a value is not a finite number.

    Examples
    --------
    >>> from skflow.metrics import spearman_score
    >>> round(spearman_score([1, 2, 3, 4], [0.1, 0.2, 0.9, 0.8]), 6)
    0.8
    """
    return _correlation(scipy.stats.spearmanr, "Spearman's rho", y_true, y_pred)


def pearson_score(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Pearson's linear correlation between gold scores and predicted similarities.

    The covariance over the product of the standard deviations (Pearson, 1895, doi:10.1098/rspl.1895.0041).

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Gold scores and predictions.

    Returns
    -------
    r : float
        From -1 to 1. nan where it is undefined: if one of the two is constant, with scipy's
        `ConstantInputWarning`, or for a single sample, with `UndefinedMetricWarning`.

    Raises
    ------
    ValueError
        If the lengths differ, or a value is not a finite number.

    Examples
    --------
    >>> from skflow.metrics import pearson_score
    >>> round(pearson_score([0, 1, 2], [0.0, 0.0, 0.6]), 6)
    0.866025
    """
    return _correlation(scipy.stats.pearsonr, "Pearson's r", y_true, y_pred)


def _correlation(statistic, name, y_true, y_pred):
    y_true, y_pred = to_numpy(y_true), to_numpy(y_pred)
    check_consistent_length(y_true, y_pred)
    y_true, y_pred = (
        check_array(column_or_1d(y), ensure_2d=False, dtype=np.float64, input_name=argument)
        for argument, y in (("y_true", y_true), ("y_pred", y_pred))
    )
    if len(y_true) < 2:
        warnings.warn(f"{name} is undefined for fewer than two samples", UndefinedMetricWarning, stacklevel=3)
        return float("nan")
    return float(statistic(y_true, y_pred)[0])


#: Scorer object for the `scoring` parameter of scikit-learn's model selection: Spearman's rho.
spearman_scorer = make_scorer(spearman_score)
#: Scorer object for the `scoring` parameter of scikit-learn's model selection: Pearson's r.
pearson_scorer = make_scorer(pearson_score)
#: Scorer object for the `scoring` parameter of scikit-learn's model selection: area under the ROC curve of a
#: classifier's decision function or of predicted similarities, for pairs of two classes.
auc_scorer = make_scorer(roc_auc_score, response_method=("decision_function", "predict"))


def average_cosine(X: ArrayLike) -> float:
    r"""Average cosine similarity between two different rows.

    .. math:: \frac{1}{n (n - 1)} \sum_{i \ne j} \frac{x_i \cdot x_j}{\|x_i\| \|x_j\|}

    It is near 0 where directions spread evenly and near 1 where all vectors crowd into a narrow cone
    (Ethayarajh, 2019, arXiv:1909.00512). The exact value over all pairs, at the cost of one pass.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        At least two vectors. A zero vector has cosine 0 with every other.

    Returns
    -------
    cosine : float
        From -1 / (n_samples - 1) to 1.

    Raises
    ------
    ValueError
        If `X` is not a finite 2-D array of at least two rows.

    Examples
    --------
    >>> from skflow.metrics import average_cosine
    >>> round(average_cosine([[1, 0], [0, 2], [3, 3]]), 6)
    0.471405
    """
    units = _unit_rows(_check(X))
    # The sum over all i and j is the squared length of the sum; i = j adds each row's own squared length.
    total = np.sum(units.sum(axis=0) ** 2) - np.sum(units**2)
    cosine = total / (len(units) * (len(units) - 1))
    return float(np.clip(cosine, -1 / (len(units) - 1), 1))  # rounding may leave the range


def partition_isotropy(X: ArrayLike) -> float:
    r"""Isotropy by the partition function.

    .. math:: \frac{\min_{c \in C} Z(c)}{\max_{c \in C} Z(c)}, \qquad Z(c) = \sum_i \exp(c \cdot x_i)

    where :math:`C` are the unit eigenvectors of :math:`X^T X` (Mu and Viswanath, 2018, arXiv:1702.01417). If
    :math:`c` is one, so is :math:`-c`: both are taken, so that the value does not hang on an arbitrary sign.
    Neither centering nor scaling is done: the value depends on the length of the vectors. Where eigenvalues
    coincide, as after whitening, the eigenvectors and with them the value are not unique.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Vectors.

    Returns
    -------
    isotropy : float
        From 0 to 1; 1 is isotropic.

    Raises
    ------
    ValueError
        If `X` is not a finite 2-D array.

    Examples
    --------
    >>> from skflow.metrics import partition_isotropy
    >>> round(partition_isotropy([[1, 0], [-1, 0], [0, 1], [0, -1]]), 6)
    1.0
    """
    X = _check(X, min_samples=1)
    _, directions = scipy.linalg.eigh(X.T @ X)
    projected = X @ directions
    log_z = [scipy.special.logsumexp(sign * projected, axis=0) for sign in (1, -1)]
    return float(np.exp(np.min(log_z) - np.max(log_z)))


def isoscore(X: ArrayLike) -> float:
    r"""IsoScore: how evenly the variance spreads over the dimensions.

    With :math:`\lambda` the variances along the principal axes,

    .. math:: \iota = \frac{(\sum_k \lambda_k)^2 / \sum_k \lambda_k^2 - 1}{d - 1}

    which is what the steps of Rudman et al. (2022, Algorithm 1, arXiv:2108.07344) amount to: with
    :math:`\hat\lambda = \sqrt d \lambda / \|\lambda\|` and the defect
    :math:`\delta = \|\hat\lambda - 1\| / \sqrt{2 (d - \sqrt d)}`, the fraction
    :math:`\phi = (d - \delta^2 (d - \sqrt d))^2 / d^2` of dimensions is used evenly, and
    :math:`\iota = (d \phi - 1) / (d - 1)`.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        At least two vectors of at least two features. Neither shift nor rotation nor a common scale matters.

    Returns
    -------
    score : float
        From 0 (all variance in one direction) to 1 (the same in each). nan with an
        `UndefinedMetricWarning` where nothing varies.

    Raises
    ------
    ValueError
        If `X` is not a finite 2-D array of at least two rows and columns.

    Examples
    --------
    >>> from skflow.metrics import isoscore
    >>> round(isoscore([[2, 0], [-2, 0], [0, 1], [0, -1]]), 6)  # variances 4 : 1, so 25 / 17 - 1
    0.470588
    """
    X = _check(X, min_features=2)
    variances = scipy.linalg.svdvals(X - X.mean(axis=0)) ** 2  # up to a factor; absent ones are zero
    if not variances.any():
        warnings.warn("IsoScore is not defined where nothing varies", UndefinedMetricWarning, stacklevel=2)
        return float("nan")
    used = variances.sum() ** 2 / np.sum(variances**2)
    return float((used - 1) / (X.shape[1] - 1))


def effective_rank(X: ArrayLike, *, center: bool = False) -> float:
    r"""Effective rank: the number of dimensions that a matrix really uses.

    .. math:: \exp\Big(-\sum_k p_k \log p_k\Big), \qquad p_k = \sigma_k \Big/ \sum_j \sigma_j

    with :math:`\sigma` the singular values (Roy and Vetterli, 2007, "The effective rank: a measure of
    effective dimensionality", EUSIPCO).

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The matrix.
    center : bool, default=False
        Subtract the mean row first, so that it does not count as a direction.

    Returns
    -------
    rank : float
        From 1 to ``min(X.shape)``. 0 for a matrix of zeros.

    Raises
    ------
    ValueError
        If `X` is not a finite 2-D array.

    Examples
    --------
    >>> from skflow.metrics import effective_rank
    >>> round(effective_rank([[1, 0, 0], [0, 1, 0], [0, 0, 1]]), 6)
    3.0
    """
    X = _check(X, min_samples=1)
    values = scipy.linalg.svdvals(X - X.mean(axis=0) if center else X)
    if not values.any():
        return 0.0
    return float(np.exp(scipy.stats.entropy(values)))


def uniformity(X: ArrayLike, *, t: float = 2.0) -> float:
    r"""Uniformity: how evenly the directions cover the unit sphere; lower is better.

    .. math:: \log \operatorname{mean}_{i < j} \exp(-t \|u_i - u_j\|^2), \qquad u_i = x_i / \|x_i\|

    (Wang and Isola, 2020, arXiv:2005.10242).

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        At least two vectors; they are scaled to unit length, zero vectors stay zero.
    t : float, default=2.0
        Width of the kernel, above 0.

    Returns
    -------
    uniformity : float
        At most 0, which means that all directions are one.

    Raises
    ------
    ValueError
        If `X` is not a finite 2-D array of at least two rows, or `t` is not above 0.

    Notes
    -----
    Takes time quadratic in the number of rows, and the memory of a block of rows.

    Examples
    --------
    >>> from skflow.metrics import uniformity
    >>> round(uniformity([[1, 0], [-3, 0]]), 6)  # opposite: a squared distance of 4
    -8.0
    """
    if not t > 0:
        raise ValueError(f"t must be above 0, got {t!r}")
    units = _unit_rows(_check(X))
    n = len(units)
    squares = np.sum(units**2, axis=1)
    sums = []
    for rows in gen_batches(n, max(1, _BLOCK // n)):
        distances = np.maximum(squares[rows, None] + squares - 2 * units[rows] @ units.T, 0)
        later = np.arange(n) > np.arange(rows.start, rows.stop)[:, None]
        if later.any():
            sums.append(scipy.special.logsumexp(-t * distances[later]))
    return float(scipy.special.logsumexp(sums) - np.log(n * (n - 1) / 2))


def alignment(X: ArrayLike, Y: ArrayLike, *, alpha: float = 2.0) -> float:
    r"""Alignment: how close the two vectors of a matching pair are; lower is better.

    .. math:: \operatorname{mean}_i \|u_i - v_i\|^\alpha, \qquad u_i = x_i / \|x_i\|, v_i = y_i / \|y_i\|

    (Wang and Isola, 2020, arXiv:2005.10242). For sentences, Gao et al. (2021, arXiv:2104.08821) take the
    pairs of STS-B with a score above 4 as matching.

    Parameters
    ----------
    X, Y : array-like of shape (n_pairs, n_features)
        First and second vector of each pair; they are scaled to unit length, zero vectors stay zero.
    alpha : float, default=2.0
        Exponent, above 0.

    Returns
    -------
    alignment : float
        At least 0, which means that the directions of each pair agree.

    Raises
    ------
    ValueError
        If `X` and `Y` are not finite 2-D arrays of one shape, or `alpha` is not above 0.

    Examples
    --------
    >>> from skflow.metrics import alignment
    >>> round(alignment([[1, 0], [1, 0]], [[2, 0], [0, 1]]), 6)  # squared distances 0 and 2
    1.0
    """
    if not alpha > 0:
        raise ValueError(f"alpha must be above 0, got {alpha!r}")
    X, Y = _check(X, min_samples=1), _check(Y, min_samples=1, name="Y")
    if X.shape != Y.shape:
        raise ValueError(f"X and Y must have the same shape, got {X.shape} and {Y.shape}")
    return float(np.mean(np.linalg.norm(_unit_rows(X) - _unit_rows(Y), axis=1) ** alpha))


def _check(X, *, min_samples=2, min_features=1, name="X") -> np.ndarray:
    """Return X as a finite float64 array of ordinary magnitude."""
    X = check_array(
        to_numpy(X),
        dtype=np.float64,
        ensure_min_samples=min_samples,
        ensure_min_features=min_features,
        input_name=name,
    )
    check_magnitudes(X, name)
    return X


def _unit_rows(X) -> np.ndarray:
    """Scale each row to unit length, by its largest entry first so that no square leaves the range."""
    largest = np.max(np.abs(X), axis=1, keepdims=True)
    X = X / np.where(largest > 0, largest, 1)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(norms > 0, norms, 1)
