"""Similarity against gold scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike

from ..metrics import spearman_score
from ._plotting import (
    COLORS,
    MARKERS,
    Display,
    estimator_name,
    finite_vector,
    free_colors,
    named,
    sample_rows,
    scatter_style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class SimilarityDisplay(Display):
    """Scatter plot of similarity against gold scores, with the density of both at the margins.

    Use `from_estimator` or `from_predictions` to make one. All parameters are stored as attributes.

    Parameters
    ----------
    y_true : ndarray of shape (n_pairs,)
        Gold scores.
    y_pred : dict of str to ndarray of shape (n_pairs,)
        Similarities by name, such as those before and after calibrating.

    Attributes
    ----------
    scatter_ : list of matplotlib PathCollection
        The points of each similarity.
    density_ : list of matplotlib Artist
        The marginal densities of the similarities.
    gold_density_ : matplotlib Artist
        The marginal density of the gold scores.
    ax_ : matplotlib Axes
        The scatter plot.
    ax_gold_, ax_similarity_ : matplotlib Axes
        The margins, above and to the right.
    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    skflow.metrics.spearman_score : The correlation in the legend.

    Examples
    --------
    >>> from skflow.inspection import SimilarityDisplay
    >>> y_pred = {"raw": [0.9, 0.8, 0.95], "calibrated": [0.1, 0.5, 0.9]}
    >>> display = SimilarityDisplay.from_predictions([0, 2, 5], y_pred)

    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from skflow.similarity import CosineSimilarityRegressor
    >>> pairs = [("a cat", "a cat"), ("the cat sleeps", "the dog sleeps"), ("a cat", "no dog")]
    >>> model = CosineSimilarityRegressor(TfidfVectorizer()).fit(pairs)
    >>> display = SimilarityDisplay.from_estimator(model, pairs, [5, 3, 0])
    >>> display.plot(subsample=None).y_pred["CosineSimilarityRegressor"].round(2)
    array([1.  , 0.73, 0.  ])
    """

    def __init__(self, *, y_true: np.ndarray, y_pred: dict[str, np.ndarray]) -> None:
        self.y_true = y_true
        self.y_pred = y_pred

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        subsample: int | float | None = 1000,
        random_state: int | np.random.RandomState | None = None,
        ax: Axes | None = None,
        scatter_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Predict the similarity of pairs and plot it against gold scores.

        Parameters
        ----------
        estimator : estimator, or mapping of str to estimators
            Fitted `CosineSimilarityRegressor`, or several by name.
        X : array-like of shape (n_pairs, 2) of str
            Sentence pairs.
        y : array-like of shape (n_pairs,)
            Gold scores.
        subsample : int, float or None, default=1000
            Number of pairs drawn, or share of them. Densities and correlations are those of all.
        random_state : int, RandomState instance or None, default=None
            Chooses them.
        ax : matplotlib Axes, default=None
            Axes to plot on; None makes a new figure.
        scatter_kwargs : dict, default=None
            Passed to ``scatter``.

        Returns
        -------
        display : SimilarityDisplay
            The plot.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        cls._pyplot("from_estimator")
        estimators = named(estimator, estimator_name(estimator))
        y_pred = {name: each.predict(X) for name, each in estimators.items()}
        return cls.from_predictions(
            y, y_pred, subsample=subsample, random_state=random_state, ax=ax, scatter_kwargs=scatter_kwargs
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike | Mapping[str, ArrayLike],
        *,
        subsample: int | float | None = 1000,
        random_state: int | np.random.RandomState | None = None,
        ax: Axes | None = None,
        scatter_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Plot given similarities against gold scores.

        Parameters
        ----------
        y_true : array-like of shape (n_pairs,)
            Gold scores.
        y_pred : array-like of shape (n_pairs,), or mapping of str to such
            Similarities, or several sets of them by name.
        subsample, random_state, ax, scatter_kwargs
            As in `from_estimator`.

        Returns
        -------
        display : SimilarityDisplay
            The plot.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If lengths differ or a value is not a finite number.
        """
        cls._pyplot("from_predictions")
        y_true = finite_vector(y_true, "y_true")
        similarities = {name: finite_vector(y, name) for name, y in named(y_pred, "similarity").items()}
        for name, values in similarities.items():
            if len(values) != len(y_true):
                raise ValueError(f"{name} has {len(values)} similarities, y_true has {len(y_true)} scores")
        display = cls(y_true=y_true, y_pred=similarities)
        return display.plot(ax, subsample=subsample, random_state=random_state, scatter_kwargs=scatter_kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        subsample: int | float | None = 1000,
        random_state: int | np.random.RandomState | None = None,
        scatter_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Plot.

        Parameters
        ----------
        ax, subsample, random_state, scatter_kwargs
            As in `from_estimator`.

        Returns
        -------
        display : SimilarityDisplay
            Itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = self._start(ax)
        rows = sample_rows(len(self.y_true), subsample, random_state)
        self.ax_gold_ = ax.inset_axes((0, 1.02, 1, 0.18), sharex=ax)
        self.ax_similarity_ = ax.inset_axes((1.02, 0, 0.18, 1), sharey=ax)
        colors = free_colors(ax)
        self.gold_density_ = _density(self.ax_gold_, self.y_true, "x", "0.4", None)
        self.scatter_, self.density_ = [], []
        for i, (name, values) in enumerate(self.y_pred.items()):
            number = colors[i % len(colors)]
            color = COLORS[number]
            rho = 100 * spearman_score(self.y_true, values)
            defaults = {
                "color": color,
                "marker": MARKERS[number],
                "s": 14,
                "alpha": 0.5,
                "linewidth": 0,
                "label": rf"{name} ($100\,\rho$ = {rho:.1f})",
            }
            options = scatter_style(defaults, scatter_kwargs)
            self.scatter_.append(ax.scatter(self.y_true[rows], values[rows], **options))
            self.density_.append(_density(self.ax_similarity_, values, "y", color, i))
        ax.set(xlabel="Gold similarity (score)", ylabel="Cosine similarity")
        ax.legend(loc="lower right", markerscale=1.6, framealpha=0.9)
        for margin in (self.ax_gold_, self.ax_similarity_):
            margin.axis("off")
        return self


def _density(ax, values, axis, color, i):
    """Draw a kernel density estimate, or a line where all values are one."""
    spread = np.ptp(values)
    if len(values) < 3 or spread <= 1e-9 * max(1, np.abs(values).max()):
        draw = ax.axvline if axis == "x" else ax.axhline
        return draw(values[0], color=color)
    grid = np.linspace(values.min() - 0.05 * spread, values.max() + 0.05 * spread, 200)
    density = scipy.stats.gaussian_kde(values)(grid)
    fill = ax.fill_between if axis == "x" else ax.fill_betweenx
    return fill(grid, density, color=color, alpha=0.35, linewidth=1.2, linestyle="--" if i else "-")
