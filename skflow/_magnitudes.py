"""Vectors as they come in: tensors, narrow floats, and magnitudes that no encoder gives."""

import sys
from numbers import Real

import numpy as np
from sklearn.utils import column_or_1d

LARGEST, SMALLEST = 1e30, 1e-30


def to_numpy(X):
    """Return tensors, alone or in a list, and narrow floats that numpy lacks as a numpy array.

    Parameters
    ----------
    X : object
        A torch tensor of any dtype, on any device, with or without gradient; a list or tuple of them; an
        array of ``ml_dtypes`` (bfloat16 and narrower). Anything else is returned as it is.

    Returns
    -------
    X : ndarray or object
        float32 in place of floats that numpy lacks; other dtypes stay.
    """
    if isinstance(X, list | tuple) and any(_is_tensor(x) or _is_foreign(x) for x in X):
        return np.stack([np.asarray(to_numpy(x)) for x in X])
    if _is_tensor(X):
        torch = sys.modules["torch"]
        has_twin = X.dtype in (torch.float64, torch.float32, torch.float16) or not X.is_floating_point()
        return (X if has_twin else X.float()).numpy(force=True)
    return X.astype(np.float32) if _is_foreign(X) else X


def _is_tensor(X):
    """Return whether X is a tensor of torch, without importing it: whoever has a tensor has done so."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def _is_foreign(X):
    """Return whether X is an array, or a number, of a dtype that another package has added to numpy."""
    return isinstance(X, np.ndarray | np.generic) and X.dtype.isbuiltin == 2


def check_magnitudes(X, name="X"):
    """Raise ValueError for vectors whose squares would overflow or vanish.

    Parameters
    ----------
    X : ndarray
        Of a real dtype, finite; only read.
    name : str, default="X"
        What the error calls it.

    Raises
    ------
    ValueError
        If the largest magnitude is above 1e30 or, X not being all zero, under 1e-30.
    """
    if X.size == 0:
        return
    peak = max(float(X.max()), -float(X.min()))
    if peak > LARGEST or 0 < peak < SMALLEST:
        raise ValueError(
            f"the largest magnitude in {name} is {peak:.3g}, expected one from {SMALLEST:g} to {LARGEST:g}: "
            f"rescale the vectors, for instance by {name} / {peak:.3g}"
        )


def check_scores(y, name="y"):
    """Return gold scores as float64; raise ValueError for one that is no finite number, such as text."""
    y = column_or_1d(to_numpy(y))
    for i, value in enumerate(y.tolist()):
        if not (isinstance(value, Real) and np.isfinite(value)):
            raise ValueError(f"{name}[{i}] is {value!r}, expected a finite number, the score of a pair")
    return y.astype(np.float64)
