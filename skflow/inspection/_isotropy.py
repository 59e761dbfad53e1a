"""The shape of the cloud of vectors, before and after calibrators."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import check_array

from .._magnitudes import check_magnitudes, to_numpy
from .._tables import Table
from ..metrics import average_cosine, effective_rank, partition_isotropy
from ._normality import measure_normality


def isotropy_report(
    X: ArrayLike, calibrators: Mapping[str, Any] | None = None, *, prefit: bool = False
) -> IsotropyReport:
    """Measure how isotropic and how Gaussian vectors are, before and after calibrators.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Sentence vectors.
    calibrators : mapping of str to estimator, default=None
        Calibrators by name. Clones of them are fitted on `X`.
    prefit : bool, default=False
        Use the calibrators as they are, fitted elsewhere.

    Returns
    -------
    report : IsotropyReport
        The measures of ``"raw"``, the vectors as they are, and of every calibrator.

    Raises
    ------
    ValueError
        If `X` is not a finite 2-D array of at least two rows, or a calibrator is named "raw".
    TypeError
        If `calibrators` is not a mapping.
    NotFittedError
        If a calibrator is not fitted, with ``prefit=True``.

    Warns
    -----
    UndefinedMetricWarning
        If all vectors are zero, or all the same: what is undefined there is nan. Features that are constant
        are left out of medians without a warning.

    See Also
    --------
    skflow.metrics : The measures one by one.
    normality : The measures of every feature.
    SingularValueDisplay, LatentDistributionDisplay : Plots.
    skflow.evaluation.suggest_calibrator : Whether a calibrator helps, which isotropy does not tell.

    Notes
    -----
    None of these measures says how well similarity follows meaning: whitening makes any vectors isotropic,
    and those of a tuned encoder worse.

    Examples
    --------
    >>> import numpy as np
    >>> from skflow.calibrators import WhiteningCalibrator
    >>> from skflow.inspection import isotropy_report
    >>> X = np.random.RandomState(0).standard_normal((500, 3)) * [3, 1, 1] + 5
    >>> report = isotropy_report(X, {"whitening": WhiteningCalibrator(strength=1.0)})
    >>> round(report["raw"].average_cosine, 2), round(report["whitening"].average_cosine, 2)
    (0.91, -0.0)
    """
    X = check_array(to_numpy(X), dtype=(np.float64, np.float32), ensure_min_samples=2, input_name="X")
    calibrators = {} if calibrators is None else calibrators
    if not isinstance(calibrators, Mapping):
        raise TypeError(f"calibrators must be a mapping of names to calibrators, got {calibrators!r}")
    if "raw" in calibrators:
        raise ValueError("calibrators has an entry named 'raw', which is the name of the vectors as they are")
    rows = {"raw": _measure(X)}
    for name, calibrator in calibrators.items():
        fitted = calibrator if prefit else clone(calibrator).fit(X)
        rows[name] = _measure(fitted.transform(X))
    return IsotropyReport(rows)


@dataclass(frozen=True)
class Isotropy:
    """Measures of one set of vectors.

    Attributes
    ----------
    average_cosine : float
        Mean cosine between two different vectors; near 0 if directions spread evenly.
    partition_isotropy : float
        From 0 to 1, which is isotropic; see :func:`skflow.metrics.partition_isotropy`.
    top_singular_share : float
        Share of the largest squared singular value, of the vectors as they are, in the sum of all; 1 / d at
        best.
    effective_rank : float
        Number of dimensions really used, of the vectors minus their mean; see
        :func:`skflow.metrics.effective_rank`.
    median_ks, median_ks_shape : float
        Medians over the features of the Kolmogorov-Smirnov statistics against N(0, 1), as they are and
        standardized; see :func:`normality`.
    median_abs_skewness, median_abs_excess_kurtosis : float
        Medians over the features of absolute values.
    """

    average_cosine: float
    partition_isotropy: float
    top_singular_share: float
    effective_rank: float
    median_ks: float
    median_ks_shape: float
    median_abs_skewness: float
    median_abs_excess_kurtosis: float


class IsotropyReport(Mapping, Table):
    """Shape of vectors before and after calibrators: a mapping of names to `Isotropy`.

    Returned by `isotropy_report`. Its text and HTML representations are tables.
    """

    _title = "Isotropy and normality"
    _format = ".3g"

    def __init__(self, rows: dict[str, Isotropy]) -> None:
        self._rows = rows

    def __getitem__(self, name):
        return self._rows[name]

    def __iter__(self):
        return iter(self._rows)

    def __len__(self):
        return len(self._rows)

    def _table(self):
        columns = [name.replace("_", " ") for name in Isotropy.__dataclass_fields__]
        return ["vectors", *columns], [[name, *vars(row).values()] for name, row in self._rows.items()]


def _measure(Z):
    Z = np.asarray(Z, dtype=np.float64)
    check_magnitudes(Z)
    squares = scipy.linalg.svdvals(Z) ** 2
    share = float("nan")
    if squares[0] > 0:
        share = float(squares[0] / squares.sum())
    else:
        warnings.warn(
            "the share of a singular value is undefined: all are zero", UndefinedMetricWarning, stacklevel=3
        )
    measures = measure_normality(Z)
    if np.isnan(measures.ks_shape).all():
        warnings.warn("shape is undefined: every feature is constant", UndefinedMetricWarning, stacklevel=3)
    return Isotropy(
        average_cosine=average_cosine(Z),
        partition_isotropy=partition_isotropy(Z),
        top_singular_share=share,
        effective_rank=effective_rank(Z, center=True),
        median_ks=float(np.median(measures.ks)),
        median_ks_shape=_median(measures.ks_shape),
        median_abs_skewness=_median(np.abs(measures.skewness)),
        median_abs_excess_kurtosis=_median(np.abs(measures.excess_kurtosis)),
    )


def _median(values):
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else float("nan")
