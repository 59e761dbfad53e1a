"""Bootstrap confidence intervals over sentence pairs, for averages of rank correlations."""

import numpy as np
from scipy.stats import rankdata
from sklearn.utils import check_random_state


def bootstrap_average(groups, n_resamples=1000, confidence=0.95, random_state=0):
    """Compute an average of Spearman correlations and how far the choice of pairs may have moved it.

    Pairs are drawn with replacement within each group, the same ones for every method, so that the interval
    of a difference is that of a paired comparison (percentile bootstrap; Efron, 1979,
    doi:10.1214/aos/1176344552).

    Parameters
    ----------
    groups : list of (weight, ndarray of shape (n_pairs,), ndarray of shape (n_methods, n_pairs))
        Weight in the average, gold scores, and the similarities of each method; a group is a subset of a
        task.
    n_resamples : int, default=1000
    confidence : float, default=0.95
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    average : ndarray of shape (n_methods,)
        Weighted average of Spearman's rho.
    resampled : ndarray of shape (n_resamples, n_methods)
        The averages of the resamples: subtract columns for differences between methods.
    interval : ndarray of shape (n_methods, 2)
        Lower and upper bound.

    Examples
    --------
    >>> import numpy as np
    >>> from skflow._bootstrap import bootstrap_average
    >>> gold = np.arange(50.0)
    >>> similarity = np.stack([gold, np.random.RandomState(0).permutation(gold)])
    >>> average, resampled, interval = bootstrap_average([(1, gold, similarity)], n_resamples=200)
    >>> interval[0].round(6).tolist()
    [1.0, 1.0]
    >>> bool(interval[1, 0] < average[1] < interval[1, 1])
    True
    """
    rng = check_random_state(random_state)
    total = sum(weight for weight, _, _ in groups)
    n_methods = len(groups[0][2])
    average, resampled = np.zeros(n_methods), np.zeros((n_resamples, n_methods))
    for weight, gold, similarity in groups:
        table = np.vstack([gold, similarity])
        average += weight / total * _spearman(table)
        for i in range(n_resamples):
            chosen = rng.randint(len(gold), size=len(gold))
            resampled[i] += weight / total * _spearman(table[:, chosen])
    tail = 50 * (1 - confidence)
    return average, resampled, np.percentile(resampled, [tail, 100 - tail], axis=0).T


def _spearman(table):
    """Correlate the ranks of the first row with those of each other."""
    ranks = rankdata(table, axis=1)
    ranks -= ranks.mean(axis=1, keepdims=True)
    ranks /= np.linalg.norm(ranks, axis=1, keepdims=True)
    return ranks[1:] @ ranks[0]
