"""What the displays share: matplotlib on use, colors, sets of named values."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state, column_or_1d

from .._magnitudes import to_numpy

# Okabe and Ito's colors, which people of all kinds of color vision tell apart.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# For those who see no colors at all.
LINE_STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 3)), (0, (1, 4)))
MARKERS = ("o", "^", "s", "D", "v", "P", "X")


class Display:
    """Base class of displays: where they are drawn."""

    @classmethod
    def _pyplot(cls, method) -> Any:
        """Import matplotlib for a method, or say how to install it."""
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError(
                f"{cls.__name__}.{method} requires matplotlib: pip install 'scikit-bertflow[inspection]'"
            ) from error
        return plt

    def _start(self, ax, figsize=None):
        """Keep the axes to draw on, of a new figure if `ax` is None, and return them."""
        plt = self._pyplot("plot")
        if ax is None:
            _, ax = plt.subplots(figsize=figsize, layout="constrained")
        self.ax_ = ax
        self.figure_ = ax.figure
        return ax


def free_colors(ax):
    """Return the numbers of `COLORS` in the order to take them: first those that nothing on the axes has."""
    from matplotlib.colors import to_hex

    artists = [*(line.get_color() for line in ax.lines), *(c.get_facecolor()[:1] for c in ax.collections)]
    taken = {to_hex(np.ravel(color) if not isinstance(color, str) else color) for color in artists}
    return sorted(range(len(COLORS)), key=lambda i: COLORS[i].lower() in taken)


def named(values, default) -> dict[str, Any]:
    """Return a mapping as a dict, and anything else as a dict of one entry named `default`."""
    if not isinstance(values, Mapping):
        return {default: values}
    if not values:
        raise ValueError("got an empty mapping; give at least one entry")
    return {str(name): value for name, value in values.items()}


def estimator_name(estimator):
    """Return the name of an estimator's class, of a Pipeline that of its last step."""
    return type(getattr(estimator, "steps", [(None, estimator)])[-1][1]).__name__


def finite_vector(values, name) -> np.ndarray:
    """Return values as a float64 array of shape (n,), or raise ValueError naming them."""
    return check_array(column_or_1d(values), ensure_2d=False, dtype=np.float64, input_name=name)


def vectors(values, name, min_samples=2) -> np.ndarray:
    """Return values as a float64 array of shape (n_samples, n_features), or raise ValueError naming them."""
    return check_array(to_numpy(values), dtype=np.float64, ensure_min_samples=min_samples, input_name=name)


def sample_rows(n, subsample, random_state) -> np.ndarray:
    """Return which of n points are drawn.

    Parameters
    ----------
    n : int
        Number of points.
    subsample : int, float or None
        Number of points or share of them, None for all.
    random_state : int, RandomState instance or None
        Chooses them.

    Returns
    -------
    rows : ndarray of int
        Increasing.

    Raises
    ------
    ValueError
        If `subsample` is neither a positive int nor between 0 and 1.
    """
    if subsample is None:
        return np.arange(n)
    if isinstance(subsample, int | np.integer) and not isinstance(subsample, bool):
        size = subsample if subsample > 0 else None
    else:
        size = int(n * subsample) if 0 < subsample < 1 else None
    if size is None:
        raise ValueError(
            f"subsample must be a positive int, a share between 0 and 1 or None, got {subsample!r}"
        )
    if size >= n:
        return np.arange(n)
    return np.sort(check_random_state(random_state).choice(n, size=max(1, size), replace=False))


def line_style(defaults, given):
    """Return default keyword arguments of a line, overruled by those given under any of their names."""
    from matplotlib import cbook, lines

    return {**defaults, **cbook.normalize_kwargs(given, lines.Line2D)}


def scatter_style(defaults, given):
    """Return default keyword arguments of a scatter plot, overruled by those given under any name."""
    from matplotlib import cbook, collections

    given = cbook.normalize_kwargs(given, collections.PathCollection)
    if {"c", "facecolor"} & given.keys():  # matplotlib takes one of them or `color`
        defaults = {name: value for name, value in defaults.items() if name != "color"}
    return {**defaults, **given}
