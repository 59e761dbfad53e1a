"""Vectors kept on disk, in one SQLite database that processes share."""

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import sqlite3
import warnings
from pathlib import Path

import numpy as np

from ._source import digest_files, model_files

FILE_NAME = "embeddings.sqlite"
# What marks a database as ours ("skfl"), and the layout of its table.
_APPLICATION_ID = 0x736B666C
_LAYOUT = 1
_NO_LAYOUT = 100  # that many there will not be
_SCHEMA = (
    "CREATE TABLE vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL, "
    "is_cut INTEGER NOT NULL, checksum BLOB NOT NULL)"
)
# Places in the header of a SQLite file: see its documentation, "Database File Format".
_MAGIC = b"SQLite format 3\0"
_APPLICATION_ID_AT = slice(68, 72)
_PAGE = 4096
_SUFFIXES = (".sqlite", ".sqlite3", ".db")
# Transactions take milliseconds: whoever holds the lock for longer does something else.
_SECONDS_TO_WAIT = 4
_KEYS_PER_QUERY = 500
_DIGEST_SIZE = 16
# Another version may make other tokens or round otherwise.
_LIBRARIES = ("torch", "transformers", "tokenizers", "sentence-transformers")


def fingerprint(directory, recipe, dtype, trust_remote_code):
    """Hash all that determines the vector of a text.

    Parameters
    ----------
    directory : pathlib.Path
        Directory of the model's files.
    recipe : Recipe
        Layers, pooling, limit, special tokens, token weights.
    dtype : str
        Type that the encoder computes in.
    trust_remote_code : bool
        Whether the model's own code runs.

    Returns
    -------
    digest : bytes of length 16
        Equal if and only if vectors may be exchanged. Device and batch size are not part of it: they change
        vectors by rounding alone.
    """
    settings = (recipe.layers, recipe.pooling, recipe.max_length, recipe.exclude_special_tokens)
    digest = hashlib.blake2b(digest_size=_DIGEST_SIZE)
    digest.update(digest_files(model_files(directory)))
    digest.update(repr((_LAYOUT, *settings, dtype, trust_remote_code, _versions())).encode())
    if recipe.token_weights is not None:
        digest.update(recipe.token_weights.tobytes())
    return digest.digest()


@functools.cache
def _versions():
    return tuple((name, importlib.metadata.version(name)) for name in _LIBRARIES)


class VectorCache:
    """Vectors of texts, for one fingerprint.

    Every row carries a checksum over its key and content: what does not agree is taken as missing. A file
    that is damaged is renamed, and a new one begun, with a warning. Whatever else goes wrong with the file
    ends in a warning, too, and the cache then holds nothing and keeps nothing. Nothing is ever unpickled, and
    a file that is something else is never written to. A write is one transaction: a
    killed process leaves all of it or nothing.

    Parameters
    ----------
    path : str or path-like
        File, or a directory for a file ``embeddings.sqlite``. Made when missing.
    fingerprint : bytes of length 16
        What the vectors depend on besides the text.
    """

    def __init__(self, path, fingerprint):
        self._path = path
        self._fingerprint = fingerprint
        self._is_usable = True
        self._has_damaged_rows = False

    def n_features(self):
        """Return the length of the vectors, or None if there are none."""

        def look(connection):
            # Keys with one fingerprint stand next to each other.
            rows = connection.execute(
                "SELECT key, vector, is_cut, checksum FROM vectors WHERE key >= ? AND key < ? LIMIT 10",
                (self._fingerprint, self._fingerprint + b"\xff" * (_DIGEST_SIZE + 1)),
            )
            return next((len(row[1]) // 4 for row in rows if _is_sound(*row)), None)

        return self._with_connection(look)

    def read(self, texts):
        """Look texts up.

        Parameters
        ----------
        texts : list of str
            Distinct texts.

        Returns
        -------
        vectors : ndarray of shape (n_texts, n_features) or None
            float32, rows of missing texts undefined; None if all are missing.
        is_cut : ndarray of shape (n_texts,) or None
            Which texts were cut.
        missing : ndarray of shape (n_missing,)
            Positions of the texts that are not there.
        """
        keys = [self._key(text) for text in texts]
        vectors = is_cut = None
        found = np.zeros(len(texts), dtype=bool)
        n_damaged = 0

        def look(connection):
            nonlocal vectors, is_cut, n_damaged
            # What came from a file that turned out to be damaged is not in the new one.
            vectors, is_cut, n_damaged = None, None, 0
            found[:] = False
            for start in range(0, len(keys), _KEYS_PER_QUERY):
                part = keys[start : start + _KEYS_PER_QUERY]
                positions = {key: start + i for i, key in enumerate(part)}
                marks = ",".join("?" * len(part))
                query = f"SELECT key, vector, is_cut, checksum FROM vectors WHERE key IN ({marks})"
                for row in connection.execute(query, part):
                    if not _is_sound(*row):
                        n_damaged += 1
                        continue
                    key, vector, cut, _ = row
                    if vectors is None:
                        vectors = np.empty((len(texts), len(vector) // 4), dtype=np.float32)
                        is_cut = np.zeros(len(texts), dtype=bool)
                    position = positions[key]
                    vectors[position] = np.frombuffer(vector, dtype="<f4")
                    is_cut[position] = cut
                    found[position] = True

        self._with_connection(look)
        if n_damaged:
            self._has_damaged_rows = True
            warnings.warn(
                f"cache={str(self._path)!r}: {n_damaged} damaged rows are not used and are computed anew.",
                UserWarning,
                stacklevel=2,
            )
        return vectors, is_cut, np.flatnonzero(~found)

    def write(self, texts, vectors, is_cut):
        """Keep the vectors of texts.

        Parameters
        ----------
        texts : list of str
            Texts.
        vectors : ndarray of shape (n_texts, n_features)
            float32.
        is_cut : ndarray of shape (n_texts,)
            Which texts were cut.
        """

        def rows():
            for text, vector, cut in zip(texts, vectors, is_cut, strict=True):
                row = (self._key(text), vector.astype("<f4").tobytes(), int(cut))
                yield (*row, _checksum(*row))

        def keep(connection):
            connection.execute("BEGIN IMMEDIATE")
            if self._has_damaged_rows:  # an index that leads to another row would lead there for ever
                connection.execute("REINDEX vectors")
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows())
            connection.execute("COMMIT")

        self._with_connection(keep)
        self._has_damaged_rows = False

    def _key(self, text):
        content = text.encode("utf-8", "surrogatepass")
        return self._fingerprint + hashlib.blake2b(content, digest_size=_DIGEST_SIZE).digest()

    def _with_connection(self, work):
        """Return `work` of the open database; on failure warn once, and return None."""
        if not self._is_usable:
            return None
        try:
            path = self._find()
            inode = path.stat().st_ino if path.exists() else None
            try:
                return self._run(path, work)
            # What the text of a damaged schema is quoted in need not be UTF-8.
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                aside = _move_aside(path, inode) if _tells_damage(error) else None
                if aside is None:
                    raise
                warnings.warn(
                    f"cache={str(path)!r} is damaged ({_shown(error)}): it is now {str(aside)!r}, and a new "
                    "one is begun.",
                    UserWarning,
                    stacklevel=4,
                )
                return self._run(path, work)
        except (sqlite3.Error, OSError, ValueError, MemoryError, _ForeignError) as error:
            self._is_usable = False
            warnings.warn(
                f"cache={str(self._path)!r} cannot be used ({_shown(error)}): vectors are computed, and not "
                "kept. If the file is damaged, delete it.",
                UserWarning,
                stacklevel=4,
            )
            return None

    def _find(self):
        path = Path(os.path.expanduser(self._path))
        return path / FILE_NAME if path.is_dir() else path

    def _run(self, path, work):
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(self._connect(path)) as connection:
            self._prepare(connection)
            return work(connection)

    def _connect(self, path):
        path = path.absolute()
        # SQLite wants files of its own beside the database. Where there can be none, in the directory of
        # somebody else, it reads what the database holds; what changes meanwhile fails the checksum.
        is_fixed = path.exists() and not os.access(path.parent, os.W_OK)
        # Transactions are begun and committed by name; what is open when the connection closes is undone.
        return sqlite3.connect(
            f"{path.as_uri()}?immutable=1" if is_fixed else path,
            uri=is_fixed,
            timeout=_SECONDS_TO_WAIT,
            isolation_level=None,
        )

    def _prepare(self, connection):
        connection.execute("PRAGMA synchronous = NORMAL")
        if not _is_ours(connection):
            connection.execute("BEGIN IMMEDIATE")
            if not _is_ours(connection):  # nor made by another process since
                tables = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
                if not tables:
                    connection.execute(_SCHEMA)
                elif tables != [(_SCHEMA,)]:  # ours if nothing but the mark is damaged
                    raise _ForeignError("it is a database of something else")
                connection.execute(f"PRAGMA user_version = {_LAYOUT}")
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute("COMMIT")
            # Readers need not wait for a writer then; where the file system does not allow it, nothing
            # changes.
            connection.execute("PRAGMA journal_mode = WAL")
        (layout,) = connection.execute("PRAGMA user_version").fetchone()
        if not 0 < layout < _NO_LAYOUT:
            raise sqlite3.DatabaseError(f"layout {layout} is none")
        if layout != _LAYOUT:
            raise _ForeignError(f"it has layout {layout}; this version of skflow has layout {_LAYOUT}")


class _ForeignError(Exception):
    """The file is a database, and not one to touch."""


def _tells_damage(error):
    """Tell whether an error may come from damage, not from a lock, rights, or a full disk."""
    if isinstance(error, UnicodeDecodeError):
        return True
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


def _shown(error):
    return str(error).encode("utf-8", "backslashreplace").decode()


def _is_ours(connection):
    return connection.execute("PRAGMA application_id").fetchone() == (_APPLICATION_ID,)


def _checksum(key, vector, is_cut):
    return hashlib.blake2b(key + bytes([is_cut]) + vector, digest_size=8).digest()


def _is_sound(key, vector, is_cut, checksum):
    return (
        isinstance(key, bytes)
        and isinstance(vector, bytes)
        and is_cut in (0, 1)
        and len(vector) % 4 == 0
        and checksum == _checksum(key, vector, is_cut)
    )
