"""Advice follows from a gain that is there, and only from such a one."""

import numpy as np
import pytest
from scipy.stats import ConstantInputWarning
from sklearn.preprocessing import FunctionTransformer

from skflow.calibrators import StandardNormalizationCalibrator, WhiteningCalibrator
from skflow.inspection import suggest_calibrator
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
    assert 0 < low <= result.spearman["SN"] - result.spearman["passthrough"] <= high
    assert "gain" in result.reason
    assert f"{result.spearman['SN']:.2f}" in result.reason


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
    calibrators = {"SN": StandardNormalizationCalibrator(), "whitening": WhiteningCalibrator()}
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
    result = suggest_calibrator(lookup(Z), pairs, gold, calibrators, extra_sentences=extra, **options)
    expected = pair_cosines(StandardNormalizationCalibrator().fit(Z).transform(Z[: 2 * N]))
    from skflow.metrics import spearman_score

    assert result.spearman["SN"] == pytest.approx(100 * spearman_score(gold, expected))
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
        ({"gold": [1.0] * N}, ValueError, "gold is constant"),
        ({"gold": [1.0] * 5}, ValueError, "inconsistent numbers of samples"),
        ({"pairs": [("0", "1")] * 5, "gold": range(5)}, ValueError, "fewer than 10"),
        ({"calibrators": [WhiteningCalibrator()]}, TypeError, "must be a mapping"),
        ({"calibrators": {}}, ValueError, "must have an entry"),
        ({"confidence_level": 1}, ValueError, "confidence_level must be"),
        ({"n_resamples": 10}, ValueError, "n_resamples must be"),
    ],
)
def test_errors(rng, lookup, arguments, error, match):
    Z, pairs, gold = problem(rng)
    with pytest.raises(error, match=match):
        suggest_calibrator(**{"encoder": lookup(Z), "pairs": pairs, "gold": gold, **arguments})


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
