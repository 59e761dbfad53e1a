"""Which calibrator to take, by measurement."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_consistent_length, check_random_state

from ..calibrators import (
    NATSVCalibrator,
    NormalizingFlowCalibrator,
    StandardNormalizationCalibrator,
    WhiteningCalibrator,
)
from ..embedders._text import check_texts
from ..metrics import average_cosine, spearman_score
from ..similarity import check_pairs, pair_cosines
from ._plotting import finite_vector
from ._tables import Table


def suggest_calibrator(
    encoder: Any,
    pairs: ArrayLike,
    gold: ArrayLike,
    calibrators: Mapping[str, Any] | None = None,
    *,
    extra_sentences: Sequence[str] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 2000,
    random_state: int | np.random.RandomState | None = None,
) -> CalibratorSuggestion:
    """Measure on graded pairs whether a calibrator helps, and which.

    The advice is to calibrate only if the gain over the raw vectors is more than chance explains. On encoders
    that were tuned for similarity calibrating often hurts, and no property of unlabelled vectors tells
    beforehand: that is why graded pairs are needed. A hundred will show a large gain, a thousand a small one.

    Parameters
    ----------
    encoder : estimator
        Transformer of sentences to vectors, such as a `BertEmbedder`; a clone of it is fitted on the
        sentences.
    pairs : array-like of shape (n_pairs, 2) of str
        Sentence pairs of the kind that matters to you.
    gold : array-like of shape (n_pairs,)
        Their similarity as judged by people.
    calibrators : mapping of str to estimator, default=None
        Candidates by name. None takes standard normalization, NATSV with 1 and with 6 directions (where there
        are more features), whitening, whole and of the strength that it chooses itself, and the flow.
    extra_sentences : sequence of str, default=None
        Unlabelled text that encoder and calibrators are fitted on besides the sentences of `pairs`, such as
        the text that they will be used on: whitening and the flow want several times as many sentences as
        there are features.
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
        If lengths differ, there are fewer than 10 pairs, `gold` is constant or not finite, or an argument is
        out of range.
    TypeError
        If a sentence is not a str, or `calibrators` is no mapping.

    See Also
    --------
    skflow.evaluation.compare_calibrators : The seven STS tasks.

    Notes
    -----
    Calibrators are fitted, without labels, on the sentences of these pairs, too: the "target" setting of Li
    et al. (2020, arXiv:2011.05864). The intervals are percentile bootstrap intervals (Efron, 1979,
    doi:10.1214/aos/1176344552) of the difference of two Spearman correlations over the same resampled pairs,
    with Bonferroni's correction for the number of candidates. They cover the choice of pairs, not the seed of
    a flow, and take pairs to be independent, which those that share a sentence are not.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from skflow.calibrators import StandardNormalizationCalibrator
    >>> from skflow.datasets import load_mini_sts
    >>> from skflow.inspection import suggest_calibrator
    >>> from sklearn.decomposition import TruncatedSVD
    >>> from sklearn.pipeline import make_pipeline
    >>> encoder = make_pipeline(CountVectorizer(), TruncatedSVD(20, random_state=0))
    >>> candidates = {"SN": StandardNormalizationCalibrator()}
    >>> pairs, gold = load_mini_sts(return_X_y=True)
    >>> suggestion = suggest_calibrator(encoder, pairs, gold, candidates, n_resamples=200, random_state=0)
    >>> suggestion.name
    'SN'
    """
    first, second = check_pairs(pairs, name="pairs")
    gold = finite_vector(gold, "gold")
    check_consistent_length(first, gold)
    if len(gold) < 10:
        raise ValueError(f"pairs has {len(gold)} pairs: no advice follows from fewer than 10")
    if np.ptp(gold) == 0:
        raise ValueError(f"gold is constant ({gold[0]}): nothing correlates with it")
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be between 0 and 1, got {confidence_level!r}")
    if n_resamples < 100:
        raise ValueError(f"n_resamples must be at least 100, got {n_resamples!r}")
    rng = check_random_state(random_state)
    sentences = first + second
    if extra_sentences is not None and len(extra_sentences):
        sentences = sentences + check_texts(extra_sentences, name="extra_sentences")
    Z_fit = clone(encoder).fit_transform(sentences)
    Z = Z_fit[: 2 * len(first)]
    calibrators = _candidates(Z.shape[1]) if calibrators is None else calibrators
    if not isinstance(calibrators, Mapping):
        raise TypeError(f"calibrators must be a mapping of names to calibrators, got {calibrators!r}")
    if not calibrators or "passthrough" in calibrators:
        raise ValueError("calibrators must have an entry, and none named 'passthrough'")
    similarities, cosines = {"passthrough": pair_cosines(Z)}, {"passthrough": average_cosine(Z)}
    for name, calibrator in calibrators.items():
        calibrator = clone(calibrator)
        if calibrator.get_params().get("random_state", 0) is None:
            calibrator.set_params(random_state=rng.randint(2**31 - 1))
        calibrated = calibrator.fit(Z_fit).transform(Z)
        similarities[name], cosines[name] = pair_cosines(calibrated), average_cosine(calibrated)
    spearman = {name: 100 * spearman_score(gold, values) for name, values in similarities.items()}
    differences = _resampled_differences(gold, list(similarities.values()), n_resamples, rng)
    tail = 50 * (1 - confidence_level) / len(calibrators)
    bounds = np.percentile(differences, [tail, 100 - tail], axis=0).T.tolist()
    intervals = dict(zip(calibrators, map(tuple, bounds), strict=True))
    better = [name for name, (low, _) in intervals.items() if low > 0]
    name = max(better, key=spearman.__getitem__, default="passthrough")
    return CalibratorSuggestion(
        name=name,
        calibrator=clone(calibrators[name]) if better else "passthrough",
        spearman=spearman,
        interval=intervals,
        average_cosine=cosines,
        n_pairs=len(gold),
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
    spearman : dict of str to float
        Spearman's rho x 100 with the gold scores, of the raw vectors (``"passthrough"``) and every candidate.
    interval : dict of str to tuple of float
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
    spearman: dict
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
                f"{self.name} correlates best of those whose gain over the raw vectors is above zero with "
                f"{level} confidence: rho x 100 is {self.spearman[self.name]:.2f}, against "
                f"{self.spearman['passthrough']:.2f} (gain from {low:.2f} to {high:.2f}, {self.n_pairs} "
                "pairs). It holds for text like these pairs."
            )
        best = max(self.interval, key=lambda name: np.nan_to_num(self.spearman[name], nan=-np.inf))
        low, high = self.interval[best]
        if np.isnan([self.spearman["passthrough"], low, high]).any():
            return (
                "Leave the vectors as they are. Some correlations are undefined, because the similarities of "
                f"all {self.n_pairs} pairs, or of all in a resample, are the same: nothing follows from that."
            )
        harmful = [name for name, (_, top) in self.interval.items() if top < 0]
        return (
            f"Leave the vectors as they are. The best candidate, {best}, changes rho x 100 from "
            f"{self.spearman['passthrough']:.2f} to {self.spearman[best]:.2f}, by {low:.2f} to {high:.2f} "
            f"with {level} confidence on {self.n_pairs} pairs: no gain that chance does not explain."
            + (f" Worse with the same confidence: {', '.join(harmful)}." if harmful else "")
        )

    @property
    def _title(self):
        return f"Suggestion: {self.name}\n" + textwrap.fill(self.reason, 100)

    def _table(self):
        header = ["calibrator", "spearman x 100", "gain, low", "gain, high", "average cosine"]
        nan = (float("nan"), float("nan"))
        rows = [
            [name, rho, *self.interval.get(name, nan), self.average_cosine[name]]
            for name, rho in self.spearman.items()
        ]
        return header, rows


def _candidates(n_features):
    candidates = {"SN": StandardNormalizationCalibrator()}
    for n in (1, 6):
        if n < n_features:
            candidates[f"NATSV({n})"] = NATSVCalibrator(n_components=n)
    return {
        **candidates,
        "whitening": WhiteningCalibrator(),
        "whitening, auto": WhiteningCalibrator(strength="auto"),
        "flow": NormalizingFlowCalibrator(),
    }


def _resampled_differences(gold, similarities, n_resamples, rng):
    """Differences x 100 to the first similarity, of shape (n_resamples, n_similarities - 1)."""
    values = np.vstack([gold, *similarities])
    out = np.empty((n_resamples, len(similarities) - 1))
    for i in range(n_resamples):
        sample = values[:, rng.randint(len(gold), size=len(gold))]
        ranks = scipy.stats.rankdata(sample, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):  # a similarity that is constant has nan
            rho = np.corrcoef(ranks)[0, 1:]
        out[i] = 100 * (rho[1:] - rho[0])
    return out
