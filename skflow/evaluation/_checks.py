"""Checks that the evaluations share."""

import reprlib
from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_scalar, column_or_1d

from .._magnitudes import check_scores


def check_choice(name, value, choices):
    """Raise ValueError unless the value is one of the choices."""
    if value not in tuple(choices):
        raise ValueError(f"{name} must be one of {list(choices)}, got {value!r}")


def check_none_missing(name, values, hint=""):
    """Raise ValueError naming the first value that is None or nan."""
    missing = next((i for i, value in enumerate(values) if value is None or value != value), None)
    if missing is not None:
        raise ValueError(f"{name}[{missing}] is missing{hint}")


def check_resampling(n_resamples, confidence_level, *, min_resamples=0):
    """Raise an error unless the arguments of a bootstrap are in range."""
    if isinstance(n_resamples, bool | np.bool_):
        raise TypeError(f"n_resamples must be a number of resamples, 0 for none, got {n_resamples}")
    check_scalar(n_resamples, "n_resamples", Integral, min_val=min_resamples)
    check_scalar(
        confidence_level, "confidence_level", Real, min_val=0, max_val=1, include_boundaries="neither"
    )


def check_y(y, metric):
    """Return the gold scores as finite numbers; for "auc", labels of two classes as they are."""
    y = column_or_1d(y)
    if metric != "auc":
        return check_scores(y)
    values = np.asarray(y).tolist()
    check_none_missing("y", values)
    if set(values) not in ({0, 1}, {-1, 1}):
        raise ValueError(
            f"metric='auc' needs y of booleans, 0 and 1, or -1 and 1, got {reprlib.repr(set(values))}"
        )
    return np.array(values)
