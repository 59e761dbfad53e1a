"""Scores of encoders and calibrators on sentence pairs."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state, column_or_1d

from .._pairs import (
    check_pairs,
    check_unpaired,
    encode_pairs,
    fit_encode,
    fit_encoder,
    is_passthrough,
    pair_cosines,
    pair_similarities,
    stack,
)
from .._texts import check_texts
from ..datasets import load_published_sts, load_sts
from ..datasets._layouts import TASKS
from ._calibrators import calibrate, check_calibrators, fit_calibrator
from ._checks import check_choice, check_none_missing, check_resampling, check_y
from ._comparison import CalibratorComparison
from ._pairs_result import PairsResult
from ._scores import AGGREGATES, CORRELATIONS, METRICS, score_pairs
from ._sts_result import STSResult

_SPLITS = ("train", "dev", "test")


def evaluate_sts(
    encoder: Any,
    tasks: str | Sequence[str] = "all",
    *,
    data_home: str | PathLike[str] | None = None,
    fit_on: Literal["target"] | Sequence[str] | None = "target",
    aggregate: Literal["wmean", "mean", "all"] = "wmean",
    split: Literal["train", "dev", "test"] | None = "test",
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    random_state: int | np.random.RandomState | None = 0,
) -> STSResult:
    r"""Score an encoder on the seven tasks of semantic textual similarity.

    The similarity of a pair is the cosine of its two vectors; the score of a task is Spearman's rank
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
        How the scores of the subsets of STS 2012 to 2016 make up that of the task: their mean weighted by
        number of pairs (as BERT-flow and BERT-whitening report), their plain mean, or one correlation over
        all pairs at once (as SBERT, SimCSE and MTEB report). Scores of different kinds must not be compared.
        ``"stsb"`` and ``"sickr"`` have one subset each.
    split : {"train", "dev", "test"} or None, default="test"
        Which pairs of ``"stsb"`` and ``"sickr"`` are scored; ``None`` means all.
    n_resamples : int, default=1000
        Number of times that the scored pairs of each subset are drawn afresh, with replacement, for bootstrap
        confidence intervals of the scores; 0 for no intervals.
    confidence_level : float, default=0.95
        Probability that the intervals are made for, between 0 and 1.
    random_state : int, RandomState instance or None, default=0
        Draws the pairs. With an int, encoders scored one after the other see the same draws.

    Returns
    -------
    result : STSResult
        Maps each task to Spearman's rho x 100. Holds Pearson's r, the scores of the subsets, the numbers of
        pairs, confidence intervals and the other aggregates as well.

    Raises
    ------
    ValueError
        If an argument is none of the above, or the data are damaged.
    OSError
        If the data are not there.

    See Also
    --------
    evaluate_pairs : The same for your own pairs.
    compare_calibrators : The same for many calibrators behind one encoder.
    scipy.stats.bootstrap : Intervals of any statistic.

    Notes
    -----
    The intervals are percentiles of the scores of the resamples (Efron, 1979, doi:10.1214/aos/1176344552),
    nan where more than a tenth of the resamples has no score, as happens with very few pairs. They say how
    far other pairs of the same kind could have moved a score. They do not cover what else may vary, such as
    the seed of a flow, and know nothing of dependence between pairs that share a sentence.

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
    ...     result = evaluate_sts(
    ...         TfidfVectorizer(), "stsb", data_home=directory, split="dev", n_resamples=0
    ...     )
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
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        random_state=random_state,
        verbose=0,
    )["encoder"]


def evaluate_pairs(
    encoder: Any,
    pairs: ArrayLike,
    y: ArrayLike,
    metric: Literal["spearman", "pearson", "auc"] = "spearman",
    *,
    fit_on: Literal["target"] | ArrayLike | None = "target",
    subset: ArrayLike | None = None,
    aggregate: Literal["wmean", "mean", "all"] = "all",
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    random_state: int | np.random.RandomState | None = 0,
) -> PairsResult:
    """Score an encoder on sentence pairs of your own.

    Parameters
    ----------
    encoder : estimator or "passthrough"
        Transformer of sentences to vectors. For pairs of vectors a calibrator, a Pipeline of several, or
        ``"passthrough"`` for the vectors as they are.
    pairs : array-like of shape (n_pairs, 2) of str, or of shape (n_pairs, 2, n_features)
        Sentence pairs: a list of tuples or of dicts with two keys, an array, or a DataFrame with two columns
        of text; or pairs of vectors, a memory map, too.
    y : array-like of shape (n_pairs,)
        Gold scores; for ``metric="auc"`` whether a pair belongs together: booleans, 0 and 1, or -1
        and 1.
    metric : {"spearman", "pearson", "auc"}, default="spearman"
        What the cosine similarities are scored by: a correlation with `y`, or the area under the ROC curve,
        as for QNLI in Table 4 of Li et al. (2020, arXiv:2011.05864) or for paraphrase detection.
    fit_on : "target", sequence of str, array-like (n_sentences, n_features) or None, default="target"
        What a clone of the encoder is fitted on: both sentences of every pair, duplicates kept; the given
        sentences, texts or vectors as the pairs are; or nothing.
    subset : array-like of shape (n_pairs,), default=None
        The subset that each pair belongs to, for scores of each.
    aggregate : {"wmean", "mean", "all"}, default="all"
        How the subsets make up the score, see `evaluate_sts`.
    n_resamples, confidence_level, random_state
        As in `evaluate_sts`.

    Returns
    -------
    result : PairsResult
        Maps the name of the metric to the score x 100; ``float(result)`` is the same score.

    Raises
    ------
    ValueError
        If an argument is none of the above, lengths differ, or `y` lacks the values that the metric needs.
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
    check_choice("metric", metric, METRICS)
    check_choice("aggregate", aggregate, AGGREGATES)
    check_resampling(n_resamples, confidence_level)
    first, second = check_pairs(pairs, name="pairs", accept_vectors=True)
    subset = np.full(len(first), "all", dtype=object) if subset is None else column_or_1d(subset)
    check_consistent_length(first, y, subset)
    check_none_missing("subset", subset.tolist(), "; give every pair the name of a subset")
    y = check_y(y, metric)
    if _is_target(fit_on):
        _, Z = fit_encode(encoder, stack(first, second))
        similarities = pair_cosines(Z)
    else:
        if fit_on is not None:
            encoder = fit_encoder(encoder, check_unpaired(fit_on, first, name="fit_on"))
        similarities = pair_similarities(encoder, first, second)
    rng = check_random_state(random_state)
    (scores,) = score_pairs([similarities], y, subset, (metric,), n_resamples, rng)
    return PairsResult({"pairs": scores}, (metric,), aggregate, confidence_level)


def compare_calibrators(
    encoder: Any,
    calibrators: Mapping[str, Any],
    tasks: str | Sequence[str] = "all",
    *,
    data_home: str | PathLike[str] | None = None,
    fit_on: Literal["target"] | Sequence[str] | None = "target",
    aggregate: Literal["wmean", "mean", "all"] = "wmean",
    split: Literal["train", "dev", "test"] | None = "test",
    published: bool = False,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    random_state: int | np.random.RandomState | None = 0,
    verbose: int = 1,
) -> CalibratorComparison:
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
        Set the scores of :func:`skflow.datasets.load_published_sts` beside the table.
    n_resamples, confidence_level, random_state
        As in `evaluate_sts`; all calibrators see the same draws. With resamples the table has the interval of
        each average, and of its difference from the raw vectors, or from the first row where no calibrator is
        ``"passthrough"``: a difference whose interval holds 0 is marked as noise.
    verbose : int, default=1
        Show a progress bar unless it is 0.

    Returns
    -------
    comparison : CalibratorComparison
        Maps each name to an `STSResult`; its method `differences` compares the rows.

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
    ...         n_resamples=0,
    ...         verbose=0,
    ...     )
    >>> round(comparison["raw"]["stsb"], 2)
    -100.0
    >>> list(comparison)
    ['raw', 'LSA']
    """
    from tqdm import tqdm

    tasks = _check_tasks(tasks)
    check_choice("aggregate", aggregate, AGGREGATES)
    check_choice("split", split, (*_SPLITS, None))
    check_resampling(n_resamples, confidence_level)
    rng = check_random_state(random_state)
    calibrators = check_calibrators(calibrators)
    raw = [name for name, calibrator in calibrators.items() if is_passthrough(calibrator)]
    target = _is_target(fit_on)
    rows = {name: {} for name in calibrators}
    with tqdm(total=len(tasks) * len(calibrators), disable=not verbose) as progress:
        if fit_on is not None and not target:
            sentences = check_texts(fit_on, name="fit_on")
            if len(raw) == len(calibrators):
                encoder = fit_encoder(encoder, sentences)  # no need of the sentences' vectors
            else:
                encoder, Z_fit = fit_encode(encoder, sentences)
                calibrators = {name: fit_calibrator(c, Z_fit) for name, c in calibrators.items()}
        for task in tasks:
            progress.set_description(task)
            data = load_sts(task, data_home)
            scored = _scored(task, data, split)
            first, second = data.pairs.T.tolist()
            if target:
                _, Z_fit = fit_encode(encoder, first + second)
                Z = _safe_indexing(Z_fit, np.concatenate([scored, len(first) + scored]))
            else:
                Z = encode_pairs(encoder, *data.pairs[scored].T.tolist())
            similarities = []
            for name, calibrator in calibrators.items():
                progress.set_description(f"{task}, {name}")
                calibrator = fit_calibrator(calibrator, Z_fit) if target else calibrator
                similarities.append(pair_cosines(calibrate(calibrator, Z)))
                progress.update()
            y, subset = data.score[scored], data.subset[scored]
            scores = score_pairs(similarities, y, subset, CORRELATIONS, n_resamples, rng)
            for name, of_calibrator in zip(calibrators, scores, strict=True):
                rows[name][task] = of_calibrator
    results = {name: STSResult(row, CORRELATIONS, aggregate, confidence_level) for name, row in rows.items()}
    return CalibratorComparison(results, load_published_sts() if published else None, raw[0] if raw else None)


def _check_tasks(tasks):
    if isinstance(tasks, str):
        tasks = TASKS if tasks == "all" else (tasks,)
    if not isinstance(tasks, Iterable):
        raise TypeError(f"tasks must be 'all' or some of {list(TASKS)}, got {tasks!r}")
    tasks = list(dict.fromkeys(tasks))
    if not tasks:
        raise ValueError(f"tasks is empty; give 'all' or some of {list(TASKS)}")
    for task in tasks:
        check_choice("tasks", task, TASKS)
    return tasks


def _is_target(fit_on):
    if isinstance(fit_on, str) and fit_on != "target":
        raise ValueError(f"fit_on must be 'target', a list of sentences or None, got {fit_on!r}")
    return isinstance(fit_on, str)


def _scored(task, data, split):
    """Return the indices of the pairs that are scored."""
    if split is None or task not in ("stsb", "sickr"):
        return np.arange(len(data.score))
    scored = np.flatnonzero(data.split == split)
    if not len(scored):
        there = sorted(set(data.split))
        raise ValueError(f"{task} has no pairs of split={split!r} there, only of {there}")
    return scored
