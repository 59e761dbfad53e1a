"""What counts as a column of text."""

import math
import re
from collections.abc import Sequence

import numpy as np

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_EXPECTED = "a list, tuple, 1-D array, Series or one-column DataFrame of str"


def check_texts(X, *, name="X"):
    """Return a column of texts as a list of plain ``str``.

    Parameters
    ----------
    X : list, tuple or other sequence, 1-D array, pandas or polars Series, or one-column DataFrame of str
        The texts. Extension arrays of pandas, such as ``Series.values`` and ``pandas.Categorical``, and
        arrays of pyarrow are arrays, too. Subclasses of ``str``, such as ``numpy.str_``, become plain
        ``str``. An array of shape (n_texts, 1), as a ColumnTransformer hands on, counts as one column.
    name : str, default="X"
        Name of the argument in error messages.

    Returns
    -------
    texts : list of str
        At least one text.

    Raises
    ------
    TypeError
        If `X` is not a column of text, or if an element is neither a str nor missing, such as a number, bytes
        or a list. The message gives the position of the first such element.
    ValueError
        If `X` is a single string, is empty, has several columns, or has a missing element (None, NaN, NA).

    Examples
    --------
    >>> from skflow._texts import check_texts
    >>> check_texts(("a cat", "a dog"))
    ['a cat', 'a dog']
    >>> check_texts(["a cat", None])
    Traceback (most recent call last):
    ...
    ValueError: X[1] is missing (None): every element must be a str.
    """
    texts = _to_list(X, name)
    if not texts:
        raise ValueError(f"{name} is empty: found 0 sample(s) while a minimum of 1 is required.")
    if all(type(text) is str for text in texts):
        return texts
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            _reject(text, f"{name}[{position}]")
    return [str.__str__(text) for text in texts]


def distinct_texts(texts):
    """List each text once.

    Parameters
    ----------
    texts : list of str
        Texts.

    Returns
    -------
    distinct : list of str
        The texts in the order of their first occurrence.
    positions : ndarray of shape (n_texts,) or None
        Where each text stands in `distinct`; None if they are all distinct.

    Examples
    --------
    >>> from skflow._texts import distinct_texts
    >>> distinct_texts(["a", "b", "a"])
    (['a', 'b'], array([0, 1, 0]))
    """
    numbers = {}
    positions = [numbers.setdefault(text, len(numbers)) for text in texts]
    if len(numbers) == len(texts):
        return texts, None
    return list(numbers), np.array(positions)


def encodable(text):
    """Replace lone surrogates, which no tokenizer takes."""
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def _to_list(X, name):
    if isinstance(X, str):
        raise ValueError(
            f"{name} is one string, {_shown(X)}; expected {_EXPECTED}. For one text, pass [text]."
        )
    if len(getattr(X, "shape", ())) == 2 and hasattr(X, "columns"):  # of pandas or polars, or pyarrow's Table
        if X.shape[1] != 1:
            raise ValueError(f"{name} has {X.shape[1]} columns; expected one column of text.")
        X = X[getattr(X, "column_names", X.columns)[0]]
    if isinstance(X, np.ndarray):
        if X.ndim == 2 and X.shape[1] == 1:
            X = X[:, 0]
        if X.ndim != 1:
            raise ValueError(f"{name} is an array of shape {X.shape}; expected {_EXPECTED}.")
        return X.tolist()
    # A Series or an Index, a column of pyarrow, or an extension array of pandas, such as `Series.values` is.
    for method in ("tolist", "to_list", "to_pylist"):
        if hasattr(X, method) and getattr(X, "ndim", 1) == 1:
            return getattr(X, method)()
    if isinstance(X, Sequence) and not isinstance(X, bytes | bytearray | memoryview):
        return list(X)
    raise TypeError(f"{name} is a {type(X).__name__}; expected {_EXPECTED}.")


def _reject(value, where):
    is_nan = isinstance(value, float | np.floating) and math.isnan(value)
    # pandas.NA and NaT are recognized by name, since pandas is optional.
    if value is None or is_nan or type(value).__name__ in ("NAType", "NaTType"):
        raise ValueError(f"{where} is missing ({value!r}): every element must be a str.")
    raise TypeError(
        f"{where} is of type {type(value).__name__} ({_shown(value)}): every element must be a str."
    )


def _shown(value, limit=60):
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
