"""The scores of sets of sentence pairs, and how those of their subsets are summed up."""

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import roc_auc_score

from .._bootstrap import resample_scores
from ..metrics import pearson_score, spearman_score

AGGREGATES = ("wmean", "mean", "all")


def _auc(y_true, y_pred):
    # A subset may hold pairs of one kind only.
    return roc_auc_score(y_true, y_pred) if len(np.unique(y_true)) == 2 else float("nan")


CORRELATIONS = ("spearman", "pearson")
METRICS = {"spearman": spearman_score, "pearson": pearson_score, "auc": _auc}


@dataclass(frozen=True)
class Scores:
    """Scores x 100 of one set of pairs: over all pairs at once, and for each subset."""

    n_pairs: dict  # subset -> number
    at_once: dict  # metric -> score
    subsets: dict  # subset -> metric -> score
    resampled: dict  # metric -> (n_resamples, 1 + n_subsets), all at once first; empty without resamples

    def aggregated(self, metric, aggregate):
        """Return the score of all pairs."""
        if aggregate == "all":
            return self.at_once[metric]
        scores = [self.subsets[subset][metric] for subset in self.n_pairs]
        return float(np.average(scores, weights=self._weights(aggregate)))

    def aggregated_resamples(self, metric, aggregate):
        """Return the score of every resample."""
        if aggregate == "all":
            return self.resampled[metric][:, 0]
        return np.average(self.resampled[metric][:, 1:], axis=1, weights=self._weights(aggregate))

    def subset_resamples(self, metric, subset):
        """Return the score of a subset in every resample."""
        return self.resampled[metric][:, 1 + list(self.n_pairs).index(subset)]

    def _weights(self, aggregate):
        return list(self.n_pairs.values()) if aggregate == "wmean" else None


def score_pairs(similarities, y, subset, metrics, n_resamples, random_state):
    """Return the scores of each list of similarities; all of them see the same resamples."""
    parts = {name: np.flatnonzero(subset == name) for name in dict.fromkeys(subset.tolist())}
    n_pairs = {name: len(part) for name, part in parts.items()}
    resampled = {}
    if n_resamples:
        resampled = resample_scores(y, similarities, list(parts.values()), metrics, n_resamples, random_state)
    return [
        Scores(
            n_pairs,
            {metric: score_of(metric, y, similarity) for metric in metrics},
            {
                name: {metric: score_of(metric, y[part], similarity[part]) for metric in metrics}
                for name, part in parts.items()
            },
            {metric: 100 * of_methods[method] for metric, of_methods in resampled.items()},
        )
        for method, similarity in enumerate(similarities)
    ]


def score_of(metric, y, similarity):
    """Return one score x 100."""
    return 100 * float(METRICS[metric](y, similarity))
