"""Pairs of vectors are taken wherever pairs of texts are; encoders need no more than fit and transform."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.metrics.pairwise import paired_cosine_distances
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import skflow._pairs
from skflow import CosineSimilarityClassifier, CosineSimilarityRegressor
from skflow.calibrators import NATSVCalibrator, StandardNormalizationCalibrator
from skflow.evaluation import compare_calibrators, evaluate_pairs, evaluate_sts, suggest_calibrator
from skflow.similarity import check_pairs, encode_pairs

from ._sts_files import write_senteval

PAIRS = [("a cat", "a cat"), ("the cat sleeps", "the dog sleeps"), ("a cat", "no dog"), ("rain", "the rain")]
FIRST, SECOND = map(list, zip(*PAIRS, strict=True))


@pytest.fixture
def vectors():
    rng = np.random.default_rng(0)
    first = rng.normal(size=(60, 6))
    return np.stack([first, first + rng.normal(size=(60, 6))], axis=1) * [9, 1, 1, 1, 1, 1] + 3


@pytest.fixture
def y():
    return np.random.default_rng(1).uniform(size=60)


def rows(vectors):
    return np.concatenate([vectors[:, 0], vectors[:, 1]])


# Texts


def test_dicts_with_two_keys_are_pairs():
    dicts = [{"sentence1": a, "sentence2": b} for a, b in PAIRS]
    dicts[1] = {"sentence2": SECOND[1], "sentence1": FIRST[1]}  # the order of keys does not matter
    assert check_pairs(dicts) == (FIRST, SECOND)
    y = [5, 3, 0, 4]
    model = CosineSimilarityRegressor(CountVectorizer())
    assert_array_equal(model.fit(dicts).predict(dicts), model.fit(PAIRS).predict(PAIRS))
    assert evaluate_pairs(CountVectorizer(), dicts, y) == evaluate_pairs(CountVectorizer(), PAIRS, y)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("names", [["left", "right"], ["0", "1"]])
def test_frames_with_two_columns_are_pairs(library, names):
    frame = pytest.importorskip(library).DataFrame(dict(zip(names, (FIRST, SECOND), strict=True)))
    assert check_pairs(frame) == (FIRST, SECOND)
    y = [5, 3, 0, 4]
    assert evaluate_pairs(CountVectorizer(), frame, y) == evaluate_pairs(CountVectorizer(), PAIRS, y)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([{"a": "x", "b": "y"}, {"a": "x", "c": "y"}], r"X\[1\] is .*; expected a dict with two keys"),
        ([{"a": "x", "b": "y"}, ("x", "y")], r"X\[1\] is .*; expected a dict with two keys"),
        ([("x", "y"), {"a": "x", "b": "y"}], r"X\[1\] is .*; expected a pair"),
        ([{"a": "x", "b": "y", "label": "z"}], r"X\[0\] is .*; expected a dict with two keys"),
        ([{"a": "x"}], r"X\[0\] is .*; expected a dict with two keys"),
        ([{"x", "y"}], r"X\[0\] is .*; expected a pair"),
        ([{"a": "x", "b": None}], r"X\[:, 1\]\[0\] is missing"),
        (
            np.ones((3, 4)),
            r"X has shape \(3, 4\); expected an \(n_pairs, 2\) array.* of vectors, an \(n_pairs, 2, n_f",
        ),
        (
            np.ones((3, 4, 2)),
            r"X has shape \(3, 4, 2\) and dtype float64; expected an \(n_pairs, 2, n_features\)",
        ),
        (np.full((3, 2, 1), "x"), r"dtype <U1; expected an \(n_pairs, 2, n_features\) array of numbers"),
        (np.ones((3, 2, 2), dtype=complex), "dtype complex128"),
        (np.ones((0, 2, 4)), r"found 0 sample\(s\)"),
        (np.full((3, 2, 4), np.nan), "X contains NaN"),
        ([([1.0, 2.0], [1.0])], "missing or differ in length"),
        ([([1.0, 2.0], [1.0, 2.0]), ([1.0, 2.0], None)], "missing or differ in length"),
    ],
)
def test_what_is_no_pair(X, message):
    with pytest.raises(ValueError, match=message):
        CosineSimilarityRegressor("passthrough").fit(X)
    with pytest.raises(ValueError, match=message.replace("X", "pairs", 1)):
        evaluate_pairs("passthrough", X, np.arange(len(X)))


def test_texts_alone_where_texts_are_asked_for():
    with pytest.raises(ValueError, match=r"pairs has shape \(3, 2, 4\); expected an \(n_pairs, 2\) array"):
        check_pairs(np.ones((3, 2, 4)), name="pairs")


# Vectors


def test_passthrough_leaves_vectors_as_they_are(vectors, y):
    expected = 1 - paired_cosine_distances(vectors[:, 0], vectors[:, 1])
    model = CosineSimilarityRegressor("passthrough").fit(vectors, y)
    assert_allclose(model.predict(vectors), expected, atol=1e-12)
    assert model.encoder_ == "passthrough"
    assert model.n_features_in_ == 2
    assert_allclose(float(evaluate_pairs("passthrough", vectors, y)), 100 * model.score(vectors, y))
    assert_array_equal(encode_pairs("passthrough", vectors[:, 0], vectors[:, 1]), rows(vectors))
    for fit_on in (None, vectors[:9, 0], "target"):
        assert evaluate_pairs("passthrough", vectors, y, fit_on=fit_on) == evaluate_pairs(
            "passthrough", vectors, y
        )


def test_a_calibrator_is_fitted_on_first_then_second_then_extra_vectors(vectors):
    seen = []
    spy = FunctionTransformer(lambda X: seen.append(X) or X)
    extra = vectors[:7, 0] + 1
    calibrator = make_pipeline(spy, StandardNormalizationCalibrator())
    fitted = CosineSimilarityRegressor(calibrator, extra=extra).fit(vectors)
    assert_array_equal(seen[0], np.concatenate([rows(vectors), extra]))
    Z = StandardScaler().fit(seen[0]).transform(rows(vectors))
    assert_allclose(fitted.predict(vectors), 1 - paired_cosine_distances(Z[:60], Z[60:]), atol=1e-10)


@pytest.mark.parametrize(
    "kind",
    ["list of pairs", "list of arrays", "list of dicts", "tensor", "list of tensors", "pandas", "polars"],
)
def test_vectors_of_every_kind(vectors, kind):
    vectors = vectors[:5]
    a, b = vectors[:, 0], vectors[:, 1]
    if kind == "list of pairs":
        X = [(first.tolist(), second) for first, second in zip(a, b, strict=True)]
    elif kind == "list of arrays":
        X = list(vectors)
    elif kind == "list of dicts":
        X = [{"a": first, "b": second.tolist()} for first, second in zip(a, b, strict=True)]
    elif kind == "tensor":
        X = pytest.importorskip("torch").tensor(vectors, requires_grad=True)
    elif kind == "list of tensors":
        X = list(pytest.importorskip("torch").tensor(vectors))
    else:
        X = pytest.importorskip(kind).DataFrame({"a": a.tolist(), "b": b.tolist()})
    first, second = check_pairs(X, accept_vectors=True)
    assert_array_equal(first, a)
    assert_array_equal(second, b)
    model = CosineSimilarityRegressor("passthrough")
    assert_array_equal(model.fit(X).predict(X), model.fit(vectors).predict(vectors))


def test_memory_maps_stay_on_disk_and_are_predicted_in_chunks(tmp_path, vectors, monkeypatch):
    np.save(tmp_path / "pairs.npy", vectors)
    X = np.load(tmp_path / "pairs.npy", mmap_mode="r")
    first, _ = check_pairs(X, accept_vectors=True)
    assert np.shares_memory(first, X)
    sizes = []
    calibrator = FunctionTransformer(lambda Z: sizes.append(len(Z)) or Z)
    model = CosineSimilarityRegressor(calibrator).fit(X)
    sizes.clear()
    whole = model.predict(X)
    assert sizes == [120]
    monkeypatch.setattr(skflow._pairs, "_CHUNK", 25 * 6)
    sizes.clear()
    assert_array_equal(model.predict(X), whole)
    assert sizes == [50, 50, 20]


def test_float16(vectors, y):
    for encoder in ("passthrough", StandardNormalizationCalibrator(), PCA(3)):
        half = CosineSimilarityRegressor(encoder).fit(vectors.astype(np.float16))
        whole = CosineSimilarityRegressor(encoder).fit(vectors)
        assert_allclose(half.predict(vectors.astype(np.float16)), whole.predict(vectors), atol=0.01)
    large = np.full((3, 2, 4096), 6e4, dtype=np.float16)  # whose sum is beyond float16
    assert_allclose(CosineSimilarityRegressor("passthrough").fit(large).predict(large), 1)


def test_folds_are_sliced_as_scikit_learn_slices(vectors, y):
    calibrators = ["passthrough", StandardNormalizationCalibrator(), NATSVCalibrator()]
    search = GridSearchCV(CosineSimilarityRegressor("passthrough"), {"encoder": calibrators}, cv=3).fit(
        vectors, y
    )
    folds = KFold(3)
    found = cross_validate(
        CosineSimilarityRegressor(StandardNormalizationCalibrator()),
        vectors,
        y,
        cv=folds,
        return_estimator=True,
    )
    for fitted, (train, _) in zip(found["estimator"], folds.split(vectors), strict=True):
        assert_allclose(fitted.encoder_.mean_, rows(vectors[train]).mean(axis=0))
    assert_allclose(search.cv_results_["mean_test_score"][1], found["test_score"].mean())


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (np.ones((3, 5)), "extra has 5 features, the vectors of the pairs have 6"),
        (np.ones(3), "Expected 2D array"),
        (["a text"], "Expected 2D array|dtype='numeric'"),
        (np.full((3, 6), np.inf), "extra contains infinity"),
    ],
)
def test_extra_vectors_that_do_not_fit(vectors, extra, message):
    with pytest.raises(ValueError, match=message):
        CosineSimilarityRegressor("passthrough", extra=extra).fit(vectors)
    with pytest.raises(ValueError, match=message):
        suggest_calibrator("passthrough", vectors, range(60), extra=extra)
    with pytest.raises(ValueError, match=message.replace("extra", "fit_on")):
        evaluate_pairs(StandardScaler(), vectors, range(60), fit_on=extra)


def test_passthrough_is_no_encoder_of_texts(tmp_path):
    message = "encoder='passthrough' is for pairs of vectors, got pairs of texts"
    for call in (
        lambda: CosineSimilarityRegressor("passthrough").fit(PAIRS),
        lambda: CosineSimilarityClassifier("passthrough").fit(PAIRS, [1, 0, 0, 1]),
        lambda: evaluate_pairs("passthrough", PAIRS, range(4)),
        lambda: evaluate_pairs("passthrough", PAIRS, range(4), fit_on=None),
        lambda: evaluate_pairs("passthrough", PAIRS, range(4), fit_on=["a"]),
        lambda: suggest_calibrator("passthrough", PAIRS * 3, range(12)),
        lambda: evaluate_sts("passthrough", "stsb", data_home=write_senteval(tmp_path, n=12)),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_nothing_of_sentence_transformers_is_imported_on_the_way_of_vectors(tmp_path):
    code = """
import sys
import numpy as np
from sklearn.model_selection import GridSearchCV
from skflow import CosineSimilarityRegressor, NATSVCalibrator, WhiteningCalibrator
from skflow.evaluation import evaluate_pairs, suggest_calibrator
np.save(sys.argv[1], np.random.default_rng(0).normal(size=(40, 2, 4)).astype(np.float16))
pairs, y = np.load(sys.argv[1], mmap_mode="r"), np.arange(40)
calibrators = ["passthrough", WhiteningCalibrator(strength=1.0), NATSVCalibrator()]
search = GridSearchCV(CosineSimilarityRegressor("passthrough"), {"encoder": calibrators}, cv=2).fit(pairs, y)
search.predict(pairs)
evaluate_pairs(calibrators[1], pairs, y)
repr(suggest_calibrator("passthrough", pairs, y, {"NATSV": calibrators[2]}, random_state=0))
print([name for name in ("sentence_transformers", "transformers", "torch") if name in sys.modules])
"""
    command = [sys.executable, "-W", "error", "-c", code, str(tmp_path / "pairs.npy")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[]"


# Encoders


class Bare(BaseEstimator):
    """A transformer without fit_transform whose fit requires y, as scikit-learn's FrozenEstimator is."""

    def fit(self, X, y):
        assert y is None
        self.fitted_ = len(X)
        return self

    def transform(self, X):
        return np.array([[len(text), text.count("a") + 1] for text in X], dtype=float)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return write_senteval(tmp_path_factory.mktemp("data"), n=12)


@pytest.mark.parametrize(
    "encoder", [FrozenEstimator(Bare().fit(FIRST, None)), Bare()], ids=["frozen", "bare"]
)
def test_frozen_encoders_and_calibrators(home, encoder):
    plain = FunctionTransformer(Bare().transform)
    texts, y = PAIRS * 5, np.arange(20)
    assert_array_equal(
        CosineSimilarityRegressor(encoder).fit(texts, y).predict(texts),
        CosineSimilarityRegressor(plain).fit(texts, y).predict(texts),
    )
    labels = np.array([1, 0, 0, 1] * 5)
    CosineSimilarityClassifier(encoder, threshold=0.5).fit(texts, labels).predict(texts)
    for fit_on in ("target", ["a text", "b"], None):
        assert evaluate_pairs(encoder, texts, y, fit_on=fit_on) == evaluate_pairs(
            plain, texts, y, fit_on=fit_on
        )
        found, expected = (
            evaluate_sts(e, "stsb", data_home=home, fit_on=fit_on, n_resamples=0) for e in (encoder, plain)
        )
        assert found == expected
    frozen = {"raw": "passthrough", "frozen": FrozenEstimator(StandardScaler().fit(Bare().transform(FIRST)))}
    comparison = compare_calibrators(encoder, frozen, "stsb", data_home=home, verbose=0)
    assert comparison["raw"] == expected
    assert suggest_calibrator(encoder, texts, y, frozen, n_resamples=100).scores[
        "passthrough"
    ] == pytest.approx(float(evaluate_pairs(plain, texts, y)))


def test_encode_pairs_needs_one_vector_for_each_sentence():
    drops = FunctionTransformer(lambda texts: np.ones((len(texts) - 1, 2)))
    with pytest.raises(ValueError, match="returned 7 vectors for 8 sentences"):
        encode_pairs(drops, FIRST, SECOND)
    with pytest.raises(ValueError, match="returned 7 vectors for 8 sentences"):
        CosineSimilarityRegressor(drops).fit(PAIRS).predict(PAIRS)
