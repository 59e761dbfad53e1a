"""Scores that papers print for the seven STS tasks."""

from importlib import resources

import numpy as np

from .._typing import Bunch
from ._layouts import TASKS

# Key in the file -> what it stands for, how the scores are aggregated over a task's subsets.
_SOURCES = {
    "Reimers2019": (
        "Reimers and Gurevych (2019), Sentence-BERT, EMNLP, arXiv:1908.10084",
        "all",
    ),
    "Li2020": (
        "Li et al. (2020), On the sentence embeddings from pre-trained language models, EMNLP, "
        "arXiv:2011.05864",
        "wmean",
    ),
    "Su2021": (
        "Su et al. (2021), Whitening sentence representations for better semantics and faster retrieval, "
        "arXiv:2103.15316",
        "wmean",
    ),
    "Gao2021-all": (
        "Gao et al. (2021), SimCSE, EMNLP, arXiv:2104.08821 (evaluated again, all pairs of a task at once)",
        "all",
    ),
}


def load_published_sts() -> Bunch:
    """Load the scores that papers print for the seven STS tasks.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object with the attributes

        model : list of str
            Name of each row, as printed.
        tasks : list of str
            Name of each column: ``"sts12"`` to ``"sts16"``, ``"stsb"`` and ``"sickr"`` (the last two: test
            split).
        spearman : ndarray of shape (n_models, 7), dtype float64
            Spearman's rho x 100.
        aggregate : list of str
            How each row sums up the subsets of a task: ``"wmean"`` or ``"all"``, see
            `skflow.evaluation.evaluate_sts`. Rows of different kinds must not be compared.
        source, table : list of str
            Key of the paper of each row, and number of the table in it.
        references : dict of str to str
            Key -> paper.
        DESCR : str
            A description.

    Examples
    --------
    >>> from skflow.datasets import load_published_sts
    >>> published = load_published_sts()
    >>> row = published.model.index("BERT-base-flow (target)")
    >>> dict(zip(published.tasks, published.spearman[row].tolist()))["stsb"]
    70.72
    >>> published.references[published.source[row]][:17]
    'Li et al. (2020),'
    """
    file = resources.files(__package__) / "data" / "published_sts.tsv"
    # The first line is a comment; the second one starts with "# " as well and names the columns.
    _, header, *lines = file.read_text(encoding="utf-8").splitlines()
    columns = header.removeprefix("# ").split("\t")
    rows = [dict(zip(columns, line.split("\t"), strict=True)) for line in lines]
    source = [row["source"] for row in rows]
    return Bunch(
        model=[row["model"] for row in rows],
        tasks=list(TASKS),
        spearman=np.array([[float(row[task]) for task in TASKS] for row in rows]),
        aggregate=[_SOURCES[key][1] for key in source],
        source=source,
        table=[row["table"] for row in rows],
        references={key: reference for key, (reference, _) in _SOURCES.items()},
        DESCR="Spearman's rho x 100 on the seven STS tasks, as printed in the papers under `references`.",
    )
