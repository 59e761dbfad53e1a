"""Edit distance against similarity: Figure 2 of BERT-flow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from ..similarity import check_pairs
from ._lexical import lexical_overlap
from ._plotting import COLORS, Display, estimator_name, named, sample_rows, scatter_style

if TYPE_CHECKING:
    from ._lexical import LexicalOverlap


class LexicalOverlapDisplay(Display):
    """Edit distance of sentence pairs against their similarity, one panel for each similarity.

    Pairs within an edit distance are marked, as in Figure 2 of Li et al. (2020, arXiv:2011.05864). Use
    `from_estimator` or `from_predictions` to make one; all parameters are stored as attributes.

    Parameters
    ----------
    similarity : dict of str to ndarray of shape (n_pairs,)
        Similarities by name.
    result : LexicalOverlap
        Edit distances and correlations.

    Attributes
    ----------
    close_, others_ : list of matplotlib PathCollection
        The marked pairs and the others, for each panel.
    axes_ : ndarray of matplotlib Axes
        The panels.
    ax_ : matplotlib Axes
        The axes that hold the panels, or the first panel if several axes were given.
    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    lexical_overlap : The same in numbers.

    Examples
    --------
    >>> from skflow.inspection import LexicalOverlapDisplay
    >>> pairs = [("a cat sat", "a cat sat"), ("a cat sat", "a cat ran"), ("a cat", "it rains now")]
    >>> display = LexicalOverlapDisplay.from_predictions(pairs, [1.0, 0.9, 0.2], [5.0, 2.0, 0.0])

    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from skflow.similarity import CosineSimilarityRegressor
    >>> model = CosineSimilarityRegressor(TfidfVectorizer()).fit(pairs)
    >>> display = LexicalOverlapDisplay.from_estimator(model, pairs, [5.0, 2.0, 0.0])
    >>> display.plot().result.n_pairs
    3
    """

    def __init__(self, *, similarity: dict[str, np.ndarray], result: LexicalOverlap) -> None:
        self.similarity = similarity
        self.result = result

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        unit: Literal["word", "character"] = "word",
        max_distance: float = 4,
        subsample: int | float | None = 1000,
        random_state: int | np.random.RandomState | None = None,
        ax: Any = None,
        scatter_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Predict the similarity of pairs and plot their edit distance against it.

        Parameters
        ----------
        estimator : estimator, or mapping of str to estimators
            Fitted `CosineSimilarityRegressor`, or several by name.
        X : array-like of shape (n_pairs, 2) of str
            Sentence pairs.
        y : array-like of shape (n_pairs,), default=None
            Gold scores, for the first panel.
        unit : {"word", "character"}, default="word"
            What is edited.
        max_distance : float, default=4
            Pairs of at most this edit distance are marked.
        subsample : int, float or None, default=1000
            Number of pairs drawn, or share of them. Correlations are those of all.
        random_state : int, RandomState instance or None, default=None
            Chooses them.
        ax : matplotlib Axes, or array-like of such, default=None
            Axes to divide into panels, or one for each panel; None makes a new figure.
        scatter_kwargs : dict, default=None
            Passed to ``scatter``.

        Returns
        -------
        display : LexicalOverlapDisplay
            The plot.

        Raises
        ------
        ImportError
            If matplotlib or rapidfuzz is not installed.
        """
        cls._pyplot("from_estimator")
        estimators = named(estimator, estimator_name(estimator))
        return cls.from_predictions(
            X,
            {name: each.predict(X) for name, each in estimators.items()},
            y,
            unit=unit,
            max_distance=max_distance,
            subsample=subsample,
            random_state=random_state,
            ax=ax,
            scatter_kwargs=scatter_kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        X: ArrayLike,
        y_pred: ArrayLike | Mapping[str, ArrayLike],
        y_true: ArrayLike | None = None,
        *,
        unit: Literal["word", "character"] = "word",
        max_distance: float = 4,
        subsample: int | float | None = 1000,
        random_state: int | np.random.RandomState | None = None,
        ax: Any = None,
        scatter_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Plot edit distance against given similarities.

        Parameters
        ----------
        X : array-like of shape (n_pairs, 2) of str
            Sentence pairs.
        y_pred : array-like of shape (n_pairs,), or mapping of str to such
            Similarities, or several sets of them by name.
        y_true : array-like of shape (n_pairs,), default=None
            Gold scores, for the first panel.
        unit, max_distance, subsample, random_state, ax, scatter_kwargs
            As in `from_estimator`.

        Returns
        -------
        display : LexicalOverlapDisplay
            The plot.

        Raises
        ------
        ImportError
            If matplotlib or rapidfuzz is not installed.
        ValueError
            If lengths differ or a value is not a finite number.
        """
        cls._pyplot("from_predictions")
        check_pairs(X)
        similarity = named(y_pred, "similarity")
        result = lexical_overlap(X, similarity, y_true, unit=unit, max_distance=max_distance)
        shown = similarity if y_true is None else {"y_true": y_true, **similarity}
        shown = {name: np.asarray(values, dtype=np.float64).ravel() for name, values in shown.items()}
        display = cls(similarity=shown, result=result)
        return display.plot(ax, subsample=subsample, random_state=random_state, scatter_kwargs=scatter_kwargs)

    def plot(
        self,
        ax: Any = None,
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
        display : LexicalOverlapDisplay
            Itself.

        Raises
        ------
        ValueError
            If `ax` holds another number of axes than there are panels.
        """
        plt = self._pyplot("plot")
        n_panels = len(self.similarity)
        if ax is None or isinstance(ax, plt.Axes):
            ax = self._start(ax, figsize=(3.2 * n_panels, 3.8))
            self.axes_ = _panels(ax, n_panels)
        else:
            self.axes_ = np.asarray(ax).ravel()
            if len(self.axes_) != n_panels:
                raise ValueError(f"ax holds {len(self.axes_)} axes; expected {n_panels}, one for each panel")
            self._start(self.axes_[0])
        distances, limit = self.result.distances, self.result.max_distance
        close = np.zeros(len(distances), dtype=bool) if limit is None else distances <= limit
        rows = sample_rows(len(distances), subsample, random_state)
        # Edit distances are whole numbers: points are spread a little so that they do not cover each other.
        jitter = np.random.RandomState(0).uniform(-0.35, 0.35, size=len(distances))
        self.close_, self.others_ = [], []
        for panel, (name, values) in zip(self.axes_, self.similarity.items(), strict=True):
            for part, store, color, marker in (
                (~close, self.others_, COLORS[0], "o"),
                (close, self.close_, COLORS[1], "^"),
            ):
                drawn = rows[part[rows]]
                defaults = {"color": color, "marker": marker, "s": 12, "alpha": 0.5, "linewidth": 0}
                options = scatter_style(defaults, scatter_kwargs)
                store.append(panel.scatter(values[drawn], distances[drawn] + jitter[drawn], **options))
            rho = self.result.edit_distance[name]
            is_gold = name == "y_true"
            title = "gold scores" if is_gold else name
            panel.set_title(f"{title}\n" rf"$100\,\rho$ = {rho:.1f}", fontsize="medium")
            panel.set_xlabel("Gold similarity (score)" if is_gold else "Cosine similarity")
        unit = f"{self.result.unit}s"
        self.axes_[0].set_ylabel(f"Edit distance ({unit})")
        if limit is not None:
            self.close_[-1].set_label(f"at most {limit:g} {unit}")
            self.others_[-1].set_label(f"more than {limit:g}")
            handles = [self.close_[-1], self.others_[-1]]
            self.axes_[-1].legend(handles=handles, loc="upper left", markerscale=1.6, framealpha=0.9)
            self.axes_[-1].set_ylim(top=1.3 * max(1, distances.max()))  # room for the legend above the points
        return self


def _panels(ax, n_panels):
    """Divide axes into panels that share their ordinate."""
    if n_panels == 1:
        return np.array([ax])
    ax.axis("off")
    width = 1 / (n_panels + 0.06 * (n_panels - 1))
    panels = []
    for i in range(n_panels):
        panel = ax.inset_axes((1.06 * i * width, 0, width, 1), sharey=panels[0] if panels else None)
        panel.tick_params(labelleft=i == 0)
        panels.append(panel)
    return np.array(panels)
