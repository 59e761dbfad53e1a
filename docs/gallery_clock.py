"""The processor time of each script of the gallery, which does not hang on what else the machine does."""

import time
from pathlib import Path

from sphinx.errors import ExtensionError

LIMIT = 120  # processor seconds: a minute on two cores
_started = {}
_taken = {}


def clock(gallery_conf, fname, when):
    """Note the time before and after a script; sphinx-gallery calls it."""
    if when == "before":
        _started[fname] = time.process_time()
    elif fname in _started:
        _taken[Path(fname).name] = time.process_time() - _started.pop(fname)


def check_times(app, exception):
    """Make the build fail where a script takes more than that."""
    slow = {name: round(seconds) for name, seconds in _taken.items() if seconds > LIMIT}
    if slow and exception is None:
        raise ExtensionError(f"gallery scripts may take {LIMIT} processor seconds, these take more: {slow}")
