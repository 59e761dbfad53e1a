"""A small similarity data set that ships with the package."""

from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from ._parsing import parse_error, parse_score, read_lines

_COLUMNS = ["kind", "score", "sentence1", "sentence2"]
_DESCRIPTION = """\
Mini STS: English sentence pairs with a similarity score
--------------------------------------------------------

{n_pairs} pairs of short English sentences written for skflow. A pair is graded from 0 (nothing in common) to
5 (the same meaning), on the scale of the STS benchmark (Cer et al., 2017, doi:10.18653/v1/S17-2001). The
kinds of pair and their numbers: {kinds}.

It is meant for examples, tests and a first look without a download. Its scores are its authors' judgment,
not an average over many annotators: do not report scores on it as if they were a benchmark's.
"""


def load_mini_sts(*, return_X_y: bool = False, as_frame: bool = False) -> Bunch | tuple[Any, Any]:
    """Load a small set of sentence pairs with a similarity score, without any download.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(pairs, score)`` instead of a Bunch.
    as_frame : bool, default=False
        Give the pairs as a pandas DataFrame with the columns ``"sentence1"`` and ``"sentence2"``, score and
        kind as a Series, and set `frame`.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object with the attributes

        pairs : ndarray of shape (n, 2), dtype object
            The two sentences of each pair, `str`.
        score : ndarray of shape (n,), dtype float64
            How close in meaning they are, from 0 (nothing in common) to 5 (the same).
        kind : ndarray of shape (n,), dtype object
            What sort of pair it is, such as a paraphrase or a negation.
        feature_names, target_names : list of str
            ``["sentence1", "sentence2"]`` and ``["score"]``.
        frame : DataFrame of shape (n, 4)
            Only with ``as_frame=True``: all columns.
        DESCR : str
            A description.
        filename : str
            Path of the file.

    (pairs, score) : tuple
        With ``return_X_y=True``.

    Raises
    ------
    ImportError
        If ``as_frame=True`` and pandas is not installed.

    See Also
    --------
    load_sts : The seven tasks that encoders are compared on.

    Examples
    --------
    >>> from skflow.datasets import load_mini_sts
    >>> pairs, score = load_mini_sts(return_X_y=True)
    >>> pairs.shape[1], pairs.shape[0] == len(score) >= 300
    (2, True)
    """
    with resources.as_file(resources.files(__package__) / "data" / "mini_sts.tsv") as path:
        kinds, scores, pairs = _read(Path(path))
        filename = str(path)
    score = np.array(scores, dtype=np.float64)
    kind = np.array(kinds, dtype=object)
    pairs = np.array(pairs, dtype=object)
    names, counts = np.unique(kind.astype(str), return_counts=True)
    data = Bunch(
        pairs=pairs,
        score=score,
        kind=kind,
        feature_names=_COLUMNS[2:],
        target_names=["score"],
        DESCR=_DESCRIPTION.format(
            n_pairs=len(score), kinds=", ".join(f"{k} ({n})" for k, n in zip(names, counts, strict=True))
        ),
        filename=filename,
    )
    if as_frame:
        import pandas as pd

        columns = dict(zip(_COLUMNS, (kind, score, *pairs.T), strict=True))
        data.frame = pd.DataFrame(columns)
        data.pairs, data.score, data.kind = (data.frame[c] for c in (_COLUMNS[2:], "score", "kind"))
    return (data.pairs, data.score) if return_X_y else data


def _read(path):
    lines = read_lines(path)
    if lines[0].split("\t") != _COLUMNS:
        raise parse_error(path, 1, f"the header line must be {_COLUMNS}, tab-separated")
    kinds, scores, pairs = [], [], []
    for line, text in enumerate(lines[1:], start=2):
        fields = text.split("\t")
        score = parse_score(fields[1], path, line) if len(fields) == len(_COLUMNS) else None
        if score is None:
            raise parse_error(path, line, f"expected {len(_COLUMNS)} tab-separated fields and a score")
        kinds.append(fields[0])
        scores.append(score)
        pairs.append(fields[2:])
    return kinds, scores, pairs
