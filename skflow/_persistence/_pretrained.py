"""A directory that holds a fitted estimator, without pickle.

It has two files. ``calibrator.json`` says which class, which parameters and which fitted values; where a
value is an array, it names a tensor of ``parameters-<digest>.safetensors``. The second file is written first,
under a name of its own for each content, and the first replaced atomically: whoever reads the directory at
any moment, or after a crash, finds the old estimator or the new one, whole. One process writes at a time, and
removes what former ones have left behind.
"""

import hashlib
import json
import re
from os import PathLike
from pathlib import Path
from typing import Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._version import __version__
from ._files import TEMPORARY, exclusive, write_atomically
from ._settings import FORMAT, FORMAT_VERSION, from_config, to_config

CONFIG_NAME = "calibrator.json"
TENSORS_NAME = re.compile(r"parameters-[0-9a-f]{16}\.safetensors")
# What Python and numpy raise where a value is of another type, length or depth than it should be.
DAMAGE = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RuntimeError)
# So often are tensors looked for again that the settings name and that are not there.
_MAX_UNCHANGED = 10


class SavePretrainedMixin:
    """Mixin that saves a fitted estimator as safetensors and JSON, and loads it without running any code.

    To be placed left of :class:`VersionStamped`. What can be saved are numpy arrays of numbers, arrays of
    str, and plain values (None, bool, int, float, str), in lists, tuples and dicts with str keys to any
    depth.
    """

    def save_pretrained(self, directory: str | PathLike[str]) -> None:
        """Save the fitted estimator in a directory, as safetensors and JSON.

        An estimator saved there before is replaced in one step: a process that is killed while it saves
        leaves the old one usable. Processes that save to one directory at the same time wait for each other,
        and the last one's estimator stays; others may read it meanwhile. Where the file system cannot lock a
        directory (Windows), former parameters are not removed.

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
        with exclusive(directory) as is_locked:
            former = set(_own_files(directory)) if is_locked else set()
            write_atomically(directory / config["tensors"]["file"], data)
            write_atomically(directory / CONFIG_NAME, json.dumps(config, indent=2, allow_nan=False).encode())
            for path in former - {directory / config["tensors"]["file"]}:
                path.unlink(missing_ok=True)

    @classmethod
    def from_pretrained(cls, name_or_path: str | PathLike[str]) -> Self:
        """Load a fitted estimator that `save_pretrained` wrote.

        Nothing in the files is run: they may come from others. They are checked against their checksum, and
        the parameters and arrays against what the class expects.

        Parameters
        ----------
        name_or_path : str or path-like
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
        directory = Path(name_or_path)
        try:
            return from_config(cls, *_read(directory))
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"There is no saved {cls.__name__} in {str(directory)!r}: {error.filename!r} does not exist. "
                "save_pretrained writes it."
            ) from error
        except DAMAGE as error:
            reason = error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            raise ValueError(f"{str(directory)!r} holds no usable {cls.__name__}: {reason}") from error

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


def _read(directory):
    """Return the settings and tensors of one estimator, although another may be replacing it now."""
    config = _read_config(directory / CONFIG_NAME)
    n_unchanged = 0
    while True:
        try:
            return config, _read_tensors(directory, config["tensors"])
        except FileNotFoundError:
            former, config = config, _read_config(directory / CONFIG_NAME)
            # The same settings may be there again, after others that were there in between.
            n_unchanged += config == former
            if n_unchanged > _MAX_UNCHANGED:
                raise


def _read_config(path):
    """Read the JSON file and check its outline."""
    try:
        config = json.loads(path.read_bytes())
    except DAMAGE as error:
        raise ValueError(f"{path.name} is not valid JSON ({error})") from error
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ValueError(f"{path.name} is not of the format {FORMAT!r}")
    version = config.get("format_version")
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise ValueError(
            f"{path.name} has format_version {version!r}, of skflow {config.get('skflow_version')!r}; "
            f"skflow {__version__} reads format_version {FORMAT_VERSION}"
        )
    outline = {"skflow_version": str, "class": str, "params": dict, "fitted": dict, "tensors": dict}
    for key, expected in outline.items():
        if not isinstance(config.get(key), expected):
            raise ValueError(f"{path.name} has no valid entry {key!r}")
    return config


def _read_tensors(directory, entry):
    """Read the safetensors file and check it against its checksum."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    name, digest = entry.get("file"), entry.get("sha256")
    if not isinstance(name, str) or not TENSORS_NAME.fullmatch(name):
        raise ValueError(f"{CONFIG_NAME} names the file of tensors {name!r}")
    data = (directory / name).read_bytes()
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError(f"{name} is truncated or damaged: its checksum is not that in {CONFIG_NAME}")
    try:
        return load(data)
    except (SafetensorError, *DAMAGE) as error:
        raise ValueError(f"{name} is not a valid safetensors file ({error})") from error


def _own_files(directory):
    """Yield the files of tensors in a directory, and what interrupted writes have left there."""
    for path in directory.iterdir():
        name = path.name
        if name.startswith(".") and name.endswith(TEMPORARY):
            name = name[1:].removesuffix(TEMPORARY).rpartition(".")[0]
            if name == CONFIG_NAME or TENSORS_NAME.fullmatch(name):
                yield path
        elif TENSORS_NAME.fullmatch(name):
            yield path
