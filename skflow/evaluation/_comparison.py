"""What compare_calibrators returns."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from .._bootstrap import percentile_interval
from .._tables import Column, Table
from ._result import Difference, level_column
from ._sts_result import STSResult, with_average


class CalibratorComparison(Table, Mapping):
    """Scores of many calibrators on STS tasks: a mapping of names to `STSResult`.

    Returned by `compare_calibrators`. Its text and HTML representations are tables, and so is `to_frame`: one
    row for each calibrator and published model, its columns the tasks, ``"average"``, ``"aggregate"`` and
    ``"source"`` (empty for what was computed here). If there are resamples they show the confidence interval
    of each average, and the difference of each average from that of the baseline with the interval of a
    paired comparison; where that holds 0 the difference is marked as noise. Their columns are
    ``"average_low"``, ``"average_high"``, ``"difference"``, ``"difference_low"`` and ``"difference_high"``,
    nan where there is none.

    Attributes
    ----------
    results : dict of str to STSResult
        What it maps.
    published : :class:`~sklearn.utils.Bunch` or None
        Published scores shown beside, see :func:`skflow.datasets.load_published_sts`.
    baseline : str
        Name of the row that the others are compared with.
    """

    def __init__(
        self, results: Mapping[str, STSResult], published: Any = None, baseline: str | None = None
    ) -> None:
        self.results = results
        self.published = published
        self.baseline = next(iter(results)) if baseline is None else baseline

    def __getitem__(self, name):
        return self.results[name]

    def __iter__(self):
        return iter(self.results)

    def __len__(self):
        return len(self.results)

    def differences(
        self, baseline: str | None = None, metric: Literal["spearman", "pearson"] = "spearman"
    ) -> dict[str, dict[str, Difference]]:
        """Return how much each calibrator gains over the baseline, with confidence intervals.

        The pairs of a resample are the same for all calibrators, so that the interval of a difference is
        mostly much narrower than those of the two scores: two intervals that overlap do not mean that a
        difference is noise.

        Parameters
        ----------
        baseline : str, default=None
            Name of the row to compare with; that of the attribute `baseline` by default.
        metric : {"spearman", "pearson"}, default="spearman"
            Correlation to compare.

        Returns
        -------
        differences : dict of str to dict of str to Difference
            Name -> task or ``"average"`` -> (difference, low, high), whose property `is_noise` says whether
            the interval holds 0. The baseline itself is left out.

        Raises
        ------
        KeyError
            If there is no such row or metric.
        ValueError
            If the comparison was made without resamples.
        """
        base = self.results[self.baseline if baseline is None else baseline]
        if not base.is_resampled:
            raise ValueError("differences needs resamples; the comparison was made with n_resamples=0")
        reference, theirs = base.bootstrap_distribution[metric], with_average(base, metric)
        differences = {}
        for name, result in self.results.items():
            if result is base:
                continue
            resampled = result.bootstrap_distribution[metric]
            mine = with_average(result, metric)
            differences[name] = {
                key: Difference(
                    mine[key] - theirs[key],
                    *percentile_interval(resampled[key] - reference[key], result.confidence_level),
                )
                for key in reference
            }
        return differences

    def _is_resampled(self):
        return all(result.is_resampled for result in self.results.values())

    def _table(self):
        base = self.results[self.baseline]
        header: list[Any] = ["calibrator", *base, "average"]
        rows = [[name, *result.values(), result.average] for name, result in self.results.items()]
        published = self._published_rows(list(base))
        if self._is_resampled():
            less = Column(f"less {self.baseline}", ("difference", "difference_low", "difference_high"))
            header += [level_column(base.confidence_level, "average"), less]
            differences = self.differences()
            for row in rows:
                interval = self.results[row[0]].intervals["spearman"]["average"]
                row += [interval, differences[row[0]]["average"] if row[0] in differences else ""]
            published = [[*row, "", "", *kind] for row, kind in published]
        else:
            published = [[*row, *kind] for row, kind in published]
        rows = [[*row, self.results[row[0]].aggregate, ""] for row in rows]
        return [*header, "aggregate", "source"], rows + published

    def _published_rows(self, tasks):
        """Return [model, score of each task, average] and [aggregate, source] of each published model."""
        if self.published is None:
            return []
        places = [self.published.tasks.index(task) for task in tasks]
        rows = []
        for i, model in enumerate(self.published.model):
            scores = self.published.spearman[i, places].tolist()
            source = f"{self.published.source[i]}, Table {self.published.table[i]}"
            rows.append(([model, *scores, float(np.mean(scores))], [self.published.aggregate[i], source]))
        return rows

    @property
    def _title(self):
        title = "Spearman's rho x 100"
        if self._is_resampled():
            title += f"; intervals over resampled pairs; noise: no clear difference from {self.baseline}"
        return title
