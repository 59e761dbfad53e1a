"""A fitted estimator as JSON and arrays, and back."""

import re

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._stamps import STAMP

FORMAT = "skflow-calibrator"
FORMAT_VERSION = 1
NOT_SAVED = frozenset({STAMP, "_metadata_request"})  # routing requests concern the next fit, not this one


def to_config(estimator):
    """Return what defines a fitted estimator, as a JSON-ready dict and the arrays that it names.

    Parameters
    ----------
    estimator : estimator
        Fitted, of a class with :class:`VersionStamped`.

    Returns
    -------
    config : dict
        Of plain values.
    tensors : dict of str to ndarray
        C-contiguous arrays.

    Raises
    ------
    TypeError
        If a parameter or a fitted value cannot be represented.
    """
    state = estimator.__getstate__()
    params = estimator.get_params(deep=False)
    fitted = {name: value for name, value in state.items() if name not in params and name not in NOT_SAVED}
    tensors = {}
    kind = type(estimator).__name__
    config = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "skflow_version": state[STAMP],
        "class": kind,
        "params": {
            name: _encode(value, name, tensors, f"The parameter {name} of this {kind}")
            for name, value in params.items()
        },
        "fitted": {
            name: _encode(value, name, tensors, f"The attribute {name} of this {kind}")
            for name, value in fitted.items()
        },
    }
    return config, tensors


def from_config(cls, config, tensors):
    """Rebuild an estimator from what `to_config` returned.

    Parameters
    ----------
    cls : type
        Class to expect, itself or a subclass in skflow.
    config : dict
        From JSON, unchecked.
    tensors : dict of str to ndarray

    Returns
    -------
    estimator : estimator
        Fitted.

    Raises
    ------
    ValueError
        If config and tensors do not describe an estimator of `cls`.
    """
    kind = _class_named(config["class"], cls)
    params = {name: _decode(value, tensors) for name, value in config["params"].items()}
    unknown = params.keys() - kind._get_param_names()
    if unknown:
        raise ValueError(f"{kind.__name__} has no parameter {sorted(unknown)[0]!r}")
    fitted = {name: _decode(value, tensors) for name, value in config["fitted"].items()}
    for name in fitted:
        # Nothing may hide a method, a property or a class attribute.
        if not re.fullmatch(r"_(?!_)\w+|[A-Za-z]\w*_", name) or hasattr(kind, name) or name in NOT_SAVED:
            raise ValueError(f"{name!r} is no fitted attribute of {kind.__name__}")
    estimator = kind(**params)
    estimator._validate_params()
    estimator.__setstate__({**vars(estimator), **fitted, STAMP: config["skflow_version"]})
    check_is_fitted(estimator)
    estimator._check_fitted_state()
    return estimator


def _encode(value, name, tensors, subject):
    """Return `value` as JSON, with its arrays put into `tensors`."""
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return {"scalar": _add_tensor(np.asarray(value), name, tensors, subject)}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "OU" and all(isinstance(item, str) for item in value.flat) and value.ndim == 1:
            return {"strings": value.tolist()}
        encoded = {"array": _add_tensor(value, name, tensors, subject)}
        if value.flags.f_contiguous and not value.flags.c_contiguous:
            encoded["order"] = "F"  # the layout decides how products round
        return encoded
    if isinstance(value, (list, tuple)):
        items = [_encode(item, f"{name}/{i}", tensors, subject) for i, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {
            "dict": {key: _encode(item, f"{name}/{key}", tensors, subject) for key, item in value.items()}
        }
    raise TypeError(
        f"{subject} cannot be saved without pickle: it is {_described(value)}, expected numbers, strings, "
        "arrays of them, or lists, tuples and dicts of these. joblib.dump saves any value."
    )


def _described(value):
    text = repr(value)
    return f"{text if len(text) < 80 else text[:77] + '...'} of type {type(value).__name__}"


def _add_tensor(array, name, tensors, subject):
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise TypeError(f"{subject} cannot be saved without pickle: it is an array of dtype {array.dtype}.")
    while name in tensors:  # keys may hold slashes, too
        name += "'"
    tensors[name] = np.array(array, dtype=array.dtype.newbyteorder("="), order="C")
    return name


def _decode(value, tensors):
    """Return the value that `_encode` made `value` of."""
    if isinstance(value, list):
        return [_decode(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"tuple": list(items), **rest} if not rest:
            return tuple(_decode(item, tensors) for item in items)
        case {"dict": dict(items), **rest} if not rest:
            return {key: _decode(item, tensors) for key, item in items.items()}
        case {"float": "nan" | "inf" | "-inf" as text, **rest} if not rest:
            return float(text)
        case {"strings": list(items), **rest} if not rest and all(isinstance(item, str) for item in items):
            return np.array(items, dtype=object)
        case {"array": str(name), **rest} if rest in ({}, {"order": "F"}) and name in tensors:
            return np.array(tensors[name], order=rest.get("order", "C"))
        case {"scalar": str(name), **rest} if not rest and name in tensors and tensors[name].ndim == 0:
            return tensors[name][()]
    raise ValueError(f"it has a value that cannot be read, {_described(value)}")


def _class_named(name, cls):
    """Return the class of that name: `cls` itself or one of its subclasses in skflow."""
    classes = {cls.__name__: cls}
    pending = [cls]
    while pending:
        for subclass in pending.pop().__subclasses__():
            pending.append(subclass)
            if subclass.__module__.partition(".")[0] == "skflow":
                classes.setdefault(subclass.__name__, subclass)
    if name not in classes:
        raise ValueError(f"it is a saved {name!r}")
    return classes[name]
