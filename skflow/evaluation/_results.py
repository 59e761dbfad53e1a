"""What evaluations return: figures with their intervals, as mappings that show themselves as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from .._bootstrap import percentile_interval
from .._tables import as_html, as_text
from ._figures import AGGREGATES

if TYPE_CHECKING:
    import pandas as pd


class Interval(NamedTuple):
    """Bounds of a bootstrap confidence interval.

    Attributes
    ----------
    low, high : float
        In the unit of the figure that they belong to: correlations and areas are times 100.
    """

    low: float
    high: float

    def __str__(self):
        return f"[{self.low:.2f}, {self.high:.2f}]"


class Difference(NamedTuple):
    """A figure less that of the baseline on the same pairs, and the bounds of its confidence interval.

    Attributes
    ----------
    difference : float
        In the unit of the figures: correlations are times 100. Above 0 where the figure is the larger one.
    low, high : float
        Bounds of its interval, from the same resamples for both.
    """

    difference: float
    low: float
    high: float

    @property
    def is_noise(self) -> bool:
        """Whether the interval holds 0: the choice of pairs alone may have made the difference."""
        return self.low <= 0 <= self.high

    def __str__(self):
        noise = ", noise" if self.is_noise else ""
        return f"{self.difference:+.2f} [{self.low:+.2f}, {self.high:+.2f}]{noise}"


class _Result(Mapping):
    """What evaluations have in common: figures of sets of pairs and how they are summed up and shown."""

    _row_name: str

    def __init__(
        self,
        figures: Mapping[str, Any],
        metrics: Sequence[str],
        aggregate: str,
        confidence_level: float = 0.95,
    ) -> None:
        self._figures = figures
        self._metrics = metrics
        self.aggregate = aggregate
        self.confidence_level = confidence_level

    def __iter__(self):
        return iter(self._keys())

    def __len__(self):
        return len(self._keys())

    def aggregated(self, aggregate: Literal["wmean", "mean", "all"]) -> Self:
        """Return the same evaluation summed up in another way.

        Parameters
        ----------
        aggregate : {"wmean", "mean", "all"}
            See `evaluate_sts`.

        Returns
        -------
        result : same class
            The result; nothing is computed again.

        Raises
        ------
        ValueError
            If `aggregate` is none of these.
        """
        if aggregate not in AGGREGATES:
            raise ValueError(f"aggregate must be one of {list(AGGREGATES)}, got {aggregate!r}")
        return type(self)(self._figures, self._metrics, aggregate, self.confidence_level)

    @property
    def n_pairs(self) -> dict[str, int]:
        """Number of scored pairs: dict of str to int."""
        return {name: sum(figures.n_pairs.values()) for name, figures in self._figures.items()}

    @property
    def subsets(self) -> dict[str, dict[str, dict[str, float]]]:
        """Figures x 100 and number of pairs of every subset: name -> subset -> figure -> value."""
        return {
            name: {subset: {**figures.subsets[subset], "n_pairs": n} for subset, n in figures.n_pairs.items()}
            for name, figures in self._figures.items()
        }

    @property
    def bootstrap_distribution(self) -> dict[str, dict[str, np.ndarray]]:
        """Metric -> name -> figures x 100 of the resamples, ndarray (n_resamples,); {} without resamples."""
        return {
            metric: {
                name: figures.aggregated_resamples(metric, self.aggregate)
                for name, figures in self._figures.items()
            }
            for metric in (self._metrics if self._is_resampled() else ())
        }

    @property
    def intervals(self) -> dict[str, dict[str, Interval]]:
        """Metric -> name -> confidence interval (low, high) of the figure; {} without resamples."""
        return {
            metric: {name: self._interval(resampled) for name, resampled in by_name.items()}
            for metric, by_name in self.bootstrap_distribution.items()
        }

    def _is_resampled(self):
        return all(figures.resampled for figures in self._figures.values())

    def _interval(self, resampled):
        return Interval(*percentile_interval(resampled, self.confidence_level))

    def to_frame(self, subsets: bool = False) -> pd.DataFrame:
        """Return the figures as a pandas DataFrame.

        Parameters
        ----------
        subsets : bool, default=False
            One row for each subset instead of one for each set of pairs.

        Returns
        -------
        frame : DataFrame
            The columns are the metrics, each followed by the bounds of its interval (``"spearman_low"``,
            ``"spearman_high"``) if there are resamples, and ``"n_pairs"``; the index is the name of the set
            of pairs, and with `subsets` that and the name of the subset.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        import pandas as pd

        ends = ("", "_low", "_high") if self._is_resampled() else ("",)
        columns = [*(f"{metric}{end}" for metric in self._metrics for end in ends), "n_pairs"]
        if subsets:
            rows = {
                (name, subset): row
                for name, figures in self._figures.items()
                for subset, row in self._subset_rows(figures)
            }
            index = pd.MultiIndex.from_tuples(rows, names=[self._row_name, "subset"])
        else:
            rows = dict(self._rows())
            index = pd.Index(rows, name=self._row_name)
        flat = [
            [part for value in row for part in (value if isinstance(value, Interval) else (value,))]
            for row in rows.values()
        ]
        return pd.DataFrame(flat, index=index, columns=columns)

    def _rows(self):
        """Yield name and [figure, interval if there is one, of each metric, number of pairs]."""
        for name, figures in self._figures.items():
            row = []
            for metric in self._metrics:
                row.append(figures.aggregated(metric, self.aggregate))
                if figures.resampled:
                    row.append(self._interval(figures.aggregated_resamples(metric, self.aggregate)))
            yield name, [*row, self.n_pairs[name]]

    def _subset_rows(self, figures):
        for subset, n_pairs in figures.n_pairs.items():
            row = []
            for metric in self._metrics:
                row.append(figures.subsets[subset][metric])
                if figures.resampled:
                    row.append(self._interval(figures.subset_resamples(metric, subset)))
            yield subset, [*row, n_pairs]

    def _table(self):
        header = [self._row_name]
        for metric in self._metrics:
            header += [metric, _level(self.confidence_level)] if self._is_resampled() else [metric]
        return [*header, "n_pairs"], [[name, *row] for name, row in self._rows()]

    def _title(self):
        return f"x 100, aggregate={self.aggregate!r}"

    def __repr__(self):
        return as_text(self._title(), *self._table())

    def _repr_html_(self):
        return as_html(self._title(), *self._table())


class STSResult(_Result):
    """Figures of one encoder on STS tasks: a mapping of tasks to Spearman's rho x 100.

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
        The same for the figures of the resamples, each an ndarray of shape (n_resamples,).
    confidence_level : float
        Probability that the intervals are made for.
    n_pairs : dict of str to int
        Task -> number of scored pairs.
    subsets : dict
        Task -> subset -> ``{"spearman": ..., "pearson": ..., "n_pairs": ...}``.
    """

    _row_name = "task"

    def _keys(self):
        return self._figures

    def __getitem__(self, task):
        return self._figures[task].aggregated("spearman", self.aggregate)

    @property
    def spearman(self) -> dict[str, float]:
        """Task -> Spearman's rho x 100."""
        return dict(self)

    @property
    def pearson(self) -> dict[str, float]:
        """Task -> Pearson's r x 100."""
        return {
            task: figures.aggregated("pearson", self.aggregate) for task, figures in self._figures.items()
        }

    @property
    def average(self) -> float:
        """Mean of Spearman's rho x 100 over the tasks."""
        return float(np.mean(list(self.values())))

    @property
    def bootstrap_distribution(self) -> dict[str, dict[str, np.ndarray]]:
        """Metric -> task or ``"average"`` -> figures x 100 of the resamples, ndarray (n_resamples,)."""
        return {
            metric: {**by_task, "average": np.mean(list(by_task.values()), axis=0)}
            for metric, by_task in super().bootstrap_distribution.items()
        }

    def _table(self):
        header, rows = super()._table()
        intervals = self.intervals
        average = []
        for metric in self._metrics:
            average.append(_with_average(self, metric)["average"])
            if intervals:
                average.append(intervals[metric]["average"])
        return header, [*rows, ["average", *average, ""]]


class PairsResult(_Result):
    """Figure of one encoder on given pairs: a mapping of the metric's name to the figure x 100.

    Returned by `evaluate_pairs`. Its text and HTML representations are tables; ``float(result)`` is the
    figure.

    Attributes
    ----------
    aggregate : {"wmean", "mean", "all"}
        How the subsets are summed up.
    intervals : dict
        Metric -> ``"pairs"`` -> confidence interval (low, high). Empty without resamples.
    bootstrap_distribution : dict
        The same for the figures of the resamples, each an ndarray of shape (n_resamples,).
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
        return self._figures["pairs"].aggregated(metric, self.aggregate)

    def __float__(self):
        return self[self._metrics[0]]

    def _table(self):
        header, rows = super()._table()
        parts = [[subset, *row] for subset, row in self._subset_rows(self._figures["pairs"])]
        return header, parts + rows if len(parts) > 1 else rows


class CalibratorComparison(Mapping):
    """Figures of many calibrators on STS tasks: a mapping of names to `STSResult`.

    Returned by `compare_calibrators`. Its text and HTML representations are tables. If there are resamples
    they show the confidence interval of each average, and the difference of each average from that of the
    baseline with the interval of a paired comparison; where that holds 0 the difference is marked as noise.

    Attributes
    ----------
    results : dict of str to STSResult
        What it maps.
    published : :class:`~sklearn.utils.Bunch` or None
        Published figures shown beside, see :func:`skflow.datasets.load_published_sts`.
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
        mostly much narrower than those of the two figures: two intervals that overlap do not mean that a
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
        if not base._is_resampled():
            raise ValueError("differences needs resamples; the comparison was made with n_resamples=0")
        reference, theirs = base.bootstrap_distribution[metric], _with_average(base, metric)
        differences = {}
        for name, result in self.results.items():
            if result is base:
                continue
            resampled = result.bootstrap_distribution[metric]
            mine = _with_average(result, metric)
            differences[name] = {
                key: Difference(mine[key] - theirs[key], *result._interval(resampled[key] - reference[key]))
                for key in reference
            }
        return differences

    def to_frame(self) -> pd.DataFrame:
        """Return the table as a pandas DataFrame.

        Returns
        -------
        frame : DataFrame
            One row for each calibrator and published model; the columns are the tasks, ``"average"``,
            ``"aggregate"`` and ``"source"`` (empty for what was computed here). If there are resamples,
            ``"average_low"`` and ``"average_high"``, and ``"difference"`` from the baseline,
            ``"difference_low"`` and ``"difference_high"`` follow on the average, nan where there is none. The
            index is the name.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        import pandas as pd

        rows = {name: {**r, "average": r.average} for name, r in self.results.items()}
        if self._is_resampled():
            differences = self.differences()
            for name, result in self.results.items():
                low, high = result.intervals["spearman"]["average"]
                rows[name].update(average_low=low, average_high=high)
                values = differences[name]["average"] if name in differences else (float("nan"),) * 3
                rows[name].update(
                    zip(("difference", "difference_low", "difference_high"), values, strict=True)
                )
        for name, result in self.results.items():
            rows[name].update(aggregate=result.aggregate, source="")
        names = list(rows)
        published = self._published_rows()
        columns = list(next(iter(rows.values())))
        cells = [*rows.values(), *(row for _, row in published)]
        index = pd.Index([*names, *(model for model, _ in published)], name="calibrator")
        return pd.DataFrame(cells, index=index, columns=columns)

    def _is_resampled(self):
        return all(result._is_resampled() for result in self.results.values())

    def _published_rows(self):
        """Return (model, column -> value) of each published model."""
        if self.published is None:
            return []
        tasks = list(self.results[self.baseline])
        places = [self.published.tasks.index(task) for task in tasks]
        rows = []
        for i, model in enumerate(self.published.model):
            figures = self.published.spearman[i, places].tolist()
            row = dict(zip(tasks, figures, strict=True), average=float(np.mean(figures)))
            row["aggregate"] = self.published.aggregate[i]
            row["source"] = f"{self.published.source[i]}, Table {self.published.table[i]}"
            rows.append((model, row))
        return rows

    def _table(self):
        base = self.results[self.baseline]
        header = ["calibrator", *base, "average"]
        rows = [[name, *r.values(), r.average] for name, r in self.results.items()]
        published = [[model, *row.values()] for model, row in self._published_rows()]
        if self._is_resampled():
            header += [_level(base.confidence_level), f"less {self.baseline}"]
            differences = self.differences()
            for row in rows:
                interval = self.results[row[0]].intervals["spearman"]["average"]
                row += [interval, differences[row[0]]["average"] if row[0] in differences else ""]
            published = [[*row[:-2], "", "", *row[-2:]] for row in published]
        header += ["aggregate", "source"]
        return header, [[*row, self.results[row[0]].aggregate, ""] for row in rows] + published

    def _title(self):
        title = "Spearman's rho x 100"
        if self._is_resampled():
            title += f"; intervals over resampled pairs; noise: no clear difference from {self.baseline}"
        return title

    def __repr__(self):
        return as_text(self._title(), *self._table())

    def _repr_html_(self):
        return as_html(self._title(), *self._table())


def _with_average(result, metric):
    figures = getattr(result, metric)
    return {**figures, "average": float(np.mean(list(figures.values())))}


def _level(confidence_level):
    return f"{100 * confidence_level:g}%"
