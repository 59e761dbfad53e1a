"""Scores of resampled sentence pairs, for bootstrap confidence intervals."""

import numpy as np
from sklearn.utils import check_random_state, gen_batches

_BLOCK = 2**18  # numbers of draws at a time


def resample_scores(y, similarities, parts, metrics, n_resamples, random_state):
    """Return the scores of pairs drawn with replacement (Efron, 1979, doi:10.1214/aos/1176344552).

    As many pairs are drawn as there are, within each part: the parts of a data set are given, the pairs of
    them are a sample. All similarities see the same draws, so that differences of their scores are
    those of a paired comparison.

    A draw is kept as the number of times that each pair was drawn. Sorted once, the values of a resample have
    their ranks by a cumulative sum of these.

    The result maps each metric to an array of shape (n_methods, n_resamples, 1 + n_parts): the scores over
    all pairs at once, then over each part. They are nan where a resample has none, such as the correlation of
    a single pair.
    """
    rng = check_random_state(random_state)
    scores = {metric: np.empty((len(similarities), n_resamples, 1 + len(parts))) for metric in metrics}
    for rows in gen_batches(n_resamples, max(1, _BLOCK // len(y))):
        counts = np.empty((rows.stop - rows.start, len(y)))
        for part in parts:
            counts[:, part] = _draw(len(counts), len(part), rng)
        for metric in metrics:
            for place, part in enumerate(parts, start=1):
                compare = _STATISTICS[metric](y[part], counts[:, part])
                for method, similarity in enumerate(similarities):
                    scores[metric][method, rows, place] = compare(similarity[part])
            if len(parts) == 1:
                scores[metric][:, rows, 0] = scores[metric][:, rows, 1]
                continue
            compare = _STATISTICS[metric](y, counts)
            for method, similarity in enumerate(similarities):
                scores[metric][method, rows, 0] = compare(similarity)
    return scores


def percentile_interval(resampled, confidence_level):
    """Return the bounds between which the middle part of resampled scores lies.

    Resamples without a score are left out; with more than one in ten of them the bounds are nan.
    """
    tail = 50 * (1 - confidence_level)
    defined = resampled[~np.isnan(resampled)]
    if len(defined) < 0.9 * len(resampled):
        return float("nan"), float("nan")
    low, high = np.percentile(defined, [tail, 100 - tail])
    return float(low), float(high)


def _draw(n_resamples, n, rng):
    """Return how often each of n pairs is among n drawn with replacement, for each resample."""
    drawn = rng.randint(n, size=(n_resamples, n))
    drawn += n * np.arange(n_resamples)[:, np.newaxis]
    return np.bincount(drawn.ravel(), minlength=n_resamples * n).reshape(n_resamples, n)


def _spearman(y, counts):
    return _correlate_with(_ranks(y, counts), counts, _ranks)


def _pearson(y, counts):
    return _correlate_with(_deviations(y, counts), counts, _deviations)


def _auc(y, counts):
    is_positive = y == y.max()
    positive = counts * is_positive
    negative = counts - positive
    n_comparisons = positive.sum(axis=1) * negative.sum(axis=1)

    def compare(similarity):
        order, starts, _ = _ties(similarity)
        above = np.add.reduceat(positive[:, order], starts, axis=1)
        below = np.add.reduceat(negative[:, order], starts, axis=1)
        won = above * (np.cumsum(below, axis=1) - below / 2)
        with np.errstate(invalid="ignore"):  # pairs of one kind only
            return won.sum(axis=1) / n_comparisons

    return compare


_STATISTICS = {"spearman": _spearman, "pearson": _pearson, "auc": _auc}


def _ties(x):
    """Return the order of x, where in it each distinct value starts, and which of these each x is."""
    _, place, sizes = np.unique(x, return_inverse=True, return_counts=True)
    return np.argsort(place, kind="stable"), np.cumsum(sizes) - sizes, place


def _ranks(x, counts):
    """Return the mean ranks less their mean, which is the same for every resample."""
    order, starts, place = _ties(x)
    tied = np.add.reduceat(counts[:, order], starts, axis=1)
    ranks = np.cumsum(tied, axis=1) - tied / 2
    return ranks[:, place] - len(x) / 2


def _deviations(x, counts):
    # The spread of a constant resample is no rounding error.
    deviations = x - (counts @ x / len(x))[:, np.newaxis]
    deviations[np.abs(deviations) < 1e-13 * np.abs(x).max()] = 0
    return deviations


def _correlate_with(a, counts, center):
    weighted = counts * a
    length = np.einsum("ij,ij->i", weighted, a)

    def compare(similarity):
        b = center(similarity, counts)
        product = np.einsum("ij,ij->i", weighted, b)
        b *= b
        with np.errstate(invalid="ignore"):  # a constant has no correlation
            return product / np.sqrt(length * np.einsum("ij,ij->i", counts, b))

    return compare
