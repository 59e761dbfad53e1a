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
_SECONDS_TO_WAIT = 30
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

    Every row carries a checksum over its key and content: what does not agree is taken as missing. Whatever
    goes wrong with the file ends in a warning, and the cache then holds nothing and keeps nothing. Nothing is
    ever unpickled, and a file that is something else is never written to. A write is one transaction: a
    killed process leaves all of it or nothing.

    Parameters
    ----------
    path : str or path-like
        File, or a directory for a file ``embeddings.sqlite``. Made when missing.
    fingerprint : bytes of length 16
        What the vectors depend on besides the text.
    """

    def __init__(self, path, fingerprint):
        path = Path(os.path.expanduser(path))
        self._path = path / FILE_NAME if path.is_dir() else path
        self._fingerprint = fingerprint
        self._is_usable = True

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
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows())
            connection.execute("COMMIT")

        self._with_connection(keep)

    def _key(self, text):
        content = text.encode("utf-8", "surrogatepass")
        return self._fingerprint + hashlib.blake2b(content, digest_size=_DIGEST_SIZE).digest()

    def _with_connection(self, work):
        """Return `work` of the open database; on failure warn once, and return None."""
        if not self._is_usable:
            return None
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(self._connect()) as connection:
                self._prepare(connection)
                return work(connection)
        except (sqlite3.Error, OSError, _ForeignError) as error:
            self._is_usable = False
            warnings.warn(
                f"cache={str(self._path)!r} cannot be used ({error}): vectors are computed, and not "
                "kept. If the file is damaged, delete it.",
                UserWarning,
                stacklevel=4,
            )
            return None

    def _connect(self):
        path = self._path.absolute()
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
                if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
                    raise _ForeignError("it is a database of something else")
                connection.execute(
                    "CREATE TABLE vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL, "
                    "is_cut INTEGER NOT NULL, checksum BLOB NOT NULL)"
                )
                connection.execute(f"PRAGMA user_version = {_LAYOUT}")
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute("COMMIT")
            # Readers need not wait for a writer then; where the file system does not allow it, nothing
            # changes.
            connection.execute("PRAGMA journal_mode = WAL")
        (layout,) = connection.execute("PRAGMA user_version").fetchone()
        if layout != _LAYOUT:
            raise _ForeignError(f"it has layout {layout}; this version of skflow has layout {_LAYOUT}")


class _ForeignError(Exception):
    """The file is a database, and not one to touch."""


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
