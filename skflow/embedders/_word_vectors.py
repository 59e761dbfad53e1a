"""Averages of static word vectors, the first row of the BERT-flow paper's table."""

import os
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from os import PathLike
from typing import Self

import numpy as np
import regex
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from .._texts import check_texts, distinct_texts
from .._typing import fit_context
from ._base import BaseTextEmbedder, sif_weights
from ._loading import LoadedModels
from ._word_file import WordFile

# Contractions come apart as in the Penn Treebank, which GloVe follows: do n't, cat 's.
# Combining marks and joiners belong to the word, which re does not know; separators of records are white
# space to str and re alone.
_WORD = regex.compile(r"\w+?(?=n't\b)|n't\b|'(?:s|m|d|ll|re|ve)\b|\w+|[^\w\s\x1c-\x1f]", regex.IGNORECASE)
_CURLY_APOSTROPHE = "\u2019"
_WINDOW = 16_384

# Files in memory, shared like the models of BertEmbedder: a cache, which no result depends on.
_loaded_files = LoadedModels(2)


def split_words(text):
    """Split a text into words and punctuation marks.

    Parameters
    ----------
    text : str
        The text.

    Returns
    -------
    words : list of str
        Words as they are written, with their combining marks; contractions come apart as in the Penn
        Treebank. A run of a script without spaces, such as Thai or Chinese, is one word.

    Examples
    --------
    >>> from skflow.embedders._word_vectors import split_words
    >>> split_words("The cat's owner doesn't care.")
    ['The', 'cat', "'s", 'owner', 'does', "n't", 'care', '.']
    """
    return _WORD.findall(text.replace(_CURLY_APOSTROPHE, "'"))


class WordVectorEmbedder(BaseTextEmbedder):
    r"""Embed text by averaging static word vectors.

    Every word is looked up as it is written, then in lower case, and where neither is there, in the normal
    forms NFC and NFD of Unicode, in the same way. A word that is not found is left out: it counts neither in
    the sum nor in the number of words. A text without any known word has the zero vector, and one warning
    says how many did.

    Parameters
    ----------
    path : str or path-like
        File of word vectors: GloVe text, word2vec text or word2vec binary, told apart by its beginning, plain
        or compressed (``.gz``, ``.bz2``, ``.xz``, ``.zip`` with one member). In text, fields are separated by
        spaces or tabs, and a word may hold spaces; in binary it may not, and a file where one does is an
        error. The file, or a temporary copy of what a compressed one holds, is mapped into memory and indexed
        once per process; only the vectors that are needed are read.
    sif : float or None, default=None
        If given, the a of smooth inverse frequency weights a / (a + p(w)) (1e-3 in [1]_): every word vector
        is multiplied by its weight. p(w) is the share of the word among the known words of the texts given to
        `fit`. As in [1]_, the sum is divided by the number of words.
    tokenizer : callable or None, default=None
        Function from a text to a list of str, its words. None splits off punctuation marks, and contractions
        as the Penn Treebank does; for a script without spaces, such as Thai or Chinese, give a tokenizer.
    normalize : bool, default=False
        Whether vectors are scaled to unit length. A zero vector stays zero.
    encoding : str, default="utf-8"
        Encoding of the words in the file. In text a word that does not decode is an error; in binary files,
        whose own writer cuts long words inside a letter, such words are left out, and one warning counts
        them.
    verbose : int, default=0
        Whether to show a progress bar while the file is indexed.

    Attributes
    ----------
    word_frequencies_ : dict of str to float
        Share of each word among the known words of the texts given to `fit`. Only if `sif` is given.

    See Also
    --------
    BertEmbedder : Vectors of a contextual encoder.

    Notes
    -----
    Unless `sif` is given, the embedder learns nothing: `transform` works without `fit`, and `fit` only checks
    the file. A pickle carries the path, not the vectors.

    References
    ----------
    .. [1] S. Arora, Y. Liang, T. Ma. "A Simple but Tough-to-Beat Baseline for Sentence Embeddings",
       ICLR 2017.
    .. [2] J. Pennington, R. Socher, C. D. Manning. "GloVe: Global Vectors for Word Representation", EMNLP
       2014.
    .. [3] T. Mikolov, K. Chen, G. Corrado, J. Dean. "Efficient Estimation of Word Representations in Vector
       Space", 2013. arXiv:1301.3781.

    Examples
    --------
    >>> import tempfile
    >>> from skflow.embedders import WordVectorEmbedder
    >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
    ...     _ = file.write("cat 1 0\n" "dog 0 1\n")
    ...     file.flush()
    ...     embedder = WordVectorEmbedder(file.name).fit(["A cat"])
    ...     embedder.get_feature_names_out().tolist()
    ...     embedder.transform(["A cat, a dog", "Dog!"])
    ['wordvectorembedder0', 'wordvectorembedder1']
    array([[0.5, 0.5],
           [0. , 1. ]], dtype=float32)
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's convention
        "path": [str, os.PathLike],
        "sif": [Interval(Real, 0, None, closed="neither"), None],
        "tokenizer": [callable, None],
        "normalize": ["boolean"],
        "encoding": [str],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        sif: float | None = None,
        tokenizer: Callable[[str], Sequence[str]] | None = None,
        normalize: bool = False,
        encoding: str = "utf-8",
        verbose: int = 0,
    ) -> None:
        self.path = path
        self.sif = sif
        self.tokenizer = tokenizer
        self.normalize = normalize
        self.encoding = encoding
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Check the file and, if `sif` is given, learn the frequencies of words.

        Parameters
        ----------
        X : list, tuple, 1-D array, Series or one-column DataFrame of str
            Texts.
        y : None
            Ignored.

        Returns
        -------
        self : WordVectorEmbedder
            The embedder.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        TypeError, ValueError
            If `X` is not a column of text, the file no file of word vectors, or what `tokenizer` returns no
            words.
        """
        texts = check_texts(X)
        file = self._open()
        if self.sif is not None:
            counts = {}
            for text in texts:
                for word in self._known_words(text, file):
                    counts[word] = counts.get(word, 0) + 1
            total = sum(counts.values())
            self.word_frequencies_ = {word: count / total for word, count in counts.items()}
        elif self.tokenizer is not None:
            self._tokenize(texts[0])
        self._n_features_out = file.n_features
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Embed texts.

        Parameters
        ----------
        X : list, tuple, 1-D array, Series or one-column DataFrame of str
            Texts. Empty ones are allowed.

        Returns
        -------
        vectors : ndarray of shape (n_texts, n_features)
            float32.

        Raises
        ------
        NotFittedError
            If `sif` is given and `fit` was not called.
        FileNotFoundError
            If there is no such file.
        TypeError, ValueError
            If `X` is not a column of text, the file no file of word vectors, or what `tokenizer` returns no
            words.

        Warns
        -----
        UserWarning
            If texts have no known word (once, with their number).
        """
        self._validate_params()
        if self.sif is not None:
            check_is_fitted(self, "word_frequencies_")
        texts, positions = distinct_texts(check_texts(X))
        file = self._open()
        vectors = np.empty((len(texts), file.n_features), dtype=np.float32)
        is_unknown = np.empty(len(texts), dtype=bool)
        for start in range(0, len(texts), _WINDOW):
            window = slice(start, start + _WINDOW)
            vectors[window], is_unknown[window] = self._average(texts[window], file)
        if positions is not None:
            vectors, is_unknown = vectors[positions], is_unknown[positions]
        if is_unknown.any():
            n_unknown = np.count_nonzero(is_unknown)
            warnings.warn(
                f"{n_unknown} of {len(is_unknown)} texts have no known word: their vectors are zero.",
                UserWarning,
                stacklevel=2,
            )
        return self._scaled(vectors)

    def _n_features(self):
        return self._open().n_features

    def _open(self):
        def load():
            from tqdm.auto import tqdm

            size = os.path.getsize(path) if os.path.exists(path) else 0
            with tqdm(
                total=size, desc="word vectors", unit="B", unit_scale=True, disable=not self.verbose
            ) as bar:
                return WordFile(path, self.encoding, bar.update)

        path = os.path.expanduser(self.path)
        status = os.stat(path) if os.path.exists(path) else None
        state = status and (status.st_size, status.st_mtime_ns, status.st_ino)
        return _loaded_files.get((os.path.realpath(path), self.encoding, state), load)

    def _known_words(self, text, file):
        """Return the words of a text that the file has, as it writes them."""
        words = split_words(text) if self.tokenizer is None else self._tokenize(text)
        found = (next((form for form in _forms(word) if form in file), None) for word in words)
        return [word for word in found if word is not None]

    def _tokenize(self, text):
        words = self.tokenizer(text)
        if isinstance(words, str | bytes) or not isinstance(words, Iterable):
            raise TypeError(
                f"tokenizer returned a {type(words).__name__} ({words!r:.60}); expected a list of str."
            )
        words = list(words)
        for word in words:
            if not isinstance(word, str):
                raise TypeError(
                    f"tokenizer returned an element of type {type(word).__name__} ({word!r:.60}); expected "
                    "a list of str."
                )
        return words

    def _average(self, texts, file):
        columns = {}
        rows = [
            [columns.setdefault(word, len(columns)) for word in self._known_words(text, file)]
            for text in texts
        ]
        lengths = np.array([len(row) for row in rows])
        words = list(columns)
        weights = np.ones(len(words), dtype=np.float32)
        if self.sif is not None:
            weights = sif_weights(
                self.sif, np.array([self.word_frequencies_.get(word, 0.0) for word in words])
            )
        # One row per text, one column per distinct word; a word that comes twice counts twice.
        indices = np.array([column for row in rows for column in row], dtype=np.int64)
        shares = np.repeat(1.0 / np.maximum(lengths, 1), lengths) * weights[indices]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        matrix = sparse.csr_array((shares, indices, offsets), shape=(len(rows), len(words)))
        return matrix @ file.vectors(words).astype(np.float64), lengths == 0


def _forms(word):
    """Yield the ways in which a file may write a word."""
    yield word
    yield word.lower()
    if not word.isascii():
        for form in ("NFC", "NFD"):
            normal = unicodedata.normalize(form, word)
            yield normal
            yield normal.lower()
