"""What is shown while something loads or runs, and what is not."""

import contextlib
import os
import threading
from logging import ERROR, getLogger


class _Silence:
    """A silence that lasts while any thread wants it; the last one to leave restores what was before."""

    def __init__(self):
        self._reset()

    def _reset(self):
        self._lock = threading.Lock()
        self._n_inside = 0
        self._restore = contextlib.ExitStack()

    @contextlib.contextmanager
    def __call__(self):
        with self._lock:
            if self._n_inside == 0:
                self._restore = _silenced()
            self._n_inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_inside -= 1
                if self._n_inside == 0:
                    self._restore.close()

    def after_fork(self):
        """Forget, in a child process, the threads of its parent, which will never leave."""
        restore = self._restore
        self._reset()
        restore.close()


def _silenced():
    """Silence progress bars and chatter, and return the ExitStack whose `close` undoes that."""
    from huggingface_hub import utils as hub
    from transformers.utils import logging

    restore = contextlib.ExitStack()
    # Such as that there is a default prompt.
    chatter = getLogger("sentence_transformers")
    restore.callback(chatter.setLevel, chatter.level)
    chatter.setLevel(ERROR)
    restore.callback(logging.set_verbosity, logging.get_verbosity())
    logging.set_verbosity_error()
    if logging.is_progress_bar_enabled():
        restore.callback(logging.enable_progress_bar)
        logging.disable_progress_bar()
    if not hub.are_progress_bars_disabled():
        restore.callback(hub.enable_progress_bars)
        hub.disable_progress_bars()
    return restore


# Of the process, as the settings are that it changes.
_silence = _Silence()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_silence.after_fork)


def quiet(silent=True):
    """Return a context without progress bars and chatter of Hugging Face's libraries, if `silent`."""
    return _silence() if silent else contextlib.nullcontext()


@contextlib.contextmanager
def progress_bar(total, verbose):
    """Yield a function that takes the number of texts just done, and shows them if `verbose`."""
    if not verbose:  # even one that shows nothing would take a lock that processes share
        yield lambda n: None
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, desc="BertEmbedder", unit="text") as bar:
        yield bar.update
