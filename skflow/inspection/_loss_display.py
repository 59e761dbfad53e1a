"""The loss of a flow while it is fitted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike
from sklearn.utils import column_or_1d

from ._plotting import COLORS, Display, finite_vector, free_colors, line_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class LossCurveDisplay(Display):
    """Loss of a flow at every update, and its moving average.

    Use `from_estimator` or `from_result` to make one; all parameters are stored as attributes.

    Parameters
    ----------
    loss_curve : ndarray of shape (n_updates,)
        Loss of each batch in bits per dimension; nan, a gap, where the update was left out.
    validation_loss : ndarray of shape (n_epochs,), default=None
        Loss of the held-out rows after each epoch, in bits per dimension.
    name : str, default=None
        Name in the legend, to tell several curves on the same axes apart.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The loss of each batch.
    average_ : matplotlib Line2D
        Its moving average.
    validation_ : matplotlib Line2D or None
        The loss of the held-out rows.
    ax_ : matplotlib Axes
        The plot.
    figure_ : matplotlib Figure
        The figure.

    Examples
    --------
    >>> from skflow.inspection import LossCurveDisplay
    >>> display = LossCurveDisplay.from_result([3.0, 2.0, 1.5, 1.2])

    >>> import numpy as np
    >>> from skflow.calibrators import NormalizingFlowCalibrator
    >>> X = np.random.RandomState(0).standard_normal((500, 4)) + 1
    >>> display = LossCurveDisplay.from_estimator(NormalizingFlowCalibrator(random_state=0).fit(X))
    >>> display.plot(window=2).loss_curve.shape
    (8,)
    """

    def __init__(
        self, *, loss_curve: np.ndarray, validation_loss: np.ndarray | None = None, name: str | None = None
    ) -> None:
        self.loss_curve = loss_curve
        self.validation_loss = validation_loss
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        name: str | None = None,
        window: int | None = None,
        ax: Axes | None = None,
        line_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Plot the loss curve of a fitted flow.

        Parameters
        ----------
        estimator : estimator
            Fitted `NormalizingFlowCalibrator`, or a Pipeline that ends in one.
        name : str, default=None
            Name in the legend, to tell several curves on the same axes apart.
        window : int, default=None
            Updates that the moving average spans; None takes a twentieth of them.
        ax : matplotlib Axes, default=None
            Axes to plot on; None makes a new figure.
        line_kwargs : dict, default=None
            Passed to ``plot`` for the loss of each batch.

        Returns
        -------
        display : LossCurveDisplay
            The plot.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If the estimator has no loss curve, or was fitted without an update.
        """
        cls._pyplot("from_estimator")
        flow = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
        if not hasattr(flow, "loss_curve_"):
            raise ValueError(f"{flow!r} has no loss_curve_: it must be a fitted NormalizingFlowCalibrator")
        scores = np.asarray(getattr(flow, "validation_scores_", ()))
        # From nats per row to the unit of the loss.
        loss = -scores / (flow.n_features_in_ * math.log(2)) if len(scores) else None
        return cls.from_result(
            flow.loss_curve_, loss, name=name, window=window, ax=ax, line_kwargs=line_kwargs
        )

    @classmethod
    def from_result(
        cls,
        loss_curve: ArrayLike,
        validation_loss: ArrayLike | None = None,
        *,
        name: str | None = None,
        window: int | None = None,
        ax: Axes | None = None,
        line_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Plot a given loss curve.

        Parameters
        ----------
        loss_curve : array-like of shape (n_updates,)
            Loss of each batch in bits per dimension.
        validation_loss : array-like of shape (n_epochs,), default=None
            Loss of held-out rows after each epoch, in bits per dimension.
        name, window, ax, line_kwargs
            As in `from_estimator`.

        Returns
        -------
        display : LossCurveDisplay
            The plot.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If there is no loss, as after a fit with ``max_epochs=0``, or a validation loss is not finite.
        """
        cls._pyplot("from_result")
        if validation_loss is not None:
            validation_loss = finite_vector(validation_loss, "validation_loss")
        losses: np.ndarray = column_or_1d(loss_curve, dtype=np.float64)
        if not len(losses):
            raise ValueError("loss_curve is empty: a fit with max_epochs=0 has made no update to plot")
        losses = np.where(np.isfinite(losses), losses, np.nan)
        display = cls(loss_curve=losses, validation_loss=validation_loss, name=name)
        return display.plot(ax, window=window, line_kwargs=line_kwargs)

    def plot(
        self, ax: Axes | None = None, *, window: int | None = None, line_kwargs: dict[str, Any] | None = None
    ) -> Self:
        """Plot.

        Parameters
        ----------
        ax, window, line_kwargs
            As in `from_estimator`.

        Returns
        -------
        display : LossCurveDisplay
            Itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = self._start(ax)
        n = len(self.loss_curve)
        window = max(1, n // 20) if window is None else window
        if not 1 <= window <= n:
            raise ValueError(f"window must be from 1 to the number of updates, {n}, got {window!r}")
        updates = np.arange(1, n + 1)
        own, other, *_ = (COLORS[number] for number in free_colors(ax))
        prefix = "" if self.name is None else f"{self.name}: "
        label = f"{prefix}a batch, before its update"
        defaults = {"color": own, "alpha": 0.45, "linewidth": 1, "label": label}
        (self.line_,) = ax.plot(updates, self.loss_curve, **line_style(defaults, line_kwargs))
        average = np.array([_finite_mean(part) for part in sliding_window_view(self.loss_curve, window)])
        (self.average_,) = ax.plot(
            updates[window - 1 :], average, color=own, linewidth=2, label=f"{prefix}mean of {window} batches"
        )
        self.validation_ = None
        if self.validation_loss is not None:
            epochs = np.arange(1, len(self.validation_loss) + 1)
            (self.validation_,) = ax.plot(
                epochs * n / len(epochs),
                self.validation_loss,
                color=other,
                linestyle="--",
                marker="o",
                markersize=4,
                label=f"{prefix}held-out rows, after each epoch",
            )
        ax.set(xlabel="Update (number)", ylabel="Loss (bits per dimension)")
        ax.legend(loc="upper right")
        return self


def _finite_mean(values):
    """Return the mean of the finite values, nan where there is none."""
    finite = values[np.isfinite(values)]
    return finite.mean() if len(finite) else np.nan
