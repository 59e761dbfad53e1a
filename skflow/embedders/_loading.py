"""Models in memory, shared by the embedders of one process."""

import os
import threading
from collections import OrderedDict

from ._silence import quiet
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

    def forget(self):
        """Begin anew in a process that was forked: another thread may have held the locks."""
        self._models, self._lock = OrderedDict(), threading.Lock()


# The one mutable global of the package: a cache, which no result depends on.
loaded_models = LoadedModels(MAX_LOADED)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=loaded_models.forget)


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
