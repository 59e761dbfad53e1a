"""Does calibrating help, which calibrator, with which settings: the tables of the literature in one call.

Every figure in this module is multiplied by 100, as the literature prints them.
"""

import html
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.utils import _safe_indexing, check_array, check_consistent_length, column_or_1d

from .datasets import load_published_sts, load_sts
from .datasets._layouts import TASKS
from .embedders._text import check_texts
from .metrics import pearson_score, spearman_score
from .similarity import check_pairs, pair_cosines

__all__ = [
    "CalibratorComparison",
    "PairsResult",
    "STSResult",
    "compare_calibrators",
    "evaluate_pairs",
    "evaluate_sts",
]

_AGGREGATES = ("wmean", "mean", "all")
_SPLITS = ("train", "dev", "test")


def _auc(y_true, y_pred):
    # A subset may hold pairs of one kind only.
    return roc_auc_score(y_true, y_pred) if len(np.unique(y_true)) == 2 else float("nan")


_CORRELATIONS = ("spearman", "pearson")
_METRICS = {"spearman": spearman_score, "pearson": pearson_score, "auc": _auc}


def evaluate_sts(encoder, tasks="all", *, data_home=None, fit_on="target", aggregate="wmean", split="test"):
    r"""Score an encoder on the seven tasks of semantic textual similarity.

    The similarity of a pair is the cosine of its two vectors; the figure of a task is Spearman's rank
    correlation (and Pearson's) with the gold scores.

    Parameters
    ----------
    encoder : estimator
        Transformer of sentences to vectors, usually a Pipeline of a `BertEmbedder` and a calibrator.
    tasks : "all", str or sequence of str, default="all"
        Of ``"sts12"``, ``"sts13"``, ``"sts14"``, ``"sts15"``, ``"sts16"``, ``"stsb"`` and ``"sickr"``.
    data_home : str or path-like, default=None
        Where the files are, see :func:`skflow.datasets.load_sts`.
    fit_on : "target", sequence of str or None, default="target"
        What a clone of the encoder is fitted on:

        - ``"target"``: for each task afresh, both sentences of every pair of the task (train, dev and test,
          no labels), duplicates kept. The "target" setting of Li et al. (2020, arXiv:2011.05864).
        - sentences: once, on those. With the sentences of SNLI and MNLI it is the "NLI" setting.
        - ``None``: nothing, `encoder` is used as it is.
    aggregate : {"wmean", "mean", "all"}, default="wmean"
        How the figures of the subsets of STS 2012 to 2016 make up that of the task: their mean weighted by
        number of pairs (as BERT-flow and BERT-whitening report), their plain mean, or one correlation over
        all pairs at once (as SBERT, SimCSE and MTEB report). Figures of different kinds must not be compared.
        ``"stsb"`` and ``"sickr"`` have one subset each.
    split : {"train", "dev", "test"} or None, default="test"
        Which pairs of ``"stsb"`` and ``"sickr"`` are scored; ``None`` means all.

    Returns
    -------
    result : STSResult
        Maps each task to Spearman's rho x 100. Holds Pearson's r, the figures of the subsets, the numbers of
        pairs and the other aggregates as well.

    Raises
    ------
    ValueError
        If `tasks`, `fit_on`, `aggregate` or `split` is none of the above, or the data are damaged.
    OSError
        If the data are not there.

    See Also
    --------
    evaluate_pairs : The same for your own pairs.
    compare_calibrators : The same for many calibrators behind one encoder.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from skflow.evaluation import evaluate_sts
    >>> header = "genre\tsentence1\tsentence2\tscore\n"
    >>> rows = ["main-news\tRain fell.\tIt rained.\t5\n", "main-news\tRain fell.\tA dog fell.\t1.5\n"]
    >>> with tempfile.TemporaryDirectory() as directory:  # GLUE's layout of STS-B
    ...     for split in ("train", "dev"):
    ...         _ = Path(directory, f"{split}.tsv").write_text(header + "".join(rows))
    ...     result = evaluate_sts(TfidfVectorizer(), "stsb", data_home=directory, split="dev")
    >>> result  # words alone get this one wrong
    x 100, aggregate='wmean'
    task     spearman  pearson  n_pairs
    stsb      -100.00  -100.00        2
    average   -100.00  -100.00
    """
    alone = {"encoder": "passthrough"}
    return compare_calibrators(
        encoder,
        alone,
        tasks,
        data_home=data_home,
        fit_on=fit_on,
        aggregate=aggregate,
        split=split,
        verbose=0,
    )["encoder"]


def evaluate_pairs(encoder, pairs, y, metric="spearman", *, fit_on="target", subset=None, aggregate="all"):
    """Score an encoder on sentence pairs of your own.

    Parameters
    ----------
    encoder : estimator
        Transformer of sentences to vectors.
    pairs : array-like of shape (n_pairs, 2) of str
        Sentence pairs: a list of tuples, an array, or a DataFrame with two columns of text.
    y : array-like of shape (n_pairs,)
        Gold similarities; for ``metric="auc"`` whether a pair belongs together: booleans, 0 and 1, or -1
        and 1.
    metric : {"spearman", "pearson", "auc"}, default="spearman"
        What the cosine similarities are scored by: a correlation with `y`, or the area under the ROC curve,
        as for QNLI in Table 4 of Li et al. (2020, arXiv:2011.05864) or for paraphrase detection.
    fit_on : "target", sequence of str or None, default="target"
        What a clone of the encoder is fitted on: both sentences of every pair, duplicates kept; the given
        sentences; or nothing.
    subset : array-like of shape (n_pairs,), default=None
        The subset that each pair belongs to, for figures of each.
    aggregate : {"wmean", "mean", "all"}, default="all"
        How the subsets make up the figure, see `evaluate_sts`.

    Returns
    -------
    result : PairsResult
        Maps the name of the metric to the figure x 100; ``float(result)`` is the same figure.

    Raises
    ------
    ValueError
        If an argument is none of the above, lengths differ, or `y` has not the values that the metric needs.
    TypeError
        If a sentence is not a str.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from skflow.evaluation import evaluate_pairs
    >>> pairs = [("a cat sleeps", "the cat sleeps"), ("a cat sleeps", "it rains"), ("it rains", "I sing")]
    >>> evaluate_pairs(TfidfVectorizer(), pairs, [True, False, False], metric="auc")["auc"]
    100.0
    """
    _check_choice("metric", metric, _METRICS)
    _check_choice("aggregate", aggregate, _AGGREGATES)
    first, second = check_pairs(pairs, name="pairs")
    subset = np.full(len(first), "all", dtype=object) if subset is None else column_or_1d(subset)
    check_consistent_length(first, y, subset)
    y = column_or_1d(y)
    if metric == "auc":
        values = set(np.unique(y).tolist())
        if values not in ({0, 1}, {-1, 1}):
            raise ValueError(f"metric='auc' needs y of booleans, 0 and 1, or -1 and 1, got {values}")
    else:
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    sentences = first + second
    if _is_target(fit_on):
        Z = _fit_transform(encoder, sentences)[1]
    elif fit_on is not None:
        Z = clone(encoder).fit(check_texts(fit_on, name="fit_on")).transform(sentences)
    else:
        Z = encoder.transform(sentences)
    return PairsResult({"pairs": _score(Z, y, subset, (metric,))}, (metric,), aggregate)


def compare_calibrators(
    encoder,
    calibrators,
    tasks="all",
    *,
    data_home=None,
    fit_on="target",
    aggregate="wmean",
    split="test",
    published=False,
    verbose=1,
):
    r"""Score many calibrators behind one encoder on the seven STS tasks.

    Gives what `evaluate_sts` gives for a Pipeline of the encoder and each calibrator, but every sentence is
    embedded once.

    Parameters
    ----------
    encoder : estimator
        Transformer of sentences to vectors, such as a `BertEmbedder`.
    calibrators : dict of str to estimator, or sequence of estimators
        Name -> calibrator: a transformer of vectors, a Pipeline of several, or ``"passthrough"`` for the raw
        vectors. Those of a sequence are named after their classes.
    tasks, data_home, fit_on, aggregate, split
        As in `evaluate_sts`. With ``fit_on=None`` encoder and calibrators are used as they are.
    published : bool, default=False
        Set the figures of :func:`skflow.datasets.load_published_sts` beside the table.
    verbose : int, default=1
        Show a progress bar unless it is 0.

    Returns
    -------
    comparison : CalibratorComparison
        Maps each name to an `STSResult`.

    Raises
    ------
    ValueError
        If there is no calibrator, or for the reasons of `evaluate_sts`.
    TypeError
        If a calibrator is not a transformer.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.decomposition import TruncatedSVD
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from skflow.evaluation import compare_calibrators
    >>> header = "genre\tsentence1\tsentence2\tscore\n"
    >>> rows = ["main-news\tRain fell.\tIt rained.\t5\n", "main-news\tRain fell.\tA dog fell.\t1.5\n"]
    >>> with tempfile.TemporaryDirectory() as directory:  # GLUE's layout of STS-B
    ...     for split in ("train", "dev"):
    ...         _ = Path(directory, f"{split}.tsv").write_text(header + "".join(rows))
    ...     comparison = compare_calibrators(
    ...         TfidfVectorizer(),
    ...         {"raw": "passthrough", "LSA": TruncatedSVD(2, random_state=0)},
    ...         "stsb",
    ...         data_home=directory,
    ...         split="dev",
    ...         verbose=0,
    ...     )
    >>> round(comparison["raw"]["stsb"], 2)
    -100.0
    >>> list(comparison)
    ['raw', 'LSA']
    """
    from tqdm import tqdm

    tasks = _check_tasks(tasks)
    _check_choice("aggregate", aggregate, _AGGREGATES)
    _check_choice("split", split, (*_SPLITS, None))
    calibrators = _check_calibrators(calibrators)
    target = _is_target(fit_on)
    rows = {name: {} for name in calibrators}
    with tqdm(total=len(tasks) * len(calibrators), disable=not verbose) as progress:
        if fit_on is not None and not target:
            sentences = check_texts(fit_on, name="fit_on")
            progress.set_description("fit")
            if all(_is_passthrough(calibrator) for calibrator in calibrators.values()):
                encoder = clone(encoder).fit(sentences)  # no need of the sentences' vectors
            else:
                encoder, Z = _fit_transform(encoder, sentences)
                calibrators = {name: _fit(calibrator, Z) for name, calibrator in calibrators.items()}
        for task in tasks:
            progress.set_description(task)
            data = load_sts(task, data_home)
            scored = _scored(task, data, split)
            first, second = data.pairs.T.tolist()
            if target:
                _, Z_fit = _fit_transform(encoder, first + second)
                Z = _safe_indexing(Z_fit, np.concatenate([scored, len(first) + scored]))
            else:
                Z = encoder.transform(data.pairs[scored].ravel(order="F").tolist())
            for name, calibrator in calibrators.items():
                progress.set_description(f"{task}, {name}")
                calibrator = _fit(calibrator, Z_fit) if target else calibrator
                calibrated = Z if _is_passthrough(calibrator) else calibrator.transform(Z)
                rows[name][task] = _score(calibrated, data.score[scored], data.subset[scored], _CORRELATIONS)
                progress.update()
    results = {name: STSResult(row, _CORRELATIONS, aggregate) for name, row in rows.items()}
    return CalibratorComparison(results, load_published_sts() if published else None)


def _check_choice(name, value, choices):
    if value not in tuple(choices):
        raise ValueError(f"{name} must be one of {list(choices)}, got {value!r}")


def _check_tasks(tasks):
    if isinstance(tasks, str):
        tasks = TASKS if tasks == "all" else (tasks,)
    tasks = list(dict.fromkeys(tasks))
    if not tasks:
        raise ValueError(f"tasks is empty; give 'all' or some of {list(TASKS)}")
    for task in tasks:
        _check_choice("tasks", task, TASKS)
    return tasks


def _is_target(fit_on):
    if isinstance(fit_on, str) and fit_on != "target":
        raise ValueError(f"fit_on must be 'target', a list of sentences or None, got {fit_on!r}")
    return isinstance(fit_on, str)


def _is_passthrough(calibrator):
    return calibrator is None or (isinstance(calibrator, str) and calibrator == "passthrough")


def _check_calibrators(calibrators):
    if isinstance(calibrators, str) or hasattr(calibrators, "fit"):
        raise TypeError(f"calibrators must be a dict or a sequence of calibrators, got {calibrators!r}")
    if not isinstance(calibrators, Mapping):
        estimators = list(calibrators)
        names = [e if isinstance(e, str) else type(e).__name__ for e in estimators]
        # Two of one class become WhiteningCalibrator-1 and -2, as make_pipeline numbers its steps.
        numbers = [names[: i + 1].count(name) for i, name in enumerate(names)]
        names = [
            f"{name}-{number}" if names.count(name) > 1 else name
            for name, number in zip(names, numbers, strict=True)
        ]
        calibrators = dict(zip(names, estimators, strict=True))
    if not calibrators:
        raise ValueError("calibrators is empty; give at least one, such as 'passthrough'")
    for name, calibrator in calibrators.items():
        is_transformer = hasattr(calibrator, "fit") and hasattr(calibrator, "transform")
        if isinstance(calibrator, type) or not (is_transformer or _is_passthrough(calibrator)):
            raise TypeError(f"calibrator {name!r} must be a transformer or 'passthrough', got {calibrator!r}")
    return dict(calibrators)


def _fit_transform(encoder, sentences):
    """Return a fitted clone and the vectors of the sentences that it is fitted on, embedded once."""
    encoder = clone(encoder)
    if hasattr(encoder, "fit_transform"):
        return encoder, encoder.fit_transform(sentences)
    return encoder, encoder.fit(sentences).transform(sentences)


def _fit(calibrator, Z):
    return calibrator if _is_passthrough(calibrator) else clone(calibrator).fit(Z)


def _scored(task, data, split):
    """Return the indices of the pairs that are scored."""
    if split is None or task not in ("stsb", "sickr"):
        return np.arange(len(data.score))
    scored = np.flatnonzero(data.split == split)
    if not len(scored):
        there = sorted(set(data.split))
        raise ValueError(f"{task} has no pairs of split={split!r} there, only of {there}")
    return scored


@dataclass(frozen=True)
class _Figures:
    """Figures x 100 of one set of pairs: over all pairs at once, and for each subset."""

    n_pairs: dict  # subset -> number
    at_once: dict  # metric -> figure
    subsets: dict  # subset -> metric -> figure

    def aggregated(self, metric, aggregate):
        if aggregate == "all":
            return self.at_once[metric]
        figures = [self.subsets[subset][metric] for subset in self.n_pairs]
        weights = list(self.n_pairs.values()) if aggregate == "wmean" else None
        return float(np.average(figures, weights=weights))


def _figure(metric, y, similarity):
    return 100 * float(_METRICS[metric](y, similarity))


def _score(Z, y, subset, metrics):
    similarity = pair_cosines(Z)
    parts = {name: subset == name for name in dict.fromkeys(subset.tolist())}
    return _Figures(
        {name: int(part.sum()) for name, part in parts.items()},
        {metric: _figure(metric, y, similarity) for metric in metrics},
        {
            name: {metric: _figure(metric, y[part], similarity[part]) for metric in metrics}
            for name, part in parts.items()
        },
    )


class _Result(Mapping):
    """What evaluations have in common: figures of sets of pairs and how they are summed up and shown."""

    def __init__(self, figures, metrics, aggregate):
        self._figures = figures
        self._metrics = metrics
        self.aggregate = aggregate

    def __iter__(self):
        return iter(self._keys())

    def __len__(self):
        return len(self._keys())

    def aggregated(self, aggregate):
        """Return the same evaluation summed up in another way.

        Parameters
        ----------
        aggregate : {"wmean", "mean", "all"}
            See `evaluate_sts`.

        Returns
        -------
        result : same class
            The result; nothing is computed again.
        """
        _check_choice("aggregate", aggregate, _AGGREGATES)
        return type(self)(self._figures, self._metrics, aggregate)

    @property
    def n_pairs(self):
        """Number of scored pairs: dict of str to int."""
        return {name: sum(figures.n_pairs.values()) for name, figures in self._figures.items()}

    @property
    def subsets(self):
        """Figures x 100 and number of pairs of every subset: name -> subset -> figure -> value."""
        return {
            name: {subset: {**figures.subsets[subset], "n_pairs": n} for subset, n in figures.n_pairs.items()}
            for name, figures in self._figures.items()
        }

    def to_frame(self, subsets=False):
        """Return the figures as a pandas DataFrame.

        Parameters
        ----------
        subsets : bool, default=False
            One row for each subset instead of one for each set of pairs.

        Returns
        -------
        frame : DataFrame
            The columns are the metrics and ``"n_pairs"``; the index is the name of the set of pairs, and with
            `subsets` that and the name of the subset.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        import pandas as pd

        columns = [*self._metrics, "n_pairs"]
        if not subsets:
            names, rows = zip(*self._rows(), strict=True)
            return pd.DataFrame(list(rows), index=pd.Index(names, name=self._row_name), columns=columns)
        rows = {(n, s): values for n, parts in self.subsets.items() for s, values in parts.items()}
        index = pd.MultiIndex.from_tuples(rows, names=[self._row_name, "subset"])
        return pd.DataFrame(list(rows.values()), index=index, columns=columns)

    def _rows(self):
        for name, figures in self._figures.items():
            values = [figures.aggregated(metric, self.aggregate) for metric in self._metrics]
            yield name, [*values, self.n_pairs[name]]

    def _table(self):
        header = [self._row_name, *self._metrics, "n_pairs"]
        return header, [[name, *values] for name, values in self._rows()]

    def _title(self):
        return f"x 100, aggregate={self.aggregate!r}"

    def __repr__(self):
        return _as_text(self._title(), *self._table())

    def _repr_html_(self):
        return _as_html(self._title(), *self._table())


class STSResult(_Result):
    """Figures of one encoder on STS tasks: a mapping of tasks to Spearman's rho x 100.

    Returned by `evaluate_sts`. Its text and HTML representations are tables.

    Attributes
    ----------
    aggregate : {"wmean", "mean", "all"}
        How the subsets are summed up.
    spearman, pearson : dict of str to float
        Task -> correlation x 100.
    average : float
        Mean of Spearman's rho x 100 over the tasks.
    n_pairs : dict of str to int
        Task -> number of scored pairs.
    subsets : dict
        Task -> subset -> ``{"spearman": ..., "pearson": ..., "n_pairs": ...}``.
    """

    _row_name = "task"

    def _keys(self):
        return self._figures

    def __getitem__(self, task):
        return self._figures[task].aggregated("spearman", self.aggregate)

    @property
    def spearman(self):
        """Task -> Spearman's rho x 100."""
        return dict(self)

    @property
    def pearson(self):
        """Task -> Pearson's r x 100."""
        return {
            task: figures.aggregated("pearson", self.aggregate) for task, figures in self._figures.items()
        }

    @property
    def average(self):
        """Mean of Spearman's rho x 100 over the tasks."""
        return float(np.mean(list(self.values())))

    def _table(self):
        header, rows = super()._table()
        return header, [*rows, ["average", self.average, float(np.mean(list(self.pearson.values()))), ""]]


class PairsResult(_Result):
    """Figure of one encoder on given pairs: a mapping of the metric's name to the figure x 100.

    Returned by `evaluate_pairs`. Its text and HTML representations are tables; ``float(result)`` is the
    figure.

    Attributes
    ----------
    aggregate : {"wmean", "mean", "all"}
        How the subsets are summed up.
    n_pairs : dict of str to int
        ``{"pairs": number}``.
    subsets : dict
        ``"pairs"`` -> subset -> ``{metric: ..., "n_pairs": ...}``.
    """

    _row_name = "data"

    def _keys(self):
        return self._metrics

    def __getitem__(self, metric):
        if metric not in self._metrics:
            raise KeyError(metric)
        return self._figures["pairs"].aggregated(metric, self.aggregate)

    def __float__(self):
        return self[self._metrics[0]]

    def _table(self):
        header, rows = super()._table()
        parts = self.subsets["pairs"]
        if len(parts) > 1:
            rows = [[name, *values.values()] for name, values in parts.items()] + rows
        return header, rows


class CalibratorComparison(Mapping):
    """Figures of many calibrators on STS tasks: a mapping of names to `STSResult`.

    Returned by `compare_calibrators`. Its text and HTML representations are tables.

    Attributes
    ----------
    results : dict of str to STSResult
        What it maps.
    published : :class:`~sklearn.utils.Bunch` or None
        Published figures shown beside, see :func:`skflow.datasets.load_published_sts`.
    """

    def __init__(self, results, published=None):
        self.results = results
        self.published = published

    def __getitem__(self, name):
        return self.results[name]

    def __iter__(self):
        return iter(self.results)

    def __len__(self):
        return len(self.results)

    def to_frame(self):
        """Return the table as a pandas DataFrame.

        Returns
        -------
        frame : DataFrame
            One row for each calibrator and published model; the columns are the tasks, ``"average"``,
            ``"aggregate"`` and ``"source"`` (empty for what was computed here). The index is the name.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        import pandas as pd

        (name, *columns), rows = self._table()
        index = pd.Index([row[0] for row in rows], name=name)
        return pd.DataFrame([row[1:] for row in rows], index=index, columns=columns)

    def _table(self):
        tasks = list(next(iter(self.results.values())))
        header = ["calibrator", *tasks, "average", "aggregate", "source"]
        rows = [[name, *r.values(), r.average, r.aggregate, ""] for name, r in self.results.items()]
        if self.published is not None:
            places = [self.published.tasks.index(task) for task in tasks]
            for i, model in enumerate(self.published.model):
                figures = self.published.spearman[i, places].tolist()
                source = f"{self.published.source[i]}, Table {self.published.table[i]}"
                rows.append([model, *figures, float(np.mean(figures)), self.published.aggregate[i], source])
        return header, rows

    def __repr__(self):
        return _as_text("Spearman's rho x 100", *self._table())

    def _repr_html_(self):
        return _as_html("Spearman's rho x 100", *self._table())


def _cell(value):
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _as_text(title, header, rows):
    cells = [header, *[[_cell(value) for value in row] for row in rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        first, *others = (
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join([first, *others]).rstrip())
    return "\n".join([title, *lines])


def _as_html(title, header, rows):
    def line(tag, values):
        return "<tr>" + "".join(f"<{tag}>{html.escape(_cell(v))}</{tag}>" for v in values) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    return (
        f"<table><caption>{html.escape(title)}</caption>"
        f"<thead>{line('th', header)}</thead><tbody>{body}</tbody></table>"
    )
