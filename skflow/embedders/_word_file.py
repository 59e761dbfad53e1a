"""Files of static word vectors: GloVe text, word2vec text and word2vec binary."""

import itertools
import mmap
import re
from pathlib import Path

import numpy as np

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Lines that tell how long the vectors of a text file are.
_LINES_TO_TRY = 100
_PERHAPS_A_SPACE = "Does a word hold a space, which this format has no place for, or is the file damaged?"
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
# Outside of this, a number of a binary file is something else read as a number.
_SMALLEST, _LARGEST = 1e-15, 1e9
# How many numbers of each vector are looked at, and of how many words at once.
_NUMBERS_TO_TRY = 16
_WORDS_AT_ONCE = 100_000


class WordFile:
    """Word vectors of a file, which is mapped into memory and read where needed.

    One pass over the file finds where each word's vector is. Vectors are parsed when they are asked for, so
    that memory holds the words and their positions alone. Of a word that comes twice the first vector counts.

    Parameters
    ----------
    path : str or path-like
        A GloVe text file (``word x1 ... xd`` per line), a word2vec text file (the same, under a line
        ``n_words d``), or a word2vec binary file (that line, then per word its bytes, a space and d
        little-endian float32). Which it is, is told from its beginning; a byte order mark does not count. In
        text, a word may hold spaces: how long the vectors are is told by the first lines whose words do not.
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
        If the file is none of these, ends too soon, or goes on behind the words that it promises; the message
        names the line or word.
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
        start = len(_BYTE_ORDER_MARK) if self._map[:3] == _BYTE_ORDER_MARK else 0
        self._map.seek(start)
        header = _parse_header(self._map.readline())
        if header is None:
            self._map.seek(start)
            self.n_features = self._count_features()
            n_words, self._is_binary = None, False
        else:
            n_words, self.n_features = header
            start = self._map.tell()
            line = self._map.readline().rstrip()
            n_numbers = _count_numbers(line)
            self._is_binary = n_numbers < self.n_features
            if self._is_binary and 0 < n_numbers == line.count(b" "):
                raise ValueError(
                    f"{self.path}, line 2: line 1 promises {self.n_features} numbers for each word, got "
                    f"{n_numbers}."
                )
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

    def _count_features(self):
        """Return the length of the vectors that most of the first lines of a text file have."""
        lines = (line.rstrip() for line in iter(self._map.readline, b""))
        lines = list(itertools.islice(filter(None, lines), _LINES_TO_TRY))
        # Words may hold spaces, and their last parts look like numbers, but not all of them.
        alone = [
            n for n, line in ((_count_numbers(line), line) for line in lines) if n == line.count(b" ") > 0
        ]
        n_features = max(alone, key=lambda n: (alone.count(n), n), default=None)
        if n_features is None or _count_numbers(lines[0]) < n_features:
            raise ValueError(
                f"{self.path}, line 1: expected a word and its vector, separated by single spaces, got "
                f"{lines[0][:60].decode('utf-8', 'replace') if lines else ''!r}."
            )
        return n_features

    def _index_text(self, start, n_words):
        places = {}
        self._map.seek(start)
        place, number, n_read = start, 0 if n_words is None else 1, 0
        for line in iter(self._map.readline, b""):
            number += 1
            content = line.rstrip()
            if content:
                n_read += 1
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
        if n_words is not None and n_read != n_words:
            raise ValueError(f"{self.path} promises {n_words} words and ends after {n_read}.")
        return places

    def _index_binary(self, start, n_words):
        places, last = {}, 0
        place, size = start, 4 * self.n_features
        for number in range(n_words):
            space = self._map.find(b" ", place)
            end = space + 1 + size
            if space < 0 or end > len(self._map):
                raise ValueError(f"{self.path} promises {n_words} words and ends after {number}.")
            # Some writers end each vector with a line feed.
            word = self._map[place:space].lstrip(b"\n")
            if self._is_misread(word, last):
                raise ValueError(
                    f"{self.path}, word {number + 1} is no text: {word[:40]!r}. {_PERHAPS_A_SPACE}"
                )
            last = space + 1
            places.setdefault(word.decode("utf-8", "replace"), last)
            self._progress(end - place)
            place = end
        rest = self._map[place : place + 64]
        if rest.strip():
            raise ValueError(
                f"{self.path} promises {n_words} words and goes on behind them: {rest[:40]!r}. "
                f"{_PERHAPS_A_SPACE}"
            )
        self._check_sizes(places)
        return places

    def _check_sizes(self, places):
        """Check that the vectors of a binary file are no letters or halves of numbers read as numbers."""
        words, starts = list(places), np.fromiter(places.values(), dtype=np.int64, count=len(places))
        content = np.frombuffer(self._map, dtype=np.uint8)
        within = np.arange(4 * min(self.n_features, _NUMBERS_TO_TRY))
        for first in range(0, len(words), _WORDS_AT_ONCE):
            numbers = content[starts[first : first + _WORDS_AT_ONCE, None] + within].view("<f4")
            is_wrong = (np.isfinite(numbers) & (np.abs(numbers) > _LARGEST)).any(axis=1)
            if is_wrong.any():
                word = words[first + int(is_wrong.argmax())]
                raise ValueError(
                    f"{self.path}: the vector of {word!r} has numbers above {_LARGEST:g}. {_PERHAPS_A_SPACE}"
                )

    def _is_misread(self, word, previous):
        """Tell whether the bytes taken for a word are numbers.

        That is so behind a word that holds a space: its second half is taken for numbers. Words cut between
        the bytes of a letter are common, and then the numbers before are of the usual size.
        """
        if _CONTROL.search(word):
            return True
        try:
            word.decode("utf-8")
        except UnicodeDecodeError:
            if not previous:
                return False
            sizes = np.abs(np.frombuffer(self._map, dtype="<f4", count=self.n_features, offset=previous))
            sizes = sizes[sizes != 0]
            return not ((sizes > _SMALLEST) & (sizes < _LARGEST)).all()
        return False


def _count_numbers(line):
    """Return how many of the last fields of a line are numbers; the first field is a word."""
    fields = line.split(b" ")[1:]
    for n, field in enumerate(reversed(fields)):
        try:
            float(field)
        except ValueError:
            return n
    return len(fields)


def _parse_header(line):
    """Return the numbers of words and of features, or None if the line is no header of word2vec."""
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() for field in fields) and int(fields[1]) > 0:
        return int(fields[0]), int(fields[1])
    return None
