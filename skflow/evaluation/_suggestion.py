"""Which calibrator to take, by measurement."""

from __future__ import annotations

import reprlib
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_consistent_length, check_random_state

from .._bootstrap import percentile_interval, resample_scores
from .._pairs import check_pairs, fit_encode, is_passthrough, pair_cosines, training_set
from .._tables import Column, Table
from ..calibrators import (
    NATSVCalibrator,
    NormalizingFlowCalibrator,
    StandardNormalizationCalibrator,
    WhiteningCalibrator,
)
from ..metrics import average_cosine
from ._calibrators import calibrate, check_calibrators, fit_calibrator
from ._checks import check_choice, check_resampling, check_y
from ._result import Interval
from ._scores import METRICS, score_of


def suggest_calibrator(
    encoder: Any,
    pairs: ArrayLike,
    y: ArrayLike,
    calibrators: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    metric: Literal["spearman", "pearson", "auc"] = "spearman",
    extra: ArrayLike | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 2000,
    random_state: int | np.random.RandomState | None = None,
) -> CalibratorSuggestion:
    """Measure on graded pairs whether a calibrator helps, and which.

    The advice is to calibrate only if the gain over the raw vectors is more than chance explains. On encoders
    that were tuned for similarity calibrating often hurts, and no property of unlabeled vectors tells
    beforehand: that is why graded pairs are needed. A hundred will show a large gain, a thousand a small one.

    Parameters
    ----------
    encoder : estimator or "passthrough"
        Transformer of sentences to vectors, such as a `BertEmbedder`; a clone of it is fitted on the
        sentences. For pairs of vectors ``"passthrough"``.
    pairs : array-like of shape (n_pairs, 2) of str, or of shape (n_pairs, 2, n_features)
        Sentence pairs of the kind that matters to you, texts or vectors, see `evaluate_pairs`.
    y : array-like of shape (n_pairs,)
        Their gold scores; for ``metric="auc"`` whether a pair belongs together: booleans, 0 and 1, or -1
        and 1.
    calibrators : dict of str to estimator, or sequence of estimators, default=None
        Candidates as in `compare_calibrators`; the raw vectors are always among them, as ``"passthrough"``.
        None takes standard normalization, NATSV with 1 and with 6 directions (where there are more features),
        whitening, whole and of the strength that it chooses itself, and the flow.
    metric : {"spearman", "pearson", "auc"}, default="spearman"
        What the cosine similarities are scored by, see `evaluate_pairs`.
    extra : sequence of str, or array-like of shape (n_sentences, n_features), default=None
        Unlabeled sentences, texts or vectors as the pairs are, that encoder and calibrators are fitted on
        besides those of `pairs`, such as the text that they will be used on: whitening and the flow want
        several times as many sentences as there are features.
    confidence_level : float, default=0.95
        Level at which the intervals of all candidates hold at once.
    n_resamples : int, default=2000
        Bootstrap samples of the pairs, at least 100.
    random_state : int, RandomState instance or None, default=None
        Draws the samples, and seeds calibrators that have a `random_state` of None.

    Returns
    -------
    suggestion : CalibratorSuggestion
        The name of the calibrator, or "passthrough" for none, with the measurements and the reason.

    Raises
    ------
    ValueError
        If lengths differ, there are fewer than 10 pairs, `y` is constant, not finite or not what the metric
        needs, there is no calibrator, or an argument is out of range.
    TypeError
        If a sentence is not a str, or a calibrator is not a transformer.

    See Also
    --------
    compare_calibrators : The seven STS tasks.
    evaluate_pairs : The score of one encoder.

    Notes
    -----
    Calibrators are fitted, without labels, on the sentences of these pairs, too: the "target" setting of Li
    et al. (2020, arXiv:2011.05864). The intervals are percentile bootstrap intervals (Efron, 1979,
    doi:10.1214/aos/1176344552) of the difference of two scores over the same resampled pairs, with
    Bonferroni's correction for the number of candidates. They cover the choice of pairs, not the seed of
    a flow, and take pairs to be independent, which those that share a sentence are not.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from skflow.calibrators import StandardNormalizationCalibrator
    >>> from skflow.datasets import load_mini_sts
    >>> from skflow.evaluation import suggest_calibrator
    >>> from sklearn.decomposition import TruncatedSVD
    >>> from sklearn.pipeline import make_pipeline
    >>> encoder = make_pipeline(CountVectorizer(), TruncatedSVD(20, random_state=0))
    >>> candidates = {"SN": StandardNormalizationCalibrator()}
    >>> pairs, y = load_mini_sts(subset="hard", return_X_y=True)
    >>> suggestion = suggest_calibrator(encoder, pairs, y, candidates, n_resamples=200, random_state=0)
    >>> suggestion.name
    'SN'
    """
    check_choice("metric", metric, METRICS)
    check_resampling(n_resamples, confidence_level, min_resamples=100)
    first, second = check_pairs(pairs, name="pairs", accept_vectors=True)
    check_consistent_length(first, y)
    y_true = check_y(y, metric)
    if len(y_true) < 10:
        raise ValueError(f"pairs has {len(y_true)} pairs: no advice follows from fewer than 10")
    if len(np.unique(y_true)) == 1:
        raise ValueError(f"y is constant ({y_true[0]}): nothing correlates with it")
    candidates = None if calibrators is None else _without_passthrough(check_calibrators(calibrators))
    rng = check_random_state(random_state)
    _, Z_fit = fit_encode(encoder, training_set(first, second, extra))
    Z = Z_fit[: 2 * len(first)]
    if candidates is None:
        candidates = _candidates(Z.shape[1])
    similarities, cosines = {"passthrough": pair_cosines(Z)}, {"passthrough": average_cosine(Z)}
    for name, calibrator in candidates.items():
        Z_calibrated = calibrate(fit_calibrator(_seeded(calibrator, rng), Z_fit), Z)
        similarities[name], cosines[name] = pair_cosines(Z_calibrated), average_cosine(Z_calibrated)
    scores = {name: score_of(metric, y_true, values) for name, values in similarities.items()}
    parts = [np.arange(len(y_true))]
    resampled = resample_scores(y_true, list(similarities.values()), parts, [metric], n_resamples, rng)
    raw, *others = 100 * resampled[metric][:, :, 0]
    level = 1 - (1 - confidence_level) / len(candidates)
    gains = {
        name: Interval(*percentile_interval(other - raw, level))
        for name, other in zip(candidates, others, strict=True)
    }
    better = [name for name, gain in gains.items() if gain.low > 0]
    name = max(better, key=scores.__getitem__, default="passthrough")
    return CalibratorSuggestion(
        name=name,
        calibrator=clone(candidates[name]) if better else "passthrough",
        metric=metric,
        scores=scores,
        interval=gains,
        average_cosine=cosines,
        n_pairs=len(y_true),
        confidence_level=confidence_level,
    )


@dataclass(repr=False, eq=False)
class CalibratorSuggestion(Table):
    """An advice of `suggest_calibrator` and what it rests on.

    Attributes
    ----------
    name : str
        Name of the candidate to take; ``"passthrough"`` is to leave the vectors as they are.
    calibrator : estimator or "passthrough"
        It, unfitted.
    metric : {"spearman", "pearson", "auc"}
        What the candidates were scored by.
    scores : dict of str to float
        Score x 100 of the raw vectors (``"passthrough"``) and every candidate.
    interval : dict of str to Interval
        Simultaneous confidence interval of the gain of every candidate over the raw vectors, x 100.
    average_cosine : dict of str to float
        Average cosine between sentences: shown for orientation, no ground of the advice.
    n_pairs : int
        Number of pairs.
    confidence_level : float
        Level of the intervals.
    reason : str
        Why the advice follows.
    """

    name: str
    calibrator: object
    metric: str
    scores: dict
    interval: dict
    average_cosine: dict
    n_pairs: int
    confidence_level: float

    @property
    def reason(self) -> str:
        """Why the advice follows, in words."""
        level = f"{100 * self.confidence_level:g}%"
        if self.name != "passthrough":
            low, high = self.interval[self.name]
            return (
                f"{self.name} scores best of those whose gain over the raw vectors is above zero with "
                f"{level} confidence: {self.metric} x 100 is {self.scores[self.name]:.2f}, against "
                f"{self.scores['passthrough']:.2f} (gain from {low:.2f} to {high:.2f}, {self.n_pairs} "
                "pairs). It holds for text like these pairs."
            )
        best = max(self.interval, key=lambda name: np.nan_to_num(self.scores[name], nan=-np.inf))
        low, high = self.interval[best]
        if np.isnan([self.scores["passthrough"], low, high]).any():
            return (
                "Leave the vectors as they are. Some scores are undefined, because the similarities of "
                f"all {self.n_pairs} pairs, or of all in a resample, are the same: nothing follows from that."
            )
        harmful = [name for name, (_, top) in self.interval.items() if top < 0]
        return (
            f"Leave the vectors as they are. The best candidate, {best}, changes {self.metric} x 100 from "
            f"{self.scores['passthrough']:.2f} to {self.scores[best]:.2f}, by {low:.2f} to {high:.2f} "
            f"with {level} confidence on {self.n_pairs} pairs: no gain that chance does not explain."
            + (f" Worse with the same confidence: {', '.join(harmful)}." if harmful else "")
        )

    @property
    def _title(self):
        return f"Suggestion: {self.name}\n" + textwrap.fill(self.reason, 100)

    def _table(self):
        gain = Column("gain", ("gain_low", "gain_high"))
        rows = [
            [name, score, self.interval.get(name, ""), self.average_cosine[name]]
            for name, score in self.scores.items()
        ]
        return ["calibrator", self.metric, gain, "average cosine"], rows


def _candidates(n_features):
    candidates = {"SN": StandardNormalizationCalibrator()}
    for n in (1, 6):
        if n < n_features:
            candidates[f"NATSV({n})"] = NATSVCalibrator(n_components=n)
    return {
        **candidates,
        "whitening": WhiteningCalibrator(strength=1.0),
        "whitening, auto": WhiteningCalibrator(strength="auto"),
        "flow": NormalizingFlowCalibrator(),
    }


def _without_passthrough(calibrators):
    """Return the candidates besides the raw vectors, which are always scored."""
    candidates = {name: c for name, c in calibrators.items() if not is_passthrough(c)}
    if not candidates or "passthrough" in candidates:
        raise ValueError(
            "calibrators must have an entry besides 'passthrough', and none of that name, "
            f"got {reprlib.repr(calibrators)}"
        )
    return candidates


def _seeded(calibrator, rng):
    """Return a clone whose random states, where they are None, are drawn."""
    calibrator = clone(calibrator)
    for key, value in sorted(calibrator.get_params().items(), key=lambda item: item[0]):
        if value is None and (key == "random_state" or key.endswith("__random_state")):
            calibrator.set_params(**{key: rng.randint(2**31 - 1)})
    return calibrator
