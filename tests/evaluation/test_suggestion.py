"""Advice follows from a gain that is there, and only from such a one."""

import numpy as np
import pytest
from scipy.stats import ConstantInputWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.random_projection import GaussianRandomProjection

from skflow.calibrators import StandardNormalizationCalibrator, WhiteningCalibrator
from skflow.evaluation import evaluate_pairs, suggest_calibrator
from skflow.similarity import pair_cosines

N = 300


def problem(rng, *, shift=0.0, scales=1.0):
    """Pairs of noisy vectors whose gold score is the cosine before shift and scales spoil it."""
    A = rng.standard_normal((N, 10))
    B = A + rng.uniform(0, 3, size=(N, 1)) * rng.standard_normal((N, 10))
    Z = np.vstack([A, B])
    pairs = [(str(i), str(N + i)) for i in range(N)]
    return Z * scales + shift, pairs, pair_cosines(Z)


@pytest.fixture
def calibrators():
    return {
        "SN": StandardNormalizationCalibrator(),
        "noise": FunctionTransformer(lambda Z: np.random.RandomState(0).standard_normal(Z.shape)),
    }


def test_a_gain_is_found(rng, lookup, calibrators):
    # A common offset and unequal scales are what standard normalization undoes.
    Z, pairs, gold = problem(rng, shift=20, scales=np.array([20.0] + [1.0] * 9))
    result = suggest_calibrator(lookup(Z), pairs, gold, calibrators, n_resamples=300, random_state=0)
    assert result.name == "SN"
    assert isinstance(result.calibrator, StandardNormalizationCalibrator)
    assert not hasattr(result.calibrator, "n_features_in_")
    low, high = result.interval["SN"]
    assert 0 < low <= result.scores["SN"] - result.scores["passthrough"] <= high
    assert "gain" in result.reason
    assert f"{result.scores['SN']:.2f}" in result.reason


def test_vectors_that_are_fine_are_left_alone(rng, lookup, calibrators):
    Z, pairs, gold = problem(rng)
    result = suggest_calibrator(lookup(Z), pairs, gold, calibrators, n_resamples=300, random_state=0)
    assert result.name == "passthrough"
    assert result.calibrator == "passthrough"
    assert "Leave the vectors as they are" in result.reason
    assert "Worse with the same confidence: " in result.reason
    assert "noise" in result.reason


def test_chance_is_no_ground_for_advice(lookup):
    """With gold scores that no vector knows of, advice to calibrate is rare: 5 in 100 at most."""
    calibrators = {"SN": StandardNormalizationCalibrator(), "whitening": WhiteningCalibrator(strength=1.0)}
    wrong = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        Z, pairs, _ = problem(rng, shift=1)
        result = suggest_calibrator(
            lookup(Z), pairs, rng.uniform(size=N), calibrators, n_resamples=200, random_state=0
        )
        wrong += result.name != "passthrough"
    assert wrong <= 3  # more than three of twenty has a probability under 2%


def test_calibrators_see_the_extra_sentences(rng, lookup):
    Z, pairs, gold = problem(rng)
    Z = np.vstack([Z, 1000 + rng.standard_normal((100, 10))])
    extra = [str(i) for i in range(2 * N, len(Z))]
    calibrators = {"SN": StandardNormalizationCalibrator()}
    options = {"n_resamples": 100, "random_state": 0}
    result = suggest_calibrator(lookup(Z), pairs, gold, calibrators, extra=extra, **options)
    expected = pair_cosines(StandardNormalizationCalibrator().fit(Z).transform(Z[: 2 * N]))
    from skflow.metrics import spearman_score

    assert result.scores["SN"] == pytest.approx(100 * spearman_score(gold, expected))
    assert result.n_pairs == N


def test_default_candidates_and_the_same_seed(rng, lookup):
    Z, pairs, gold = problem(rng, shift=1)
    first, second = (
        suggest_calibrator(lookup(Z), pairs, gold, n_resamples=100, random_state=3) for _ in range(2)
    )
    assert list(first.interval) == ["SN", "NATSV(1)", "NATSV(6)", "whitening", "whitening, auto", "flow"]
    assert first.interval == second.interval
    assert first.name in repr(first)
    assert list(suggest_calibrator(lookup(Z[:, :3]), pairs, gold, n_resamples=100).interval) == [
        "SN",
        "NATSV(1)",
        "whitening",
        "whitening, auto",
        "flow",
    ]


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"y": [1.0] * N}, ValueError, "y is constant"),
        ({"y": [1.0] * 5}, ValueError, "inconsistent numbers of samples"),
        ({"pairs": [("0", "1")] * 5, "y": range(5)}, ValueError, "fewer than 10"),
        ({"calibrators": WhiteningCalibrator()}, TypeError, "must be a dict or a sequence"),
        ({"calibrators": {}}, ValueError, "calibrators is empty"),
        ({"calibrators": {"raw": "passthrough"}}, ValueError, "must have an entry"),
        ({"calibrators": {"w": 3}}, TypeError, "must be a transformer"),
        ({"confidence_level": 1}, ValueError, "confidence_level == 1"),
        ({"n_resamples": 10}, ValueError, "n_resamples == 10"),
    ],
)
def test_errors(rng, lookup, arguments, error, match):
    Z, pairs, gold = problem(rng)
    with pytest.raises(error, match=match):
        suggest_calibrator(**{"encoder": lookup(Z), "pairs": pairs, "y": gold, **arguments})


def test_a_constant_similarity_is_never_advised(rng, lookup):
    Z, pairs, gold = problem(rng)
    flat = {"flat": FunctionTransformer(np.ones_like), "SN": StandardNormalizationCalibrator()}
    with pytest.warns(ConstantInputWarning):
        result = suggest_calibrator(lookup(Z), pairs, gold, flat, n_resamples=100, random_state=0)
    assert result.name == "passthrough"
    assert "best candidate, SN" in result.reason


@pytest.mark.filterwarnings("ignore::scipy.stats.ConstantInputWarning")
def test_pairs_of_equal_sentences_give_no_advice(lookup):
    encoder = lookup(np.tile(np.eye(12), (2, 1)))
    pairs = [(f"{i}", f"{12 + i}") for i in range(12)]
    result = suggest_calibrator(
        encoder, pairs, np.arange(12), {"SN": StandardNormalizationCalibrator()}, n_resamples=100
    )
    assert result.name == "passthrough"
    assert "undefined" in result.reason
    assert "nothing follows" in result.reason


def few_positive(rng):
    """60 pairs of which 8 are positive: some resamples have next to none of these."""
    y = np.repeat([1.0, 0.0], [8, 52])
    first = rng.standard_normal((60, 10))
    second = first * y[:, None] + rng.standard_normal((60, 10))
    return np.stack([first, second], axis=1), y


@pytest.mark.parametrize("metric", ["spearman", "pearson", "auc"])
def test_a_rare_resample_without_a_score_is_left_out(rng, metric):
    """A resample lacks all of 8 in 60 once in 5000; it used to make every interval nan."""
    vectors, y = few_positive(rng)
    vectors = vectors * np.array([20.0] + [1.0] * 9) + 5
    calibrators = {"SN": StandardNormalizationCalibrator(), "noise": Noise()}
    options = {"metric": metric, "n_resamples": 20_000, "random_state": 0}
    result = suggest_calibrator("passthrough", vectors, y, calibrators, **options)
    for name in calibrators:
        low, high = result.interval[name]
        assert low < result.scores[name] - result.scores["passthrough"] < high
    assert result.name == "SN"
    assert "It holds for text like these pairs" in result.reason
    assert metric in repr(result)
    assert float(evaluate_pairs("passthrough", vectors, y, metric)) == result.scores["passthrough"]


class Noise(FunctionTransformer):
    def __init__(self):
        super().__init__(lambda Z: np.random.RandomState(0).standard_normal(Z.shape))


def test_intervals_are_those_of_the_resampled_difference(rng):
    vectors, y = few_positive(rng)
    candidates = [StandardNormalizationCalibrator(), WhiteningCalibrator(3, strength=1.0)]
    options = {"n_resamples": 500, "random_state": 5}
    result = suggest_calibrator("passthrough", vectors, y, candidates, confidence_level=0.9, **options)
    assert list(result.interval) == ["StandardNormalizationCalibrator", "WhiteningCalibrator"]
    scores = [
        evaluate_pairs(encoder, vectors, y, **options).bootstrap_distribution["spearman"]["pairs"]
        for encoder in ("passthrough", *candidates)
    ]
    for of_candidate, interval in zip(scores[1:], result.interval.values(), strict=True):
        np.testing.assert_allclose(interval, np.percentile(of_candidate - scores[0], [2.5, 97.5]), atol=1e-9)


def test_raw_vectors_among_the_candidates_are_not_scored_twice(rng):
    vectors, y = few_positive(rng)
    calibrators = {"raw": "passthrough", "none": None, "SN": StandardNormalizationCalibrator()}
    result = suggest_calibrator("passthrough", vectors, y, calibrators, n_resamples=100)
    assert list(result.scores) == ["passthrough", "SN"]
    with pytest.raises(ValueError, match="none of that name"):
        suggest_calibrator("passthrough", vectors, y, {"passthrough": StandardNormalizationCalibrator()})


def test_random_states_inside_a_pipeline_are_seeded(rng):
    vectors, y = few_positive(rng)
    projection = make_pipeline(StandardNormalizationCalibrator(), GaussianRandomProjection(3))
    first, second = (
        suggest_calibrator("passthrough", vectors, y, {"p": projection}, n_resamples=100, random_state=1)
        for _ in range(2)
    )
    assert first.scores == second.scores


@pytest.mark.parametrize(
    ("y", "match"), [(np.arange(60), "needs y of booleans"), (["a", "b"] * 30, "needs y of booleans")]
)
def test_auc_needs_two_classes(rng, y, match):
    with pytest.raises(ValueError, match=match):
        suggest_calibrator("passthrough", few_positive(rng)[0], y, metric="auc")
    with pytest.raises(ValueError, match="metric must be one of"):
        suggest_calibrator("passthrough", few_positive(rng)[0], y, metric="f1")


def test_frame(rng):
    pytest.importorskip("pandas")
    vectors, y = few_positive(rng)
    calibrators = {"SN": StandardNormalizationCalibrator()}
    result = suggest_calibrator("passthrough", vectors, y, calibrators, n_resamples=100)
    frame = result.to_frame()
    assert frame.columns.tolist() == ["spearman", "gain_low", "gain_high", "average cosine"]
    assert tuple(frame.loc["SN", ["gain_low", "gain_high"]]) == result.interval["SN"]
    assert frame.loc["passthrough", ["gain_low", "gain_high"]].isna().all()
    assert result.scores == frame["spearman"].to_dict()
