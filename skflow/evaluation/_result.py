"""What evaluations have in common: scores with their intervals, mappings that show themselves as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from .._bootstrap import percentile_interval
from .._tables import Column, Table, as_frame
from ._scores import AGGREGATES

if TYPE_CHECKING:
    import pandas as pd


class Interval(NamedTuple):
    """Bounds of a bootstrap confidence interval.

    Attributes
    ----------
    low, high : float
        In the unit of the score that they belong to: correlations and areas are times 100.
    """

    low: float
    high: float

    def __str__(self):
        return f"[{self.low:.2f}, {self.high:.2f}]"


class Difference(NamedTuple):
    """A score less that of the baseline on the same pairs, and the bounds of its confidence interval.

    Attributes
    ----------
    difference : float
        In the unit of the scores: correlations are times 100. Above 0 where the score is the larger one.
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


class Result(Table, Mapping):
    """What evaluations have in common: scores of sets of pairs and how they are summed up and shown."""

    _row_name: str

    def __init__(
        self,
        scores: Mapping[str, Any],
        metrics: Sequence[str],
        aggregate: str,
        confidence_level: float = 0.95,
    ) -> None:
        self._scores = scores
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
        return type(self)(self._scores, self._metrics, aggregate, self.confidence_level)

    @property
    def n_pairs(self) -> dict[str, int]:
        """Number of scored pairs: dict of str to int."""
        return {name: sum(scores.n_pairs.values()) for name, scores in self._scores.items()}

    @property
    def subsets(self) -> dict[str, dict[str, dict[str, float]]]:
        """Scores x 100 and number of pairs of every subset: name -> subset -> score -> value."""
        return {
            name: {subset: {**scores.subsets[subset], "n_pairs": n} for subset, n in scores.n_pairs.items()}
            for name, scores in self._scores.items()
        }

    @property
    def bootstrap_distribution(self) -> dict[str, dict[str, np.ndarray]]:
        """Metric -> name -> scores x 100 of the resamples, ndarray (n_resamples,); {} without resamples."""
        return {
            metric: {
                name: scores.aggregated_resamples(metric, self.aggregate)
                for name, scores in self._scores.items()
            }
            for metric in (self._metrics if self.is_resampled else ())
        }

    @property
    def intervals(self) -> dict[str, dict[str, Interval]]:
        """Metric -> name -> confidence interval (low, high) of the score; {} without resamples."""
        return {
            metric: {name: self._interval(resampled) for name, resampled in by_name.items()}
            for metric, by_name in self.bootstrap_distribution.items()
        }

    @property
    def is_resampled(self) -> bool:
        """Whether there are resamples."""
        return all(scores.resampled for scores in self._scores.values())

    def _interval(self, resampled):
        return Interval(*percentile_interval(resampled, self.confidence_level))

    def to_frame(self, subsets: bool = False) -> pd.DataFrame:
        """Return the scores as a pandas DataFrame.

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
        if not subsets:
            return super().to_frame()
        (name, *columns), _ = self._table()
        rows = [
            [(name, row[0]), *row[1:]]
            for name, scores in self._scores.items()
            for row in self._subset_rows(scores)
        ]
        return as_frame([(name, "subset"), *columns], rows)

    def _table(self):
        columns: list[Any] = []
        for metric in self._metrics:
            columns.append(metric)
            if self.is_resampled:
                columns.append(level_column(self.confidence_level, metric))
        rows = []
        for name, scores in self._scores.items():
            row = [name]
            for metric in self._metrics:
                row.append(scores.aggregated(metric, self.aggregate))
                if scores.resampled:
                    row.append(self._interval(scores.aggregated_resamples(metric, self.aggregate)))
            rows.append([*row, self.n_pairs[name]])
        return [self._row_name, *columns, "n_pairs"], rows

    def _subset_rows(self, scores):
        for subset, n_pairs in scores.n_pairs.items():
            row = [subset]
            for metric in self._metrics:
                row.append(scores.subsets[subset][metric])
                if scores.resampled:
                    row.append(self._interval(scores.subset_resamples(metric, subset)))
            yield [*row, n_pairs]

    @property
    def _title(self):
        return f"x 100, aggregate={self.aggregate!r}"


def level_column(confidence_level, name):
    """Return the column of the confidence intervals of what `name` names."""
    return Column(f"{100 * confidence_level:g}%", (f"{name}_low", f"{name}_high"))
