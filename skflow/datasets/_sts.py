"""The seven tasks of semantic textual similarity."""

from os import PathLike
from typing import Literal

import numpy as np

from .._typing import STSTask
from ._fetch import HOW_TO_PLACE, fetch_sts
from ._home import data_home_path
from ._hub_tables import read_hub_table, rescale
from ._layouts import OFFICIAL, SICK_SETS, TASKS, find_files, layouts
from ._parsing import check_complete, parse_error, read_input_and_gold, read_stsb_csv, read_table

_SPLITS = ("train", "dev", "test")
_DESCRIPTIONS = {
    "sts12": "SemEval-2012 Task 6 (Agirre et al., 2012, aclanthology.org/S12-1051)",
    "sts13": "*SEM 2013 shared task (Agirre et al., 2013, aclanthology.org/S13-1004), without its SMT subset",
    "sts14": "SemEval-2014 Task 10 (Agirre et al., 2014, doi:10.3115/v1/S14-2010)",
    "sts15": "SemEval-2015 Task 2 (Agirre et al., 2015, doi:10.18653/v1/S15-2045)",
    "sts16": "SemEval-2016 Task 1 (Agirre et al., 2016, doi:10.18653/v1/S16-1081)",
    "stsb": "STS benchmark (Cer et al., 2017, doi:10.18653/v1/S17-2001)",
    "sickr": "SICK relatedness (Marelli et al., 2014, aclanthology.org/L14-1314)",
}


def load_sts(
    task: str,
    data_home: str | PathLike[str] | None = None,
    split: Literal["train", "dev", "test"] | None = None,
) -> STSTask:
    r"""Load one of the seven tasks of semantic textual similarity.

    People graded how close in meaning two sentences are, from 0 (nothing in common; 1 in SICK) to 5 (the
    same). The files are read exactly: nothing is tokenized, lower-cased or dropped but the pairs that the
    organizers left without a score.

    Parameters
    ----------
    task : {"sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr"}
        The task. They have 3108, 1500, 3750, 3000, 1186, 8628 and 9927 scored pairs.
    data_home : str or path-like, default=None
        Directory that holds the files, in one of these layouts:

        - SentEval's: ``STS/STS12-en-test/STS.input.MSRpar.txt``, ``STS/STSBenchmark/sts-train.csv``,
          ``SICK/SICK_train.txt`` and so on;
        - the directories that the organizers' archives unpack to, such as ``STS2012-en-test/test-gold`` or
          ``stsbenchmark``, or one of them itself;
        - GLUE's, for ``stsb``: ``STS-B/train.tsv`` and ``STS-B/dev.tsv`` (GLUE has no scored test split);
        - the one file that the authors of SICK publish, ``SICK.txt``;
        - for ``stsb``, ``train.csv``, ``validation.csv`` and ``test.csv``, or as Parquet, of a data
          set of the Hugging Face hub with the columns ``sentence1``, ``sentence2`` and ``score`` or
          ``label``. Scores of which none is above 1 are multiplied by 5, those of -1 (hidden) count as not
          annotated, and there is no genre. Parquet needs pyarrow or polars.

        ``None`` looks in `get_data_home` and, where the task is not there, downloads it with `fetch_sts`.
    split : {"train", "dev", "test"}, default=None
        The pairs to return; ``None`` means all. STS 2012 to 2016 have a test split only.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object with the attributes

        pairs : ndarray of shape (n, 2), dtype object
            The two sentences of each pair, `str`.
        score : ndarray of shape (n,), dtype float64
            The gold score, from 0 to 5.
        subset : ndarray of shape (n,), dtype object
            The part of the task, such as ``"headlines"``; ``"stsb"`` and ``"sickr"`` have one part only.
        split : ndarray of shape (n,), dtype object
            ``"train"``, ``"dev"`` (called trial by SICK) or ``"test"``.
        genre : ndarray of shape (n,), dtype object
            `stsb` only: ``"main-news"``, ``"main-captions"`` or ``"main-forums"`` (and their variants); empty
            where the file does not say.
        entailment : ndarray of shape (n,), dtype object
            `sickr` only: ``"ENTAILMENT"``, ``"NEUTRAL"`` or ``"CONTRADICTION"``.
        DESCR : str
            What the task is, and its source.

    Raises
    ------
    ValueError
        If `task` or `split` is not one of the above, and, with the file and the line, if a file is truncated,
        a score is not a number from 0 to 5, a line lacks a field, or a file of sentences and its file of
        scores differ in length.
    FileNotFoundError
        If `data_home` does not hold the task or one of its files is missing.
    OSError
        If the task has to be downloaded and cannot be.

    Warns
    -----
    UserWarning
        If a file starts as the official one does and stops, at a line's end, before it.

    See Also
    --------
    fetch_sts : Download the tasks.
    skflow.evaluation.evaluate_sts : Score an encoder on them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skflow.datasets import load_sts
    >>> header = "index\tgenre\tsentence1\tsentence2\tscore\n"
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     glue = Path(directory, "STS-B")
    ...     glue.mkdir()
    ...     _ = Path(glue, "train.tsv").write_text(header + '0\tmain-news\tHe said "no".\tHe refused.\t4.2\n')
    ...     _ = Path(glue, "dev.tsv").write_text(header + "0\tmain-news\tIt rains.\tI sing.\t0.5\n")
    ...     data = load_sts("stsb", directory)
    >>> data.pairs
    array([['He said "no".', 'He refused.'],
           ['It rains.', 'I sing.']], dtype=object)
    >>> data.score
    array([4.2, 0.5])
    """
    if task not in TASKS:
        raise ValueError(f"task must be one of {list(TASKS)}, got {task!r}")
    if split is not None and split not in _SPLITS:
        raise ValueError(f"split must be one of {list(_SPLITS)} or None, got {split!r}")
    directory, layout = _locate(task, data_home)
    has_splits = task in ("stsb", "sickr")
    pairs, subsets, splits = [], [], []
    parts = {}
    for part, names in layout.files.items():
        parts[part] = _read(task, part, directory, names, layout)
    if layout.is_of_hub:
        rescale([pair for read in parts.values() for pair in read])
    for part, read in parts.items():
        read = [pair for pair in read if pair.score is not None]
        pairs += read
        subsets += [task if has_splits else part] * len(read)
        splits += [part if has_splits else "test"] * len(read)
    data = STSTask(
        pairs=np.array([(pair.first, pair.second) for pair in pairs], dtype=object).reshape(-1, 2),
        score=np.array([pair.score for pair in pairs], dtype=np.float64),
        subset=np.array(subsets, dtype=object),
        split=np.array(splits, dtype=object),
    )
    if has_splits:
        data["genre" if task == "stsb" else "entailment"] = np.array([p.label for p in pairs], dtype=object)
    if split is not None:
        kept = data.split == split
        if not kept.any():
            there = [name for name in _SPLITS if name in data.split]
            raise ValueError(f"{task} in {directory} has no split {split!r}, only {there}")
        data = STSTask(**{name: values[kept] for name, values in data.items()})
    data.DESCR = (
        f"{_DESCRIPTIONS[task]}: {len(data.score)} sentence pairs with a similarity score from 0 to 5."
    )
    return data


def _locate(task, data_home):
    home = data_home_path(data_home)
    found = find_files(task, home)
    if found is None and data_home is None:
        fetch_sts(home)
        found = find_files(task, home)
    if found is None:
        names = dict.fromkeys(name for layout in layouts(task) for name in next(iter(layout.files.values())))
        there = sorted(path.name for path in home.iterdir()) if home.is_dir() else []
        raise FileNotFoundError(
            f"no files of {task} under {home}: looked for {', '.join(names)} there and in such folders as "
            f"{layouts(task)[0].directories[0]}; found {', '.join(there[:20]) or 'nothing'}. {HOW_TO_PLACE}"
        )
    return found


def _read(task, part, directory, names, layout):
    paths = [directory / name for name in names]
    if len(paths) == 2:
        pairs = read_input_and_gold(*paths)
    elif layout.is_of_hub:
        pairs = read_hub_table(paths[0])
        if not pairs:
            raise parse_error(paths[0], 1, "no pairs")
        return pairs
    elif layout.columns:
        pairs = read_table(paths[0], layout.columns, SICK_SETS.get(part))
    else:
        pairs = read_stsb_csv(paths[0])
    check_complete(pairs, paths[0], OFFICIAL[task][part], header_lines=bool(layout.columns))
    return pairs
