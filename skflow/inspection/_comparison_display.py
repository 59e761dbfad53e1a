"""Calibrators side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..metrics import spearman_score
from ._plotting import Display, finite_vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class CalibratorComparisonDisplay(Display):
    """Heat map of Spearman's rho x 100, a row for each calibrator.

    Colors are the gain over the first row. Use `from_estimator`, `from_predictions` or `from_result` to
    make one; all parameters are stored as attributes.

    Parameters
    ----------
    values : ndarray of shape (n_calibrators, n_columns)
        Scores; nan where there is none.
    names : list of str
        Names of the rows.
    columns : list of str
        Names of the columns.

    Attributes
    ----------
    image_ : matplotlib AxesImage
        The colors.
    text_ : ndarray of shape (n_calibrators, n_columns) of matplotlib Text
        The scores.
    colorbar_ : matplotlib Colorbar or None
        The scale of the colors.
    ax_ : matplotlib Axes
        The plot.
    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    skflow.evaluation.compare_calibrators : Makes the comparison on the STS tasks.
    skflow.evaluation.suggest_calibrator : Whether a difference is more than chance.

    Examples
    --------
    >>> from skflow.inspection import CalibratorComparisonDisplay
    >>> scores = {"raw": {"stsb": 61.2, "sickr": 60.0}, "flow": {"stsb": 68.4, "sickr": 62.1}}
    >>> display = CalibratorComparisonDisplay.from_result(scores)

    From similarities, or from fitted models, and drawn again without colors' scale:

    >>> y_pred = {"raw": [0.9, 0.8, 0.95], "flow": [0.1, 0.5, 0.9]}
    >>> display = CalibratorComparisonDisplay.from_predictions([0, 2, 5], y_pred)
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from skflow.similarity import CosineSimilarityRegressor
    >>> pairs = [("a cat", "a cat"), ("the cat sleeps", "the dog sleeps"), ("a cat", "no dog")]
    >>> model = CosineSimilarityRegressor(TfidfVectorizer()).fit(pairs)
    >>> display = CalibratorComparisonDisplay.from_estimator({"tf-idf": model}, pairs, [5, 3, 0])
    >>> display.plot(colorbar=False).values
    array([[100.]])
    """

    def __init__(self, *, values: np.ndarray, names: list[str], columns: list[str]) -> None:
        self.values = values
        self.names = names
        self.columns = columns

    @classmethod
    def from_estimator(
        cls,
        estimators: Mapping[str, Any],
        X: ArrayLike,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        ax: Axes | None = None,
        colorbar: bool = True,
    ) -> Self:
        """Score fitted estimators on pairs and plot the scores.

        Parameters
        ----------
        estimators : mapping of str to estimators
            Fitted `CosineSimilarityRegressor` by name; the first one is what others are compared to.
        X : array-like of shape (n_pairs, 2) of str
            Sentence pairs.
        y : array-like of shape (n_pairs,)
            Gold scores.
        groups : array-like of shape (n_pairs,), default=None
            Group of each pair, such as its subset, for a column of each group.
        ax : matplotlib Axes, default=None
            Axes to plot on; None makes a new figure.
        colorbar : bool, default=True
            Whether to draw the scale of the colors.

        Returns
        -------
        display : CalibratorComparisonDisplay
            The plot.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If `estimators` is not a mapping.
        """
        cls._pyplot("from_estimator")
        if not isinstance(estimators, Mapping):
            raise TypeError(f"estimators must be a mapping of names to estimators, got {estimators!r}")
        y_pred = {name: estimator.predict(X) for name, estimator in estimators.items()}
        return cls.from_predictions(y, y_pred, groups=groups, ax=ax, colorbar=colorbar)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: Mapping[str, ArrayLike],
        *,
        groups: ArrayLike | None = None,
        ax: Axes | None = None,
        colorbar: bool = True,
    ) -> Self:
        """Score given similarities and plot the scores.

        Parameters
        ----------
        y_true : array-like of shape (n_pairs,)
            Gold scores.
        y_pred : mapping of str to array-like of shape (n_pairs,)
            Similarities by name of the calibrator.
        groups, ax, colorbar
            As in `from_estimator`.

        Returns
        -------
        display : CalibratorComparisonDisplay
            The plot.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If `y_pred` is not a mapping.
        ValueError
            If lengths differ or a value is not a finite number.
        """
        cls._pyplot("from_predictions")
        if not isinstance(y_pred, Mapping):
            raise TypeError(f"y_pred must be a mapping of names to similarities, got {type(y_pred).__name__}")
        y_true = finite_vector(y_true, "y_true")
        parts = {"all pairs": np.ones(len(y_true), dtype=bool)}
        if groups is not None:
            groups = np.asarray(groups, dtype=object)
            if groups.shape != y_true.shape:
                raise ValueError(f"groups has shape {groups.shape}, y_true has {y_true.shape}")
            parts = {**{str(g): groups == g for g in dict.fromkeys(groups.tolist())}, **parts}
        scores = {}
        for name, values in y_pred.items():
            values = finite_vector(values, str(name))
            if len(values) != len(y_true):
                raise ValueError(f"{name} has {len(values)} similarities, y_true has {len(y_true)} scores")
            scores[name] = {
                part: 100 * spearman_score(y_true[rows], values[rows]) for part, rows in parts.items()
            }
        return cls.from_result(scores, average=False, ax=ax, colorbar=colorbar)

    @classmethod
    def from_result(
        cls,
        result: Mapping[str, Mapping[str, float]],
        *,
        average: bool = True,
        ax: Axes | None = None,
        colorbar: bool = True,
    ) -> Self:
        """Plot scores that were computed already.

        Parameters
        ----------
        result : CalibratorComparison, or mapping of str to mappings of str to float
            Calibrator -> task -> score, as :func:`skflow.evaluation.compare_calibrators` returns.
        average : bool, default=True
            Whether the mean of the columns is the last one.
        ax, colorbar
            As in `from_estimator`.

        Returns
        -------
        display : CalibratorComparisonDisplay
            The plot.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If there is no calibrator, or calibrators have different tasks.
        """
        cls._pyplot("from_result")
        names = list(result)
        if not names:
            raise ValueError("result is empty; give at least one calibrator")
        columns = list(result[names[0]])
        if not columns or any(list(result[name]) != columns for name in names):
            raise ValueError("result must have the same tasks, at least one, for every calibrator")
        values = np.array([[float(result[name][c]) for c in columns] for name in names])
        if average and len(columns) > 1:
            values = np.hstack([values, values.mean(axis=1, keepdims=True)])
            columns = [*columns, "average"]
        display = cls(values=values, names=[str(n) for n in names], columns=[str(c) for c in columns])
        return display.plot(ax, colorbar=colorbar)

    def plot(self, ax: Axes | None = None, *, colorbar: bool = True) -> Self:
        """Plot.

        Parameters
        ----------
        ax, colorbar
            As in `from_estimator`.

        Returns
        -------
        display : CalibratorComparisonDisplay
            Itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        n_rows, n_columns = self.values.shape
        ax = self._start(ax, figsize=(2.6 + 0.75 * n_columns, 1.4 + 0.45 * n_rows))
        gain = self.values - self.values[0]
        limit = np.nanmax(np.abs(gain), initial=0) or 1
        # From brown over white to purple: told apart in every kind of color vision.
        self.image_ = ax.imshow(gain, cmap="PuOr", vmin=-limit, vmax=limit, aspect="auto")
        self.text_ = np.empty(self.values.shape, dtype=object)
        for (i, j), value in np.ndenumerate(self.values):
            color = "white" if abs(gain[i, j]) > 0.6 * limit else "black"
            shown = f"{value:.1f}" if np.isfinite(value) else "-"
            self.text_[i, j] = ax.text(j, i, shown, ha="center", va="center", color=color)
        ax.set_xticks(range(n_columns), self.columns, rotation=30, ha="right", rotation_mode="anchor")
        ax.set_yticks(range(n_rows), self.names)
        ax.set(xlabel="Task", ylabel="Calibrator")
        self.colorbar_ = None
        if colorbar:
            self.colorbar_ = ax.figure.colorbar(self.image_, ax=ax)
            self.colorbar_.set_label(rf"Gain over {self.names[0]} ($100\,\rho$)")
        return self
