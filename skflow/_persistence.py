"""Fitted estimators on disk: version stamps in pickles, and a format without pickle.

A directory that `save_pretrained` writes holds two files. ``calibrator.json`` says which class, which
parameters and which fitted values; where a value is an array, it names a tensor of
``parameters-<digest>.safetensors``. The second file is written first, under a name of its own for each
content, and the first replaced atomically: whoever reads the directory at any moment, or after a crash,
finds the old calibrator or the new one, whole.
"""

import hashlib
import json
import os
import re
import uuid
import warnings
from os import PathLike
from pathlib import Path
from typing import Self

import numpy as np
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils.validation import check_is_fitted

from ._version import __version__

CONFIG_NAME = "calibrator.json"
_FORMAT = "skflow-calibrator"
_FORMAT_VERSION = 1
_STAMP = "_skflow_version"
_NOT_SAVED = frozenset({_STAMP, "_metadata_request"})  # routing requests concern the next fit, not this one
_TENSORS_NAME = re.compile(r"parameters-[0-9a-f]{16}\.safetensors")


class InconsistentSkflowVersionWarning(InconsistentVersionWarning):
    """A fitted estimator was written by another version of skflow than the one that reads it.

    Parameters
    ----------
    estimator_name : str
        Class of the estimator.
    current_skflow_version : str
        Version that reads.
    original_skflow_version : str
        Version that wrote, "unknown" where the file does not say.

    Examples
    --------
    >>> import warnings
    >>> from skflow.exceptions import InconsistentSkflowVersionWarning
    >>> warning = InconsistentSkflowVersionWarning(
    ...     estimator_name="WhiteningCalibrator",
    ...     current_skflow_version="0.2.0",
    ...     original_skflow_version="0.1.0",
    ... )
    >>> print(str(warning)[:52])
    This WhiteningCalibrator was saved by skflow 0.1.0 a
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", InconsistentSkflowVersionWarning)  # refuse to load such files
    """

    def __init__(
        self, *, estimator_name: str, current_skflow_version: str, original_skflow_version: str
    ) -> None:
        self.estimator_name = estimator_name
        self.current_skflow_version = current_skflow_version
        self.original_skflow_version = original_skflow_version

    def __str__(self):
        return (
            f"This {self.estimator_name} was saved by skflow {self.original_skflow_version} and is loaded by "
            f"skflow {self.current_skflow_version}: it may fail, or give other numbers than it gave there. "
            "Load it with the version that saved it, or fit it again."
        )


class VersionStamped:
    """Mixin that stamps pickles with skflow's version.

    To be placed left of :class:`sklearn.base.BaseEstimator`. The stamp is in the state only, never an
    attribute of the estimator. A state of another version, or of none, is read with a warning. Paths in the
    state are strings.

    Warns
    -----
    InconsistentSkflowVersionWarning
        On unpickling what another version of skflow wrote. It is a subclass of
        :class:`sklearn.exceptions.InconsistentVersionWarning`, so that one filter covers both.
    """

    def __getstate__(self):
        # A path of this system's class could not be read on another one, and skops would ask to trust it.
        plain = {
            name: os.fspath(value) if isinstance(value, os.PathLike) else value
            for name, value in super().__getstate__().items()
        }
        return {**plain, _STAMP: __version__}

    def __setstate__(self, state):
        state = dict(state)
        version = state.pop(_STAMP, "unknown")
        if version != __version__:
            warnings.warn(
                InconsistentSkflowVersionWarning(
                    estimator_name=type(self).__name__,
                    current_skflow_version=__version__,
                    original_skflow_version=version,
                ),
                stacklevel=2,
            )
        super().__setstate__(state)


class SavePretrainedMixin:
    """Mixin that saves a fitted estimator as safetensors and JSON, and loads it without running any code.

    To be placed left of :class:`VersionStamped`. What can be saved are numpy arrays of numbers, arrays of
    str, and plain values (None, bool, int, float, str), in lists, tuples and dicts with str keys to any
    depth.
    """

    def save_pretrained(self, directory: str | PathLike[str]) -> None:
        """Save the fitted estimator in a directory, as safetensors and JSON.

        An estimator saved there before is replaced in one step: a process that is killed while it saves
        leaves the old one usable.

        Parameters
        ----------
        directory : str or path-like
            Where to write ``calibrator.json`` and ``parameters-<digest>.safetensors``. It is created where it
            does not exist; other files in it stay.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        TypeError
            If a parameter or a fitted value is not of a kind that the format knows, a callable for instance.
        OSError
            If the files cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from skflow.calibrators import WhiteningCalibrator
        >>> calibrator = WhiteningCalibrator().fit(np.array([[1.0], [3.0]]))
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     calibrator.save_pretrained(directory)
        ...     WhiteningCalibrator.from_pretrained(directory).mean_
        array([2.])
        """
        from safetensors.numpy import save

        check_is_fitted(self)
        config, tensors = to_config(self)
        data = save(tensors)
        digest = hashlib.sha256(data).hexdigest()
        config["tensors"] = {"file": f"parameters-{digest[:16]}.safetensors", "sha256": digest}

        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        former = _tensors_file(directory)
        write_atomically(directory / config["tensors"]["file"], data)
        write_atomically(directory / CONFIG_NAME, json.dumps(config, indent=2, allow_nan=False).encode())
        if former not in (None, config["tensors"]["file"]):
            (directory / former).unlink(missing_ok=True)

    @classmethod
    def from_pretrained(cls, directory: str | PathLike[str]) -> Self:
        """Load a fitted estimator that `save_pretrained` wrote.

        Nothing in the files is run: they may come from others. They are checked against their checksum, and
        the parameters and arrays against what the class expects.

        Parameters
        ----------
        directory : str or path-like
            Directory that holds ``calibrator.json``.

        Returns
        -------
        estimator : object
            Of this class or, if called on a base class, of that subclass in skflow which was saved.

        Raises
        ------
        FileNotFoundError
            If there is no such directory or file.
        ValueError
            If a file is damaged, not of this format, of a newer one, or of another class.

        Warns
        -----
        InconsistentSkflowVersionWarning
            If another version of skflow wrote it.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from skflow.calibrators import WhiteningCalibrator
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     WhiteningCalibrator().fit(np.array([[1.0], [3.0]])).save_pretrained(directory)
        ...     WhiteningCalibrator.from_pretrained(directory).transform([[4.0]])
        array([[2.]])
        """
        directory = Path(directory)
        path = directory / CONFIG_NAME
        try:
            config = _read_config(path)
            tensors = _read_tensors(directory, config["tensors"])
            return from_config(cls, config, tensors)
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"There is no saved {cls.__name__} in {str(directory)!r}: {error.filename!r} does not exist. "
                "save_pretrained writes it."
            ) from error
        except _InvalidFormatError as error:
            raise ValueError(f"{str(directory)!r} holds no usable {cls.__name__}: {error}") from error

    def _check_fitted_state(self):
        """Raise ValueError where fitted values, which may come from anywhere, do not fit together.

        A subclass lists its arrays in `_fitted_shapes`, name to shape; an entry of a shape is the name of the
        fitted attribute that holds it.
        """
        n_features = getattr(self, "n_features_in_", None)
        if not isinstance(n_features, int) or isinstance(n_features, bool) or n_features < 1:
            raise ValueError(f"n_features_in_ is {n_features!r}, expected a positive int")
        names = getattr(self, "feature_names_in_", None)
        if names is not None and np.shape(names) != (n_features,):
            raise ValueError(f"feature_names_in_ does not hold {n_features} names")
        for name, expected in getattr(self, "_fitted_shapes", {}).items():
            array = getattr(self, name, None)
            if not isinstance(array, np.ndarray) or array.dtype not in (np.float64, np.int64):
                raise ValueError(f"{name} is missing, or not an array of float64 or int64")
            sizes = tuple(getattr(self, size, None) for size in expected)
            if array.shape != sizes:
                raise ValueError(f"{name} has shape {array.shape}, expected {sizes}")
            if not np.isfinite(array).all():
                raise ValueError(f"{name} is not finite")


class _InvalidFormatError(ValueError):
    """A file does not hold what it should; the message says what is wrong with it."""


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
    fitted = {name: value for name, value in state.items() if name not in params and name not in _NOT_SAVED}
    tensors = {}
    kind = type(estimator).__name__
    config = {
        "format": _FORMAT,
        "format_version": _FORMAT_VERSION,
        "skflow_version": state[_STAMP],
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
        raise _InvalidFormatError(f"{kind.__name__} has no parameter {sorted(unknown)[0]!r}")
    fitted = {name: _decode(value, tensors) for name, value in config["fitted"].items()}
    for name in fitted:
        # Nothing may hide a method, a property or a class attribute.
        if not re.fullmatch(r"_(?!_)\w+|[A-Za-z]\w*_", name) or hasattr(kind, name) or name in _NOT_SAVED:
            raise _InvalidFormatError(f"{name!r} is no fitted attribute of {kind.__name__}")
    estimator = kind(**params)
    try:
        estimator._validate_params()
        estimator.__setstate__({**vars(estimator), **fitted, _STAMP: config["skflow_version"]})
        check_is_fitted(estimator)
        estimator._check_fitted_state()
    except (ValueError, TypeError, AttributeError, KeyError, RuntimeError) as error:
        raise _InvalidFormatError(str(error)) from error
    return estimator


def write_atomically(path, data):
    """Write bytes to a file so that at any time it holds the old content or the new, whole.

    Parameters
    ----------
    path : pathlib.Path
        File to create or replace.
    data : bytes
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


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
    raise _InvalidFormatError(f"it has a value that cannot be read, {_described(value)}")


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
        raise _InvalidFormatError(f"it is a saved {name!r}")
    return classes[name]


def _read_config(path):
    """Read the JSON file and check its outline."""
    try:
        config = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise _InvalidFormatError(f"{path.name} is not valid JSON ({error})") from error
    if not isinstance(config, dict) or config.get("format") != _FORMAT:
        raise _InvalidFormatError(f"{path.name} is not of the format {_FORMAT!r}")
    version = config.get("format_version")
    if version != _FORMAT_VERSION or isinstance(version, bool):
        raise _InvalidFormatError(
            f"{path.name} has format_version {version!r}, of skflow {config.get('skflow_version')!r}; "
            f"skflow {__version__} reads format_version {_FORMAT_VERSION}"
        )
    outline = {"skflow_version": str, "class": str, "params": dict, "fitted": dict, "tensors": dict}
    for key, expected in outline.items():
        if not isinstance(config.get(key), expected):
            raise _InvalidFormatError(f"{path.name} has no valid entry {key!r}")
    return config


def _read_tensors(directory, entry):
    """Read the safetensors file and check it against its checksum."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    name, digest = entry.get("file"), entry.get("sha256")
    if not isinstance(name, str) or not _TENSORS_NAME.fullmatch(name):
        raise _InvalidFormatError(f"{CONFIG_NAME} names the file of tensors {name!r}")
    data = (directory / name).read_bytes()
    if hashlib.sha256(data).hexdigest() != digest:
        raise _InvalidFormatError(
            f"{name} is truncated or damaged: its checksum is not that in {CONFIG_NAME}"
        )
    try:
        return load(data)
    except (SafetensorError, ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise _InvalidFormatError(f"{name} is not a valid safetensors file ({error})") from error


def _tensors_file(directory):
    """Return the name of the file of tensors that the directory's present calibrator uses, or None."""
    try:
        name = _read_config(directory / CONFIG_NAME)["tensors"].get("file")
    except (OSError, ValueError):
        return None
    return name if isinstance(name, str) and _TENSORS_NAME.fullmatch(name) else None
