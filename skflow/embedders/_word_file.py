"""Files of static word vectors: GloVe text, word2vec text and word2vec binary."""

import mmap
from pathlib import Path

import numpy as np


class WordFile:
    """Word vectors of a file, which is mapped into memory and read where needed.

    One pass over the file finds where each word's vector is. Vectors are parsed when they are asked for, so
    that memory holds the words and their positions alone. Of a word that comes twice the first vector counts.

    Parameters
    ----------
    path : str or path-like
        A GloVe text file (``word x1 ... xd`` per line), a word2vec text file (the same, under a line
        ``n_words d``), or a word2vec binary file (that line, then per word its bytes, a space and d
        little-endian float32). Which it is, is told from its beginning.
    progress : callable, optional
        Called with the number of bytes passed since the last call.

    Attributes
    ----------
    n_features : int
        Length d of the vectors.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is none of these or ends too soon; the message names the line or word.
    """

    def __init__(self, path, progress=lambda n: None):
        self.path = Path(path)
        if not self.path.is_file():
            raise FileNotFoundError(f"path={str(path)!r}: there is no such file of word vectors.")
        if self.path.stat().st_size == 0:
            raise ValueError(f"{self.path} is empty; expected word vectors.")
        with open(self.path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._progress = progress
        header = _parse_header(self._map.readline())
        if header is None:
            self._map.seek(0)
            self.n_features = self._map.readline().rstrip().count(b" ")
            start, n_words, self._is_binary = 0, None, False
            if self.n_features < 1:
                raise ValueError(f"{self.path}, line 1: expected a word and its vector, separated by spaces.")
        else:
            n_words, self.n_features = header
            start = self._map.tell()
            self._is_binary = not self._is_text_line(self._map.readline())
        self._places = (
            self._index_binary(start, n_words) if self._is_binary else self._index_text(start, n_words)
        )

    def __contains__(self, word):
        return word in self._places

    def __len__(self):
        return len(self._places)

    def vectors(self, words):
        """Return the vectors of words that are there.

        Parameters
        ----------
        words : list of str
            Words.

        Returns
        -------
        vectors : ndarray of shape (n_words, n_features)
            float32.

        Raises
        ------
        ValueError
            If a vector is not made of finite numbers; the message names file and line.
        """
        out = np.empty((len(words), self.n_features), dtype=np.float32)
        for row, word in zip(out, words, strict=True):
            place = self._places[word]
            if self._is_binary:
                row[:] = np.frombuffer(self._map, dtype="<f4", count=self.n_features, offset=place)
            else:
                end = self._map.find(b"\n", place)
                line = self._map[place : end if end >= 0 else len(self._map)].rstrip()
                try:
                    row[:] = [float(number) for number in line.rsplit(b" ", self.n_features)[1:]]
                except ValueError as error:
                    raise ValueError(f"{self._where(place)}: {error}.") from None
            if not np.isfinite(row).all():
                raise ValueError(f"{self._where(place)}: the vector of {word!r} is not finite.")
        return out

    def _where(self, place):
        if self._is_binary:
            return str(self.path)
        return f"{self.path}, line {self._map[:place].count(bytes([10])) + 1}"

    def _is_text_line(self, line):
        fields = line.rstrip().rsplit(b" ", self.n_features)
        if len(fields) != self.n_features + 1:
            return False
        try:
            return all(np.isfinite(float(number)) for number in fields[1:])
        except ValueError:
            return False

    def _index_text(self, start, n_words):
        places = {}
        self._map.seek(start)
        place, number = start, 0 if n_words is None else 1
        for line in iter(self._map.readline, b""):
            number += 1
            content = line.rstrip()
            if content:
                n_spaces = content.count(b" ")
                if n_spaces < self.n_features:
                    raise ValueError(
                        f"{self.path}, line {number}: expected a word and {self.n_features} numbers, got "
                        f"{n_spaces + 1} fields."
                    )
                # A word may hold spaces itself; the numbers are the last fields.
                word = content[: content.index(b" ")]
                if n_spaces > self.n_features:
                    word = content.rsplit(b" ", self.n_features)[0]
                places.setdefault(word.decode("utf-8", "replace"), place)
            place += len(line)
            self._progress(len(line))
        if n_words is not None and number - 1 < n_words:
            raise ValueError(f"{self.path} promises {n_words} words and ends after {number - 1}.")
        return places

    def _index_binary(self, start, n_words):
        places = {}
        place, size = start, 4 * self.n_features
        for number in range(n_words):
            space = self._map.find(b" ", place)
            end = space + 1 + size
            if space < 0 or end > len(self._map):
                raise ValueError(f"{self.path} promises {n_words} words and ends after {number}.")
            # Some writers end each vector with a line feed.
            word = self._map[place:space].lstrip(b"\n")
            places.setdefault(word.decode("utf-8", "replace"), space + 1)
            self._progress(end - place)
            place = end
        return places


def _parse_header(line):
    """Return the numbers of words and of features, or None if the line is no header of word2vec."""
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() for field in fields) and int(fields[1]) > 0:
        return int(fields[0]), int(fields[1])
    return None
