"""Files that are replaced whole, by one process at a time."""

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

TEMPORARY = ".tmp"


def write_atomically(path, data):
    """Write bytes to a file so that at any time it holds the old content or the new, whole.

    Parameters
    ----------
    path : pathlib.Path
        File to create or replace.
    data : bytes
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}{TEMPORARY}")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def exclusive(directory: Path) -> Iterator[bool]:
    """Lock a directory against other writers and yield whether it is; Windows cannot lock one."""
    try:
        import fcntl
    except ImportError:
        yield False
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            is_locked = True
        except OSError:  # some network file systems cannot either
            is_locked = False
        yield is_locked
    finally:
        os.close(descriptor)
