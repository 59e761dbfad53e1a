"""Models in memory, shared by the embedders of one process."""

import contextlib
import threading
from collections import OrderedDict
from logging import ERROR, getLogger

from ._source import model_files

MAX_LOADED = 2


class LoadedModels:
    """The models used last, so that clones and copies of an embedder need not load theirs again.

    Parameters
    ----------
    max_loaded : int
        Models to keep; the one that has not been used for longest goes first.
    """

    def __init__(self, max_loaded):
        self._max_loaded = max_loaded
        self._models = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key, load):
        """Return the model of `key`, calling `load` if there is none."""
        with self._lock:  # held while loading: other threads wait for the model rather than load it too
            if key not in self._models:
                while len(self._models) >= self._max_loaded:
                    self._models.popitem(last=False)
                self._models[key] = load()
            self._models.move_to_end(key)
            return self._models[key]

    def clear(self):
        """Let go of all models."""
        with self._lock:
            self._models.clear()


# The one mutable global of the package: a cache, which no result depends on.
loaded_models = LoadedModels(MAX_LOADED)


def load_encoder(directory, *, device, dtype, trust_remote_code, local_files_only, verbose):
    """Return the encoder in a directory, loaded once per process for the same files and settings.

    Parameters
    ----------
    directory : pathlib.Path
        Directory of the model.
    device : str
        Device of torch.
    dtype : {"float32", "float16", "bfloat16"}
        Type of weights and activations.
    trust_remote_code : bool
        Whether code that comes with the model may run.
    local_files_only : bool
        Whether such code may not be downloaded from another repository.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    encoder : Encoder
        The encoder.
    """

    def load():
        from ._encoder import Encoder

        with quiet(not verbose):
            return Encoder(
                directory,
                device=device,
                dtype=dtype,
                trust_remote_code=trust_remote_code,
                local_files_only=local_files_only,
            )

    return loaded_models.get((model_files(directory), device, dtype, trust_remote_code), load)


@contextlib.contextmanager
def quiet(silent=True):
    """Silence the progress bars and chatter of Hugging Face's libraries within a with block."""
    if not silent:
        yield
        return
    from huggingface_hub import utils as hub
    from transformers.utils import logging

    verbosity, bar, hub_bar = (
        logging.get_verbosity(),
        logging.is_progress_bar_enabled(),
        not hub.are_progress_bars_disabled(),
    )
    # Such as that there is a default prompt.
    chatter = getLogger("sentence_transformers")
    level = chatter.level
    chatter.setLevel(ERROR)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    hub.disable_progress_bars()
    try:
        yield
    finally:
        chatter.setLevel(level)
        logging.set_verbosity(verbosity)
        if bar:
            logging.enable_progress_bar()
        if hub_bar:
            hub.enable_progress_bars()


def choose_device(device, *, warn=True):
    """Return the device to compute on.

    Parameters
    ----------
    device : str
        "auto" takes cuda, then mps, then cpu. A device that this machine lacks becomes the cpu, with a
        warning.
    warn : bool, default=True
        Whether to warn then.

    Returns
    -------
    device : str
        Name of a device of torch.

    Raises
    ------
    ValueError
        If `device` is no name of a device.

    Warns
    -----
    UserWarning
        If the device is not there.
    """
    import warnings

    import torch

    from ..flows._device import is_available, resolve_device

    if device == "auto":
        return str(resolve_device(device))
    try:
        kind = torch.device(device)
    except RuntimeError as error:
        raise ValueError(
            f"device={device!r} is no device of torch; expected 'auto', 'cpu', 'cuda:0'..."
        ) from error
    if kind.type == "meta":
        raise ValueError("device='meta' computes nothing; expected 'auto', 'cpu', 'cuda:0'...")
    if not is_available(kind):
        if warn:
            warnings.warn(
                f"device={device!r} is not available here; the cpu is used.", UserWarning, stacklevel=3
            )
        return "cpu"
    return str(device)
