"""What evaluate_pairs returns."""

from ._result import Result


class PairsResult(Result):
    """Score of one encoder on given pairs: a mapping of the metric's name to the score x 100.

    Returned by `evaluate_pairs`. Its text and HTML representations are tables; ``float(result)`` is the
    score.

    Attributes
    ----------
    aggregate : {"wmean", "mean", "all"}
        How the subsets are summed up.
    intervals : dict
        Metric -> ``"pairs"`` -> confidence interval (low, high). Empty without resamples.
    bootstrap_distribution : dict
        The same for the scores of the resamples, each an ndarray of shape (n_resamples,).
    confidence_level : float
        Probability that the intervals are made for.
    n_pairs : dict of str to int
        ``{"pairs": number}``.
    subsets : dict
        ``"pairs"`` -> subset -> ``{metric: ..., "n_pairs": ...}``.
    """

    _row_name = "data"

    def _keys(self):
        return self._metrics

    def __getitem__(self, metric):
        if metric not in self._metrics:
            raise KeyError(metric)
        return self._scores["pairs"].aggregated(metric, self.aggregate)

    def __float__(self):
        return self[self._metrics[0]]

    def _shown(self):
        header, rows = self._table()
        parts = list(self._subset_rows(self._scores["pairs"]))
        return header, parts + rows if len(parts) > 1 else rows
