"""Vectors kept on disk, in one SQLite database that processes share."""

import functools
import hashlib
import importlib.metadata
import sqlite3

import numpy as np

from .._user_warnings import warn_user
from ._source import digest_files, model_files
from ._sqlite_file import LAYOUT, ForeignError, SqliteFile, shown, tells_damage

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
    digest.update(repr((LAYOUT, *settings, dtype, trust_remote_code, _versions())).encode())
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
        self._file = SqliteFile(path)
        self._fingerprint = fingerprint
        self._is_usable = True
        self._has_damaged_rows = False

    def n_features(self):
        """Return the length of the vectors, or None if there are none."""

        def look(connection):
            # Keys with one fingerprint stand next to each other.
            rows = connection.execute(
                "SELECT key, vector, truncated, checksum FROM vectors WHERE key >= ? AND key < ? LIMIT 10",
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
        truncated : ndarray of shape (n_texts,) or None
            Which texts were truncated.
        missing : ndarray of shape (n_missing,)
            Positions of the texts that are not there.
        """
        keys = [self._key(text) for text in texts]
        vectors = truncated = None
        found = np.zeros(len(texts), dtype=bool)
        n_damaged = 0

        def look(connection):
            nonlocal vectors, truncated, n_damaged
            # What came from a file that turned out to be damaged is not in the new one.
            vectors, truncated, n_damaged = None, None, 0
            found[:] = False
            for start in range(0, len(keys), _KEYS_PER_QUERY):
                part = keys[start : start + _KEYS_PER_QUERY]
                positions = {key: start + i for i, key in enumerate(part)}
                marks = ",".join("?" * len(part))
                query = f"SELECT key, vector, truncated, checksum FROM vectors WHERE key IN ({marks})"
                for row in connection.execute(query, part):
                    if not _is_sound(*row):
                        n_damaged += 1
                        continue
                    key, vector, cut, _ = row
                    if vectors is None:
                        vectors = np.empty((len(texts), len(vector) // 4), dtype=np.float32)
                        truncated = np.zeros(len(texts), dtype=bool)
                    position = positions[key]
                    vectors[position] = np.frombuffer(vector, dtype="<f4")
                    truncated[position] = cut
                    found[position] = True

        self._with_connection(look)
        if n_damaged:
            self._has_damaged_rows = True
            warn_user(
                f"cache={str(self._path)!r}: {n_damaged} damaged rows are not used and are computed anew."
            )
        return vectors, truncated, np.flatnonzero(~found)

    def write(self, texts, vectors, truncated):
        """Keep the vectors of texts.

        Parameters
        ----------
        texts : list of str
            Texts.
        vectors : ndarray of shape (n_texts, n_features)
            float32.
        truncated : ndarray of shape (n_texts,)
            Which texts were truncated.
        """

        def rows():
            for text, vector, cut in zip(texts, vectors, truncated, strict=True):
                row = (self._key(text), vector.astype("<f4").tobytes(), int(cut))
                yield (*row, _checksum(*row))

        def keep(connection):
            connection.execute("BEGIN IMMEDIATE")
            if self._has_damaged_rows:  # an index that leads to another row would lead there forever
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
            return self._file.run(work)
        except (sqlite3.Error, OSError, ValueError, MemoryError, ForeignError) as error:
            self._is_usable = False
            hint = " If the file is damaged, delete it." if tells_damage(error) else ""
            warn_user(
                f"cache={str(self._path)!r} cannot be used ({shown(error)}): vectors are computed, and not "
                f"kept.{hint}"
            )
            return None


def _checksum(key, vector, truncated):
    return hashlib.blake2b(key + bytes([truncated]) + vector, digest_size=8).digest()


def _is_sound(key, vector, truncated, checksum):
    return (
        isinstance(key, bytes)
        and isinstance(vector, bytes)
        and truncated in (0, 1)
        and len(vector) % 4 == 0
        and checksum == _checksum(key, vector, truncated)
    )
