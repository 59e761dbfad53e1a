"""The database file of a cache: opening, setting up, and what to do with a damaged one."""

import contextlib
import os
import sqlite3
import time
from pathlib import Path

from .._user_warnings import warn_user

FILE_NAME = "embeddings.sqlite"
# What marks a database as ours ("skfl"), and the layout of its table.
_APPLICATION_ID = 0x736B666C
LAYOUT = 1
_NO_LAYOUT = 100  # that many there will not be
_SCHEMA = (
    "CREATE TABLE vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL, "
    "truncated INTEGER NOT NULL, checksum BLOB NOT NULL)"
)
# Places in the header of a SQLite file: see its documentation, "Database File Format".
_MAGIC = b"SQLite format 3\0"
_APPLICATION_ID_AT = slice(68, 72)
_PAGE = 4096
_SUFFIXES = (".sqlite", ".sqlite3", ".db")
# Transactions take milliseconds: whoever holds the lock for longer does something else.
_SECONDS_TO_WAIT = 4
_SECONDS_BETWEEN_TRIES = 0.01


def find_database(path):
    """Return the path of the file that a `cache` parameter, of a file or a directory, means."""
    path = Path(os.path.expanduser(path))
    return path / FILE_NAME if os.path.isdir(path) else path


class ForeignError(Exception):
    """The file is a database, and not one to touch."""


class SqliteFile:
    """A database with the table ``vectors``, opened for each piece of work.

    A file that is damaged is renamed, and a new one begun, with a warning. A file that is something else is
    never written to.

    Parameters
    ----------
    path : str or path-like
        File, or a directory for a file ``embeddings.sqlite``. Made when missing.
    """

    def __init__(self, path):
        self._path = path

    def run(self, work):
        """Return `work` of the open database.

        Parameters
        ----------
        work : callable
            Takes a connection; called once more where it finds the file damaged.

        Raises
        ------
        sqlite3.Error, OSError, ValueError, ForeignError
            If the file cannot be used, and is not a damaged cache.
        """
        path = find_database(self._path)
        inode = path.stat().st_ino if path.exists() else None
        try:
            return _run(path, work)
        # What the text of a damaged schema is quoted in need not be UTF-8.
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            aside = _move_aside(path, inode) if tells_damage(error) else None
            if aside is None:
                raise
            warn_user(
                f"cache={str(path)!r} is damaged ({shown(error)}): it is now {str(aside)!r}, and a new one "
                "is begun."
            )
            return _run(path, work)


def _run(path, work):
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(_connect(path)) as connection:
        _prepare(connection)
        return work(connection)


def _connect(path):
    path = path.absolute()
    # SQLite wants files of its own beside the database. Where there can be none, in the directory of somebody
    # else, it reads what the database holds; what changes meanwhile fails the checksum.
    is_fixed = path.exists() and not os.access(path.parent, os.W_OK)
    # Transactions are begun and committed by name; what is open when the connection closes is undone.
    return sqlite3.connect(
        f"{path.as_uri()}?immutable=1" if is_fixed else path,
        uri=is_fixed,
        timeout=_SECONDS_TO_WAIT,
        isolation_level=None,
    )


def _prepare(connection):
    """Set up a new database, and check that another one is ours."""
    connection.execute("PRAGMA synchronous = NORMAL")
    if not _is_ours(connection):
        connection.execute("BEGIN IMMEDIATE")
        if not _is_ours(connection):  # nor made by another process since
            tables = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
            if not tables:
                connection.execute(_SCHEMA)
            elif tables != [(_SCHEMA,)]:  # ours if nothing but the mark is damaged
                raise ForeignError("it is a database of something else")
            connection.execute(f"PRAGMA user_version = {LAYOUT}")
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute("COMMIT")
        _let_readers_in(connection)
    (layout,) = connection.execute("PRAGMA user_version").fetchone()
    if not 0 < layout < _NO_LAYOUT:
        raise sqlite3.DatabaseError(f"layout {layout} is none")
    if layout != LAYOUT:
        raise ForeignError(f"it has layout {layout}; this version of skflow has layout {LAYOUT}")


def _let_readers_in(connection):
    """Set the mode in which readers need not wait for a writer, where the file system allows it.

    SQLite does not wait by itself for this change: whoever reads or writes at the moment makes it fail.
    """
    last = time.monotonic() + _SECONDS_TO_WAIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > last:
                raise
        time.sleep(_SECONDS_BETWEEN_TRIES)


def tells_damage(error):
    """Tell whether an error may come from damage, not from a lock, rights, or a full disk."""
    if not isinstance(error, sqlite3.DatabaseError):
        return isinstance(error, UnicodeDecodeError)
    code = getattr(error, "sqlite_errorcode", None)
    # SQLITE_ERROR: the schema lacks what is asked of it. SQLITE_CONSTRAINT: table and index disagree.
    return code is None or code & 0xFF in (
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
    )


def _looks_ours(path):
    """Tell whether a damaged file was a cache: by its mark, its schema, or at least its name."""
    with open(path, "rb") as file:
        page = file.read(_PAGE)
    has_mark = page[_APPLICATION_ID_AT] == _APPLICATION_ID.to_bytes(4, "big")
    if has_mark or (page.startswith(_MAGIC) and len(page) == _PAGE):
        # Where it is no database of something else; of the schema a part will do.
        parts = (b"CREATE TABLE vectors", b"vector BLOB NOT NULL", b"checksum BLOB NOT NULL")
        return has_mark or any(part in page for part in parts)
    return path.suffix in _SUFFIXES


def _move_aside(path, inode):
    """Rename a damaged cache, and return its new path; None if it is not one that may be moved.

    Processes that see the damage at the same time must not move the new file of the first of them: `inode`
    is that of the file when it was opened.
    """
    if inode is None or not os.access(path.parent, os.W_OK):
        return None
    aside = path.with_name(path.name + ".damaged")
    with contextlib.suppress(FileNotFoundError):  # another process has just moved it
        if path.stat().st_ino == inode and not _looks_ours(path):
            return None
        for suffix in ("-wal", "-shm", ""):  # what is left of a log must not enter the new file
            if path.stat().st_ino != inode:
                break
            if suffix == "" or os.path.exists(f"{path}{suffix}"):
                os.replace(f"{path}{suffix}", f"{aside}{suffix}")
    return aside


def shown(error):
    """Return the message of an error, which may quote damaged bytes."""
    return str(error).encode("utf-8", "backslashreplace").decode()


def _is_ours(connection):
    return connection.execute("PRAGMA application_id").fetchone() == (_APPLICATION_ID,)
