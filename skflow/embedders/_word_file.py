"""Files of static word vectors: GloVe text, word2vec text and word2vec binary."""

import itertools
import mmap
import os
import re
import warnings
from pathlib import Path

import numpy as np

from ._archive import open_plain

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
        A GloVe text file (``word x1 ... xd`` per line, separated by spaces or tabs), a word2vec text file
        (the same, under a line ``n_words d``), or a word2vec binary file (that line, then per word its bytes,
        a space and d little-endian float32), plain or compressed by gzip, bzip2, xz or zip. Which it is, is
        told from its beginning; a byte order mark does not count. In text, a word may hold spaces: how long
        the vectors are is told by the first lines whose words do not.
    encoding : str, default="utf-8"
        Encoding of the words.
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
        If the file is none of these, ends too soon, or goes on behind the words that it promises, if a word
        of a text file does not decode, or if a line has a number too many; the message names line or word.

    Warns
    -----
    UserWarning
        If words of a binary file do not decode, and are left out (word2vec's own writer cuts long words, also
        inside a letter).
    """

    def __init__(self, path, encoding="utf-8", progress=lambda n: None):
        self.path = Path(os.path.expanduser(path))
        if not self.path.is_file():
            raise FileNotFoundError(f"path={str(path)!r}: there is no such file of word vectors.")
        if self.path.stat().st_size == 0:
            raise ValueError(f"{self.path} is empty; expected word vectors.")
        file, self._encoding = open_plain(self.path, encoding)
        with file:
            if os.fstat(file.fileno()).st_size == 0:
                raise ValueError(f"{self.path} is empty inside; expected word vectors.")
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._progress = progress
        start = len(_BYTE_ORDER_MARK) if self._map[:3] == _BYTE_ORDER_MARK else 0
        self._map.seek(start)
        header = _parse_header(self._map.readline())
        if header is None:
            self._map.seek(start)
            self.n_features, self._has_spaces = self._count_features()
            n_words, self._is_binary = None, False
        else:
            n_words, self.n_features = header
            self._has_spaces = True  # the header says how long the vectors are
            start = self._map.tell()
            line = self._map.readline().rstrip()
            n_numbers = _count_numbers(line)
            self._is_binary = n_numbers < self.n_features
            if self._is_binary and 0 < n_numbers == len(line.split()) - 1:
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
                    row[:] = [float(number) for number in line.split()[-self.n_features :]]
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
        """Return the length of most of the first vectors of a text file, and whether words hold spaces."""
        lines = (line.rstrip() for line in iter(self._map.readline, b""))
        lines = list(itertools.islice(filter(None, lines), _LINES_TO_TRY))
        counts = [(_count_numbers(line), len(_fields(line)) - 1) for line in lines]
        # Words may hold spaces, and their last parts look like numbers, but not all of them.
        alone = [n for n, n_fields in counts if n == n_fields > 0]
        n_features = max(alone, key=lambda n: (alone.count(n), n), default=None)
        if n_features is None or counts[0][0] < n_features:
            raise ValueError(
                f"{self.path}, line 1: expected a word and its vector, separated by spaces or tabs, got "
                f"{lines[0][:60].decode('utf-8', 'replace') if lines else ''!r}."
            )
        return n_features, any(n == n_features < n_fields for n, n_fields in counts)

    def _index_text(self, start, n_words):
        """Return where the line of each word of a text file begins."""
        places, d = {}, self.n_features
        self._map.seek(start)
        place, number, n_read = start, 0 if n_words is None else 1, 0
        for line in iter(self._map.readline, b""):
            number += 1
            content = line.rstrip()
            if content:
                n_read += 1
                is_simple = content.count(b" ") == d and b"  " not in content and b"\t" not in content
                word = content[: content.index(b" ")] if is_simple else self._word(content, number)
                places.setdefault(self._decoded(word, number), place)
            place += len(line)
            self._progress(len(line))
        if n_words is not None and n_read != n_words:
            raise ValueError(f"{self.path} promises {n_words} words and ends after {n_read}.")
        return places

    def _word(self, content, number):
        """Return the word of a line that has more than a word and single spaces between its numbers."""
        fields = _fields(content)
        n_more = len(fields) - 1 - self.n_features
        if n_more < 0:
            raise ValueError(
                f"{self.path}, line {number}: expected a word and {self.n_features} numbers, got "
                f"{len(fields)} fields."
            )
        if n_more == 0:
            return fields[0]
        if not self._has_spaces and _is_number(fields[n_more]):
            raise ValueError(
                f"{self.path}, line {number}: expected a word and {self.n_features} numbers, got one more: "
                f"{content[:60].decode('utf-8', 'replace')!r}."
            )
        # A word may hold spaces itself; the numbers are the last fields.
        return content.rsplit(None, self.n_features)[0]

    def _decoded(self, word, number):
        """Return a word of a text file as a str."""
        try:
            return word.decode(self._encoding)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{self.path}, line {number}: byte 0x{word[error.start]:02x} of the word {word[:40]!r} does "
                f"not decode as {self._encoding}; set the parameter encoding, such as encoding='latin-1'."
            ) from None

    def _index_binary(self, start, n_words):
        """Return where the vector of each word of a binary file begins."""
        places, last, n_broken = {}, 0, 0
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
            try:
                places.setdefault(word.decode(self._encoding), last)
            except UnicodeDecodeError:
                n_broken += 1
            self._progress(end - place)
            place = end
        rest = self._map[place : place + 64]
        if rest.strip():
            raise ValueError(
                f"{self.path} promises {n_words} words and goes on behind them: {rest[:40]!r}. "
                f"{_PERHAPS_A_SPACE}"
            )
        self._check_sizes(places)
        if n_broken:
            warnings.warn(
                f"{n_broken} of {n_words} words of {self.path} do not decode as {self._encoding} and are "
                "left out: were they cut, or is it another encoding?",
                UserWarning,
                stacklevel=2,
            )
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
            word.decode(self._encoding)
        except UnicodeDecodeError:
            if not previous:
                return False
            sizes = np.abs(np.frombuffer(self._map, dtype="<f4", count=self.n_features, offset=previous))
            sizes = sizes[sizes != 0]
            return not ((sizes > _SMALLEST) & (sizes < _LARGEST)).all()
        return False


def _fields(line):
    """Return a word, empty where a line begins with its separator, and what stands behind it."""
    fields = line.split()
    return [b"", *fields] if line[:1] in (b" ", b"\t") else fields


def _is_number(field):
    """Return whether a field is a number."""
    try:
        float(field)
    except ValueError:
        return False
    return True


def _count_numbers(line):
    """Return how many of the last fields of a line are numbers; the first field is a word."""
    fields = _fields(line)[1:]
    return next((n for n, field in enumerate(reversed(fields)) if not _is_number(field)), len(fields))


def _parse_header(line):
    """Return the numbers of words and of features, or None if the line is no header of word2vec."""
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() for field in fields) and int(fields[1]) > 0:
        return int(fields[0]), int(fields[1])
    return None
