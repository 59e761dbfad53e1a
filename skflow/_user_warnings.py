"""Warnings that point at the user's line."""

import sys
import warnings

# Between the user's line and ours stand the wrappers of scikit-learn and whatever runs its jobs.
_OURS = ("skflow", "sklearn", "joblib", "contextlib", "functools", "pickle")


def warn_user(message, category=UserWarning):
    """Warn as the innermost line outside skflow and scikit-learn, however deep in them the cause is.

    Parameters
    ----------
    message : str
    category : type of Warning, default=UserWarning
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
