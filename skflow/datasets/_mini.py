"""A small similarity data set that ships with the package."""

from importlib import resources
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from .._typing import MiniSTS, MiniSTSFrames
from ._parsing import parse_error, parse_score, read_lines

_COLUMNS = ["subset", "score", "sentence1", "sentence2"]
_FILES = {"representative": "mini_sts.tsv", "hard": "mini_sts_hard.tsv"}
_Subset = Literal["representative", "hard"]
_UNLABELED = ["mini_sts_unlabeled.txt", "wordnet_sentences.txt"]
_DESCRIPTIONS = {
    "representative": """\
Mini STS: English sentence pairs with a similarity score
--------------------------------------------------------

{n_pairs} pairs of short English sentences written for skflow, in the manner of the STS tasks: {counts}. Each
group of four sentences has a first one, one that says (nearly) the same, one that is related and one on the
same topic; pairs near 0 join sentences of two groups, so that most sentences stand in several pairs.

Pairs are graded from 0 (different topics) to 5 (the same meaning) by the instructions of the STS benchmark
(Cer et al., 2017, doi:10.18653/v1/S17-2001), without looking at any encoder's similarities. One judgment
stands behind each grade, where a benchmark averages over several: do not report scores on this set as if they
were a benchmark's.

{n_unlabeled} further sentences without a grade are there to fit on: captions, headlines, questions and
answers written for skflow, and definitions and example sentences of WordNet 3.0 (Copyright 2006 by Princeton
University; its license lies beside them).
""",
    "hard": """\
Mini STS, hard: English sentence pairs that share words on purpose
------------------------------------------------------------------

{n_pairs} pairs of short English sentences written for skflow, many of them with most words in common and
another meaning, or the reverse: {counts}. Calibrators that help on the STS tasks may not help here.

Pairs are graded from 0 (nothing in common) to 5 (the same meaning), one judgment each: do not report scores
on this set as if they were a benchmark's.
""",
}


@overload
def load_mini_sts(
    *, subset: _Subset = ..., return_X_y: Literal[False] = ..., as_frame: Literal[False] = ...
) -> MiniSTS: ...
@overload
def load_mini_sts(
    *, subset: _Subset = ..., return_X_y: Literal[False] = ..., as_frame: Literal[True]
) -> MiniSTSFrames: ...
@overload
def load_mini_sts(
    *, subset: _Subset = ..., return_X_y: Literal[True], as_frame: Literal[False] = ...
) -> tuple[np.ndarray, np.ndarray]: ...
@overload
def load_mini_sts(
    *, subset: _Subset = ..., return_X_y: Literal[True], as_frame: Literal[True]
) -> tuple[Any, Any]: ...
def load_mini_sts(
    *, subset: _Subset = "representative", return_X_y: bool = False, as_frame: bool = False
) -> Any:
    """Load a small set of sentence pairs with a similarity score, without any download.

    Parameters
    ----------
    subset : {"representative", "hard"}, default="representative"
        The pairs: 1,000 made the way those of the STS tasks were, or 398 that share words on purpose, such as
        negations.
    return_X_y : bool, default=False
        Return ``(pairs, score)`` instead of a Bunch.
    as_frame : bool, default=False
        Give the pairs as a pandas DataFrame with the columns ``"sentence1"`` and ``"sentence2"``, score and
        subset as a Series, and set `frame`.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object with the attributes

        pairs : ndarray of shape (n, 2), dtype object
            The two sentences of each pair, `str`.
        score : ndarray of shape (n,), dtype float64
            How close in meaning they are, from 0 (different topics) to 5 (the same).
        subset : ndarray of shape (n,), dtype object
            What sort of pair it is: caption, headline, question, answer or definition; of the hard ones,
            paraphrase, negation and others.
        unlabeled : list of str
            3,000 more sentences to fit on; of the hard pairs, none.
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
    ValueError
        If `subset` is not one of the two.
    ImportError
        If ``as_frame=True`` and pandas is not installed.

    See Also
    --------
    load_sts : The seven tasks that encoders are compared on.

    Notes
    -----
    Sentences were written for this set in groups of four: a first one, one that says nearly the same, a
    related one and one on the same topic. The first one was graded against the others by the instructions of
    the STS benchmark (Cer et al., 2017, doi:10.18653/v1/S17-2001), without looking at the similarities of any
    encoder. Pairs near 0 join sentences of two groups. One judgment stands behind each grade, not an average
    over annotators. Pairs that share a sentence are not independent, so that intervals over them are
    somewhat too narrow.

    Unlabeled are 400 captions, headlines, questions and answers written likewise, and 1,100 definitions and
    1,500 example sentences drawn from WordNet 3.0.

    The set was measured once, after it was finished: on layers 0, 4, first_last and last of all-MiniLM-L6-v2,
    six calibrators gain or lose here as on the seven STS tasks, with one exception that is noise there
    (see the page "Evaluate and select"). The level of the scores is higher than on those tasks.

    Examples
    --------
    >>> from skflow.datasets import load_mini_sts
    >>> data = load_mini_sts()
    >>> data.pairs.shape, len(data.unlabeled)
    ((1000, 2), 3000)
    """
    if subset not in _FILES:
        raise ValueError(f"subset is {subset!r}, must be one of {sorted(_FILES)}")
    folder = resources.files(__package__) / "data"
    with resources.as_file(folder / _FILES[subset]) as path:
        subsets, scores, pairs = _read(Path(path))
        filename = str(path)
    unlabeled = []
    for name in _UNLABELED if subset == "representative" else []:
        unlabeled += (folder / name).read_text(encoding="utf-8").splitlines()
    score = np.array(scores, dtype=np.float64)
    pairs = np.array(pairs, dtype=object)
    names, counts = np.unique(subsets, return_counts=True)
    data: Any = MiniSTS(
        pairs=pairs,
        score=score,
        subset=np.array(subsets, dtype=object),
        unlabeled=unlabeled,
        feature_names=_COLUMNS[2:],
        target_names=["score"],
        DESCR=_DESCRIPTIONS[subset].format(
            n_pairs=len(score),
            n_unlabeled=len(unlabeled),
            counts=", ".join(f"{count} of kind {name}" for name, count in zip(names, counts, strict=True)),
        ),
        filename=filename,
    )
    if as_frame:
        import pandas as pd

        columns = dict(zip(_COLUMNS, (data.subset, score, *pairs.T), strict=True))
        data.frame = pd.DataFrame(columns)
        data.pairs, data.score, data.subset = (data.frame[c] for c in (_COLUMNS[2:], "score", "subset"))
    return (data.pairs, data.score) if return_X_y else data


def _read(path):
    lines = read_lines(path)
    if lines[0].split("\t") != _COLUMNS:
        raise parse_error(path, 1, f"the header line must be {_COLUMNS}, tab-separated")
    subsets, scores, pairs = [], [], []
    for line, text in enumerate(lines[1:], start=2):
        fields = text.split("\t")
        score = parse_score(fields[1], path, line) if len(fields) == len(_COLUMNS) else None
        if score is None:
            raise parse_error(path, line, f"expected {len(_COLUMNS)} tab-separated fields and a score")
        subsets.append(fields[0])
        scores.append(score)
        pairs.append(fields[2:])
    return subsets, scores, pairs
