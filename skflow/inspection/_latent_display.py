"""The distribution of a latent's features against the Gaussian."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike

from ._normality import ks_statistic
from ._plotting import COLORS, Display, estimator_name, free_colors, line_style, vectors

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class LatentDistributionDisplay(Display):
    """Histograms of the features of vectors against the standard Gaussian.

    Every feature has a histogram. The line is the median of their densities, the band holds nine features of
    ten. Use `from_estimator` or `from_vectors` to make one; all parameters are stored as attributes.

    What a flow of a strength below 1 returns is no latent any more: its features have a part of the spectrum
    back.

    Parameters
    ----------
    vectors : ndarray of shape (n_samples, n_features)
        Vectors, usually a latent.
    name : str, default="latent"
        Name in the legend.

    Attributes
    ----------
    line_ : matplotlib Line2D
        Median density.
    band_ : matplotlib PolyCollection
        From the 5th to the 95th percentile of the features.
    gaussian_ : matplotlib Line2D or None
        The density of the standard Gaussian.
    ax_ : matplotlib Axes
        The plot.
    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    normality : The measures of every feature.

    Examples
    --------
    >>> import numpy as np
    >>> from skflow.inspection import LatentDistributionDisplay
    >>> Z = np.random.RandomState(0).standard_normal((1000, 4))
    >>> display = LatentDistributionDisplay.from_vectors(Z)

    >>> from skflow.calibrators import StandardNormalizationCalibrator
    >>> calibrator = StandardNormalizationCalibrator().fit(Z)
    >>> display = LatentDistributionDisplay.from_estimator(calibrator, Z)
    >>> display.plot(bins=30).name
    'StandardNormalizationCalibrator'
    """

    def __init__(self, *, vectors: np.ndarray, name: str = "latent") -> None:
        self.vectors = vectors
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        *,
        name: str | None = None,
        bins: int = 60,
        plot_gaussian: bool = True,
        ax: Axes | None = None,
        line_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Transform vectors and plot the distribution of the result.

        Parameters
        ----------
        estimator : estimator
            Fitted calibrator, or a Pipeline that ends in one.
        X : array-like of shape (n_samples, n_features)
            What it transforms.
        name : str, default=None
            Name in the legend; None takes that of the class.
        bins : int, default=60
            Number of bins from -4 to 4 standard deviations.
        plot_gaussian : bool, default=True
            Whether to draw the Gaussian.
        ax : matplotlib Axes, default=None
            Axes to plot on; None makes a new figure.
        line_kwargs : dict, default=None
            Passed to ``plot`` for the line, and its color to the band.

        Returns
        -------
        display : LatentDistributionDisplay
            The plot.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        cls._pyplot("from_estimator")
        return cls.from_vectors(
            estimator.transform(X),
            name=estimator_name(estimator) if name is None else name,
            bins=bins,
            plot_gaussian=plot_gaussian,
            ax=ax,
            line_kwargs=line_kwargs,
        )

    @classmethod
    def from_vectors(
        cls,
        X: ArrayLike,
        *,
        name: str = "latent",
        bins: int = 60,
        plot_gaussian: bool = True,
        ax: Axes | None = None,
        line_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Plot the distribution of given vectors.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors that were transformed already.
        name : str, default="latent"
            Name in the legend.
        bins, plot_gaussian, ax, line_kwargs
            As in `from_estimator`.

        Returns
        -------
        display : LatentDistributionDisplay
            The plot.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If the vectors are not a finite 2-D array of at least two rows.
        """
        cls._pyplot("from_vectors")
        display = cls(vectors=vectors(X, "vectors"), name=name)
        return display.plot(ax, bins=bins, plot_gaussian=plot_gaussian, line_kwargs=line_kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        bins: int = 60,
        plot_gaussian: bool = True,
        line_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Plot.

        Parameters
        ----------
        ax, bins, plot_gaussian, line_kwargs
            As in `from_estimator`.

        Returns
        -------
        display : LatentDistributionDisplay
            Itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = self._start(ax)
        edges = np.linspace(-4, 4, bins + 1)
        centers = (edges[:-1] + edges[1:]) / 2
        counts = np.stack([np.histogram(column, edges)[0] for column in self.vectors.T])
        low, middle, high = np.percentile(
            counts / (len(self.vectors) * (edges[1] - edges[0])), [5, 50, 95], axis=0
        )
        ks = float(np.median(ks_statistic(self.vectors)))
        color = COLORS[free_colors(ax)[0]]
        label = f"{self.name} (median KS {ks:.3f})"
        options = line_style({"color": color, "linewidth": 2, "label": label}, line_kwargs)
        (self.line_,) = ax.plot(centers, middle, **options)
        self.band_ = ax.fill_between(
            centers, low, high, color=self.line_.get_color(), alpha=0.25, linewidth=0, label="90% of features"
        )
        self.gaussian_ = None
        if plot_gaussian:
            (self.gaussian_,) = ax.plot(
                centers, scipy.stats.norm.pdf(centers), "k--", linewidth=1.5, label="standard Gaussian"
            )
        ax.set(xlabel="Value of a feature (standard deviations)", ylabel="Density (per standard deviation)")
        # Room for the legend above the peaks.
        ax.set(xlim=(-4, 4), ylim=(0, 1.5 * max(high.max(), 0.4, ax.get_ylim()[1] / 1.5)))
        ax.legend(loc="upper right")
        return self
