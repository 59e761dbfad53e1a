"""Singular values of vectors before and after calibrators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from ._plotting import (
    COLORS,
    LINE_STYLES,
    Display,
    estimator_name,
    free_colors,
    line_style,
    named,
    vectors,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class SingularValueDisplay(Display):
    """Share of every singular direction in the squared length of vectors.

    A cloud that is the same in all directions has a horizontal line at 1 / d; a narrow cone starts high and
    falls steeply. Vectors are not centered: their mean is a direction like others. Use `from_estimator` or
    `from_vectors` to make one; all parameters are stored as attributes.

    Parameters
    ----------
    shares : dict of str to ndarray of shape (min(n_samples, n_features),)
        Squared singular values over their sum, decreasing, by name.
    n_features : int
        Width of the vectors, for the line of equal shares.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        The spectra.
    uniform_ : matplotlib Line2D
        Equal shares.
    ax_ : matplotlib Axes
        The plot.
    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    isotropy_report : The same in numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from skflow.inspection import SingularValueDisplay
    >>> X = np.random.RandomState(0).standard_normal((1000, 4)) + 1
    >>> display = SingularValueDisplay.from_vectors(X)

    >>> from skflow.calibrators import StandardNormalizationCalibrator
    >>> calibrator = StandardNormalizationCalibrator().fit(X)
    >>> display = SingularValueDisplay.from_estimator(calibrator, X)
    >>> display.plot().n_features
    4
    """

    def __init__(self, *, shares: dict[str, np.ndarray], n_features: int) -> None:
        self.shares = shares
        self.n_features = n_features

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        *,
        ax: Axes | None = None,
        line_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Plot the spectrum of vectors before and after calibrators.

        Parameters
        ----------
        estimator : estimator, or mapping of str to estimators
            Fitted calibrator, or several by name.
        X : array-like of shape (n_samples, n_features)
            Vectors; their own spectrum comes first, as "raw".
        ax : matplotlib Axes, default=None
            Axes to plot on; None makes a new figure.
        line_kwargs : dict, default=None
            Passed to ``plot``.

        Returns
        -------
        display : SingularValueDisplay
            The plot.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        cls._pyplot("from_estimator")
        estimators = named(estimator, estimator_name(estimator))
        sets = {"raw": X, **{name: each.transform(X) for name, each in estimators.items()}}
        return cls.from_vectors(sets, ax=ax, line_kwargs=line_kwargs)

    @classmethod
    def from_vectors(
        cls,
        X: ArrayLike | Mapping[str, ArrayLike],
        *,
        ax: Axes | None = None,
        line_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Plot the spectrum of given vectors.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or mapping of str to such
            Vectors, or several sets of them by name.
        ax, line_kwargs
            As in `from_estimator`.

        Returns
        -------
        display : SingularValueDisplay
            The plot.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If vectors are not a finite 2-D array, or all zero.
        """
        cls._pyplot("from_vectors")
        shares, n_features = {}, 1
        for name, values in named(X, "vectors").items():
            Z = vectors(values, name)
            if not Z.any():
                raise ValueError(f"{name} are all zero: they have no spectrum")
            squares = scipy.linalg.svdvals(Z / np.abs(Z).max()) ** 2
            shares[name], n_features = squares / squares.sum(), max(n_features, Z.shape[1])
        return cls(shares=shares, n_features=n_features).plot(ax, line_kwargs=line_kwargs)

    def plot(self, ax: Axes | None = None, *, line_kwargs: dict[str, Any] | None = None) -> Self:
        """Plot.

        Parameters
        ----------
        ax, line_kwargs
            As in `from_estimator`.

        Returns
        -------
        display : SingularValueDisplay
            Itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = self._start(ax)
        self.lines_ = []
        colors = free_colors(ax)
        lowest = 1e-3 / self.n_features  # what lies below is rounding
        for i, (name, values) in enumerate(self.shares.items()):
            number = colors[i % len(colors)]
            defaults = {
                "color": COLORS[number],
                "linestyle": LINE_STYLES[number],
                "linewidth": 2,
                "label": f"{name} (first: {100 * values[0]:.1f}%)",
            }
            shown = np.where(values > lowest, 100 * values, np.nan)
            self.lines_ += ax.plot(np.arange(1, len(values) + 1), shown, **line_style(defaults, line_kwargs))
        self.uniform_ = ax.axhline(
            100 / self.n_features, color="0.5", linewidth=1, linestyle=(0, (1, 2)), label="all equal"
        )
        ax.set(xscale="log", yscale="log")
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.set(xlabel="Singular direction (number)", ylabel="Share of squared length (%)")
        ax.legend(loc="lower left")
        return self
