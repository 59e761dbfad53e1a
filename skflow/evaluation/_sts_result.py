"""What evaluate_sts returns."""

from typing import Any

import numpy as np

from ._result import Result


class STSResult(Result):
    """Scores of one encoder on STS tasks: a mapping of tasks to Spearman's rho x 100.

    Returned by `evaluate_sts`. Its text and HTML representations are tables.

    Attributes
    ----------
    aggregate : {"wmean", "mean", "all"}
        How the subsets are summed up.
    spearman, pearson : dict of str to float
        Task -> correlation x 100.
    average : float
        Mean of Spearman's rho x 100 over the tasks.
    intervals : dict
        ``"spearman"`` and ``"pearson"`` -> task or ``"average"`` -> confidence interval (low, high). Empty
        without resamples.
    bootstrap_distribution : dict
        The same for the scores of the resamples, each an ndarray of shape (n_resamples,).
    confidence_level : float
        Probability that the intervals are made for.
    n_pairs : dict of str to int
        Task -> number of scored pairs.
    subsets : dict
        Task -> subset -> ``{"spearman": ..., "pearson": ..., "n_pairs": ...}``.
    """

    _row_name = "task"

    def _keys(self):
        return self._scores

    def __getitem__(self, task):
        return self._scores[task].aggregated("spearman", self.aggregate)

    @property
    def spearman(self) -> dict[str, float]:
        """Task -> Spearman's rho x 100."""
        return dict(self)

    @property
    def pearson(self) -> dict[str, float]:
        """Task -> Pearson's r x 100."""
        return {task: scores.aggregated("pearson", self.aggregate) for task, scores in self._scores.items()}

    @property
    def average(self) -> float:
        """Mean of Spearman's rho x 100 over the tasks."""
        return float(np.mean(list(self.values())))

    @property
    def bootstrap_distribution(self) -> dict[str, dict[str, np.ndarray]]:
        """Metric -> task or ``"average"`` -> scores x 100 of the resamples, ndarray (n_resamples,)."""
        return {
            metric: {**by_task, "average": np.mean(list(by_task.values()), axis=0)}
            for metric, by_task in super().bootstrap_distribution.items()
        }

    def _shown(self):
        header, rows = self._table()
        intervals = self.intervals
        average: list[Any] = ["average"]
        for metric in self._metrics:
            average.append(with_average(self, metric)["average"])
            if intervals:
                average.append(intervals[metric]["average"])
        return header, [*rows, [*average, ""]]


def with_average(result, metric):
    """Return the scores of all tasks and their mean, "average"."""
    scores = getattr(result, metric)
    return {**scores, "average": float(np.mean(list(scores.values())))}
