import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin, clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.metrics.pairwise import paired_cosine_distances
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import (
    check_do_not_raise_errors_in_init_or_set_params,
    check_estimator_cloneable,
    check_estimator_repr,
    check_estimator_tags_renamed,
    check_get_params_invariance,
    check_mixin_order,
    check_no_attributes_set_in_init,
    check_parameters_default_constructible,
    check_set_params,
    check_valid_tag_types,
)

from skflow.calibrators import NATSVCalibrator, StandardNormalizationCalibrator, WhiteningCalibrator
from skflow.datasets import load_mini_sts
from skflow.metrics import auc_scorer, pearson_scorer, spearman_scorer
from skflow.similarity import (
    CosineSimilarityClassifier,
    CosineSimilarityRegressor,
    _best_threshold,
    pair_cosines,
)

PAIRS = [("a cat", "a cat"), ("the cat sleeps", "the dog sleeps"), ("a cat", "no dog"), ("rain", "the rain")]
GOLD = [5.0, 3.0, 0.0, 4.0]


class Recorder(TransformerMixin, BaseEstimator):
    """Remember what was fitted and transformed; the vector of a text counts its letters a, b and c."""

    def fit(self, X, y=None):
        self.seen_ = list(X)
        self.y_ = y
        self.transformed_ = []
        return self

    def transform(self, X):
        self.transformed_.append(list(X))
        return np.array([[text.count(letter) for letter in "abc"] for text in X], dtype=float)


def to_dense(X):
    return X.toarray().astype(np.float32)


def letters(**parameters):
    """Return a text encoder without fitted state, and quick: hashed character n-grams."""
    return make_pipeline(
        HashingVectorizer(analyzer="char_wb", ngram_range=(2, 3), n_features=64, **parameters),
        FunctionTransformer(to_dense),
    )


def calibrated(calibrator="passthrough"):
    return Pipeline([("embed", letters()), ("calibrate", calibrator)])


@pytest.fixture(scope="module")
def mini():
    data = load_mini_sts(subset="hard")
    return data.pairs[:120], data.score[:120]


# Fit


def test_fit_sees_both_sentences_of_every_pair_with_duplicates_and_extra():
    extra = ["more", "a cat"]
    encoder = Recorder()
    model = CosineSimilarityRegressor(encoder, extra=extra).fit(PAIRS, GOLD)
    assert model.encoder_.seen_ == [a for a, _ in PAIRS] + [b for _, b in PAIRS] + extra
    assert model.encoder_.y_ is None
    assert model.encoder_ is not encoder
    assert not hasattr(encoder, "seen_")
    assert CosineSimilarityRegressor(Recorder()).fit(PAIRS).encoder_.seen_ == model.encoder_.seen_[:-2]
    assert CosineSimilarityRegressor(Recorder(), extra=[]).fit(PAIRS).encoder_.seen_[-1] == "the rain"
    assert model.fit(PAIRS[:1]) is model
    assert model.encoder_.seen_ == ["a cat", "a cat", *extra]


def test_cross_validation_fits_on_the_training_fold_and_all_extra():
    pairs = np.array([(f"first {i}", f"second {i}") for i in range(9)])
    model = CosineSimilarityRegressor(Recorder(), extra=tuple(f"extra {i}" for i in range(20)))
    folds = KFold(3, shuffle=True, random_state=0)
    found = cross_validate(
        model, pairs, np.arange(9), cv=folds, return_estimator=True, scoring=lambda *_: 0.0
    )
    for (train, _), fitted in zip(folds.split(pairs), found["estimator"], strict=True):
        own = [*pairs[train, 0], *pairs[train, 1]]
        assert fitted.encoder_.seen_ == own + [f"extra {i}" for i in range(20)]


# Predict


def test_predict_is_the_cosine_of_each_pair():
    model = CosineSimilarityRegressor(Recorder()).fit(PAIRS)
    # Counts of a, b, c: (1,0,0)-(0,1,0), (1,1,0)-(1,0,0), (2,1,1)-(2,1,1), (0,0,3)-(0,4,3).
    pairs = [("a", "b"), ("ab", "a"), ("aabc", "cbaa"), ("ccc", "bbbbccc")]
    assert_allclose(model.predict(pairs), [0, 2**-0.5, 1, 0.6])
    assert model.predict(pairs)[2] == 1
    assert model.predict(pairs).dtype == np.float64


def test_predict_asks_for_all_vectors_at_once():
    model = CosineSimilarityRegressor(Recorder()).fit(PAIRS)
    model.predict(PAIRS)
    assert model.encoder_.transformed_ == [[a for a, _ in PAIRS] + [b for _, b in PAIRS]]


def test_zero_vectors_have_similarity_zero():
    model = CosineSimilarityRegressor(Recorder()).fit(PAIRS)
    assert model.predict([("x", "a"), ("x", "y"), ("a", "x")]).tolist() == [0, 0, 0]


def test_cosines_of_tensors():
    torch = pytest.importorskip("torch")
    Z = torch.tensor([[1.0, 0], [1, 1], [0, 2], [2, 2]], dtype=torch.bfloat16, requires_grad=True)
    np.testing.assert_array_equal(pair_cosines(Z), [0, 1])  # (1, 0) with (0, 2), (1, 1) with (2, 2)
    np.testing.assert_array_equal(pair_cosines(list(Z)), [0, 1])


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e300])
def test_length_does_not_matter(scale):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(10, 5))
    expected = [1 - scipy.spatial.distance.cosine(a, b) for a, b in zip(Z[:5], Z[5:], strict=True)]
    assert_allclose(pair_cosines(Z * scale), expected, rtol=1e-12, atol=1e-15)
    assert_allclose(pair_cosines(scipy.sparse.csr_matrix(Z * scale)), expected, rtol=1e-12, atol=1e-15)


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=20))
def test_a_vector_is_exactly_as_similar_to_itself_as_can_be(values):
    expected = [1.0 if any(values) else 0.0]
    assert pair_cosines(np.array([values, values])).tolist() == expected
    assert pair_cosines(np.array([values, values], dtype=np.float32)).tolist() == expected
    assert pair_cosines(scipy.sparse.csr_matrix([values, values])).tolist() == expected


@pytest.mark.parametrize("output", ["sparse", "dense", "pandas", "float16", "list"])
def test_what_encoders_return(output):
    convert = {
        "sparse": lambda X: X,
        "dense": lambda X: X.toarray(),
        "pandas": lambda X: pytest.importorskip("pandas").DataFrame(X.toarray()),
        "float16": lambda X: X.toarray().astype(np.float16),
        "list": lambda X: X.toarray().tolist(),
    }[output]
    encoder = make_pipeline(TfidfVectorizer(), FunctionTransformer(convert))
    expected = CosineSimilarityRegressor(TfidfVectorizer()).fit(PAIRS).predict(PAIRS)
    tolerance = 1e-3 if output == "float16" else 1e-12
    assert_allclose(CosineSimilarityRegressor(encoder).fit(PAIRS).predict(PAIRS), expected, atol=tolerance)


def test_vectors_that_are_not_finite_are_an_error():
    encoder = make_pipeline(TfidfVectorizer(), FunctionTransformer(lambda X: X.toarray() * np.nan))
    with pytest.raises(ValueError, match="the encoder's output contains NaN"):
        CosineSimilarityRegressor(encoder).fit(PAIRS).predict(PAIRS)


# Score


def test_score_is_spearmans_rho():
    model = CosineSimilarityRegressor(TfidfVectorizer()).fit(PAIRS)
    gold = [4.0, 1.0, 0.5, 5.0]
    assert model.score(PAIRS, gold) == scipy.stats.spearmanr(gold, model.predict(PAIRS))[0] != 1
    assert spearman_scorer(model, PAIRS, gold) == model.score(PAIRS, gold)
    assert_allclose(
        pearson_scorer(model, PAIRS, gold), scipy.stats.pearsonr(gold, model.predict(PAIRS))[0], rtol=1e-12
    )


def test_constant_predictions_score_nan_and_leave_a_grid_search_standing():
    model = CosineSimilarityRegressor(Recorder()).fit(PAIRS)
    with pytest.warns(scipy.stats.ConstantInputWarning):
        assert np.isnan(model.score([("a", "a"), ("b", "b")], [1, 2]))
    constant = FunctionTransformer(np.ones_like)
    search = GridSearchCV(
        CosineSimilarityRegressor(calibrated()), {"encoder__calibrate": [constant, "passthrough"]}, cv=2
    )
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # scipy says that the input is constant, scikit-learn that a score is nan
        search.fit(PAIRS * 3, GOLD * 3)
    assert search.best_params_ == {"encoder__calibrate": "passthrough"}
    assert np.isnan(search.cv_results_["mean_test_score"][0])


@pytest.mark.parametrize(
    ("y", "error"), [(GOLD[:3], "inconsistent"), ([1, 2, 3, np.nan], r"y\[3\] is nan"), (None, "y=None")]
)
def test_gold_scores_that_do_not_fit(y, error):
    model = CosineSimilarityRegressor(TfidfVectorizer()).fit(PAIRS)
    with pytest.raises((ValueError, TypeError), match=error):
        model.score(PAIRS, y)


# Kinds of pairs


def kinds():
    yield "tuples", PAIRS
    yield "tuple of lists", tuple(list(pair) for pair in PAIRS)
    yield "str array", np.array(PAIRS)
    yield "object array", np.array(PAIRS, dtype=object)
    yield "list of arrays", list(np.array(PAIRS))


@pytest.mark.parametrize("X", [pytest.param(X, id=name) for name, X in kinds()])
def test_pairs_of_every_kind(X):
    model = CosineSimilarityRegressor(Recorder()).fit(X)
    assert model.encoder_.seen_ == [a for a, _ in PAIRS] + [b for _, b in PAIRS]
    assert all(type(text) is str for text in model.encoder_.seen_)
    assert model.n_features_in_ == 2
    assert not hasattr(model, "feature_names_in_")
    assert_array_equal(model.predict(X), model.predict(PAIRS))


@pytest.mark.parametrize("dtype", [object, "str", "string", "category"])
def test_pandas(dtype):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(PAIRS, columns=["left", "right"], index=[7, 7, 1, 0]).astype(dtype)
    model = CosineSimilarityRegressor(Recorder()).fit(frame)
    assert model.encoder_.seen_ == [a for a, _ in PAIRS] + [b for _, b in PAIRS]
    assert model.feature_names_in_.tolist() == ["left", "right"]
    assert model.n_features_in_ == 2
    assert_array_equal(model.predict(frame), CosineSimilarityRegressor(Recorder()).fit(PAIRS).predict(PAIRS))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"left": "other"}))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["right", "left"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(PAIRS)
    frame.iloc[2, 1] = None
    with pytest.raises(ValueError, match=r"X\[:, 1\]\[2\] is missing"):
        model.predict(frame)


def test_polars():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(PAIRS, schema=["left", "right"], orient="row")
    model = CosineSimilarityRegressor(Recorder()).fit(frame)
    assert model.encoder_.seen_ == [a for a, _ in PAIRS] + [b for _, b in PAIRS]
    assert model.feature_names_in_.tolist() == ["left", "right"]
    frame = pl.DataFrame({"left": ["a", "b"], "right": ["c", None]})
    with pytest.raises(ValueError, match=r"X\[:, 1\]\[1\] is missing"):
        model.predict(frame)


@pytest.mark.parametrize(
    ("X", "kind", "message"),
    [
        ([("a", "b"), ("a", None)], ValueError, r"X\[:, 1\]\[1\] is missing \(None\)"),
        ([("a", "b"), (np.nan, "b")], ValueError, r"X\[:, 0\]\[1\] is missing \(nan\)"),
        ([("a", "b"), ("a", 3)], TypeError, r"X\[:, 1\]\[1\] is of type int \(3\)"),
        ([("a", b"b")], TypeError, r"X\[:, 1\]\[0\] is of type bytes"),
        ([("a", ["b"])], TypeError, r"X\[:, 1\]\[0\] is of type list"),
        ([("a", "b"), ("a", "b", "c")], ValueError, r"X\[1\] is \('a', 'b', 'c'\); expected a pair"),
        (["ab", "cd"], ValueError, r"X\[0\] is 'ab'; expected a pair"),
        (["one", "two"], ValueError, r"X\[0\] is 'one'"),
        ([None], ValueError, r"X\[0\] is None"),
        ([], ValueError, r"X is empty: found 0 sample\(s\)"),
        (np.empty((0, 2), dtype=object), ValueError, r"X is empty: found 0 sample\(s\)"),
        (np.array(["a", "b"]), ValueError, r"X has shape \(2,\)"),
        (np.array([["a", "b", "c"]]), ValueError, r"X has shape \(1, 3\)"),
        (np.ones((3, 2)), TypeError, r"X\[:, 0\]\[0\] is of type float"),
        (scipy.sparse.eye(2), ValueError, r"X has shape"),
        ("ab", TypeError, "X is a str"),
        (3, TypeError, "X is a int"),
        (None, TypeError, "X is a NoneType"),
    ],
)
def test_what_is_no_pair_of_texts_is_an_error(X, kind, message):
    model = CosineSimilarityRegressor(Recorder())
    with pytest.raises(kind, match=message):
        model.fit(X)
    model.fit(PAIRS)
    with pytest.raises(kind, match=message):
        model.predict(X)


def test_long_values_are_cut_in_messages():
    with pytest.raises(ValueError, match=r"^.{,250}$"):
        CosineSimilarityRegressor(Recorder()).fit(["x" * 10_000])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"encoder": "bert"}, "'encoder' parameter"),
        ({"encoder": None}, "'encoder' parameter"),
        ({"encoder": Recorder(), "extra": 3}, "'extra' parameter"),
        ({"encoder": Recorder(), "extra": "text"}, "'extra' parameter"),
        ({"encoder": Recorder(), "extra": ["a", None]}, r"extra\[1\] is missing"),
    ],
)
def test_bad_parameters_are_found_in_fit(parameters, message):
    model = CosineSimilarityRegressor(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(PAIRS)


# The estimator's manners


@pytest.mark.parametrize(
    "check",
    [
        check_do_not_raise_errors_in_init_or_set_params,
        check_estimator_cloneable,
        check_estimator_repr,
        check_estimator_tags_renamed,
        check_get_params_invariance,
        check_mixin_order,
        check_no_attributes_set_in_init,
        check_parameters_default_constructible,
        check_set_params,
        check_valid_tag_types,
    ],
)
def test_general_checks_of_scikit_learn(check):
    check("CosineSimilarityRegressor", CosineSimilarityRegressor(letters()))


def test_not_fitted():
    model = CosineSimilarityRegressor(Recorder())
    with pytest.raises(NotFittedError):
        model.predict(PAIRS)
    with pytest.raises(NotFittedError):
        model.score(PAIRS, GOLD)


def test_tags():
    tags = get_tags(CosineSimilarityRegressor(letters()))
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array
    assert not tags.target_tags.required
    assert is_regressor(CosineSimilarityRegressor(letters()))


def test_nested_parameters_and_clone():
    model = CosineSimilarityRegressor(calibrated(NATSVCalibrator(2)), extra=["a"])
    assert model.get_params()["encoder__calibrate__n_components"] == 2
    model.set_params(encoder__calibrate__n_components=3)
    assert model.encoder["calibrate"].n_components == 3
    copy = clone(model.set_params(encoder__calibrate="passthrough"))
    assert copy.encoder["calibrate"] == "passthrough"
    assert copy.encoder is not model.encoder
    assert copy.extra == ["a"]


def test_pickle(mini):
    pairs, gold = mini
    model = CosineSimilarityRegressor(calibrated(WhiteningCalibrator(8))).fit(pairs, gold)
    loaded = pickle.loads(pickle.dumps(model))
    assert_array_equal(loaded.predict(pairs), model.predict(pairs))
    # No text that it was fitted on is kept.
    assert pairs[0, 0].encode() not in pickle.dumps(model)


def test_a_pickle_of_another_version_is_loaded_with_a_warning(monkeypatch):
    model = CosineSimilarityRegressor(TfidfVectorizer()).fit(PAIRS)
    monkeypatch.setattr("skflow._persistence._stamps.__version__", "0.0.1")
    saved = pickle.dumps(model)
    monkeypatch.undo()
    with pytest.warns(
        InconsistentVersionWarning, match=r"CosineSimilarityRegressor was saved by skflow 0\.0\.1"
    ):
        loaded = pickle.loads(saved)
    assert_array_equal(loaded.predict(PAIRS), model.predict(PAIRS))


def test_refitting_gives_the_same(mini):
    pairs, _ = mini
    model = CosineSimilarityRegressor(calibrated(WhiteningCalibrator()))
    first = model.fit(pairs).predict(pairs)
    assert_array_equal(model.fit(pairs[:9]).fit(pairs).predict(pairs), first)


# Model selection

GRID = {
    "encoder__calibrate": [
        "passthrough",
        StandardNormalizationCalibrator(),
        NATSVCalibrator(2),
        make_pipeline(StandardNormalizationCalibrator(), NATSVCalibrator(2)),
        WhiteningCalibrator(8),
        PCA(4),
    ]
}


def by_hand(calibrator, pairs, gold, folds):
    scores = []
    for train, test in folds.split(pairs):
        embed = letters().fit(pairs[:, 0])
        train_vectors = embed.transform(np.concatenate([pairs[train, 0], pairs[train, 1]]))
        calibrate = clone(calibrator).fit(train_vectors)
        a, b = (calibrate.transform(embed.transform(pairs[test, side])) for side in (0, 1))
        cosines = np.sum(a * b, axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        scores.append(scipy.stats.spearmanr(gold[test], cosines)[0])
    return scores


def test_grid_search_gives_what_a_loop_by_hand_gives(mini):
    pairs, gold = mini
    folds = KFold(3)
    search = GridSearchCV(CosineSimilarityRegressor(calibrated()), GRID, cv=folds).fit(pairs, gold)
    for row, calibrator in enumerate(GRID["encoder__calibrate"]):
        if calibrator != "passthrough":
            found = [search.cv_results_[f"split{fold}_test_score"][row] for fold in range(3)]
            assert_allclose(found, by_hand(calibrator, pairs, gold, folds), atol=1e-4)
    assert_allclose(search.best_score_, np.max(search.cv_results_["mean_test_score"]))
    assert search.best_estimator_.encoder_["embed"] is not None
    assert search.predict(pairs).shape == (120,)
    assert search.score(pairs, gold) == search.best_estimator_.score(pairs, gold)


def test_grid_search_with_two_processes_gives_the_same(mini):
    pairs, gold = mini
    grid = {"encoder__calibrate": ["passthrough", WhiteningCalibrator(8)]}
    alone, together = (
        GridSearchCV(CosineSimilarityRegressor(calibrated()), grid, cv=2, n_jobs=n_jobs).fit(pairs, gold)
        for n_jobs in (None, 2)
    )
    for key in ("split0_test_score", "split1_test_score"):
        assert_allclose(together.cv_results_[key], alone.cv_results_[key], atol=1e-5)
    assert_allclose(together.predict(pairs), alone.predict(pairs), atol=1e-4)


@pytest.mark.parametrize("kind", ["list", "pandas"])
def test_searches_over_parameters_of_calibrators(mini, kind):
    pairs, gold = mini
    if kind == "list":
        pairs = [tuple(pair) for pair in pairs.tolist()]
    else:
        pairs = pytest.importorskip("pandas").DataFrame(pairs, columns=["a", "b"])
    model = CosineSimilarityRegressor(calibrated(WhiteningCalibrator()))
    parameters = {
        "encoder__calibrate__n_components": [2, 8, 16],
        "encoder__calibrate__strength": [0.0, 0.5, 1.0],
    }
    randomized = RandomizedSearchCV(model, parameters, n_iter=4, cv=2, random_state=0).fit(pairs, gold)
    assert len(randomized.cv_results_["params"]) == 4
    halving = HalvingGridSearchCV(model, parameters, cv=2, min_resources=40, factor=3, random_state=0)
    halving.fit(pairs, gold)
    assert halving.n_resources_[:2] == [40, 120]
    for search in (randomized, halving):
        assert set(search.best_params_) == set(parameters)
        assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
        assert np.isfinite(search.score(pairs, gold))


def test_cross_validation_and_curves(mini):
    pairs, gold = mini
    model = CosineSimilarityRegressor(calibrated(StandardNormalizationCalibrator()))
    rho = cross_val_score(model, pairs, gold, cv=3)
    both = cross_validate(
        model, pairs, gold, cv=3, scoring={"spearman": spearman_scorer, "pearson": pearson_scorer}
    )
    assert_array_equal(both["test_spearman"], rho)
    assert not np.array_equal(both["test_pearson"], rho)
    assert cross_val_predict(model, pairs, gold, cv=3).shape == gold.shape
    sizes, _, test = learning_curve(model, pairs, gold, cv=3, train_sizes=[0.2, 1.0])
    assert sizes.tolist() == [16, 80]
    assert_allclose(test[-1], rho, atol=1e-6)
    whitening = CosineSimilarityRegressor(calibrated(WhiteningCalibrator()))
    _, test = validation_curve(
        whitening, pairs, gold, param_name="encoder__calibrate__n_components", param_range=[2, 8], cv=2
    )
    assert np.all(np.isfinite(test))


def test_dimensions_of_a_supervised_neighbour(mini):
    """A step that scikit-learn fits with a random state gives the same search twice."""
    pairs, gold = mini
    encoder = make_pipeline(TfidfVectorizer(), TruncatedSVD(8, random_state=0))
    scores = [cross_val_score(CosineSimilarityRegressor(encoder), pairs, gold, cv=2) for _ in range(2)]
    assert_array_equal(*scores)


# Pairs of two classes


def labeled(n=80, seed=0):
    """Pairs of vectors, those of the class 1 more similar than the others."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, size=n)
    first = rng.normal(size=(n, 5))
    second = first * y[:, None] + rng.normal(size=(n, 5))
    return np.stack([first, second], axis=1), y


@pytest.mark.parametrize("seed", range(10))
def test_threshold_is_the_lowest_of_best_balanced_accuracy(seed):
    X, y = labeled(30, seed)
    X = X.round() if seed % 2 else X  # with ties, too
    model = CosineSimilarityClassifier("passthrough").fit(X, y)
    cosines = model.decision_function(X)
    values = np.unique(cosines)
    candidates = [values[0], *(values[:-1] + values[1:]) / 2]
    accuracies = np.round([balanced_accuracy_score(y, cosines >= t) for t in candidates], 12)
    assert model.threshold_ == candidates[int(np.argmax(accuracies))]
    assert balanced_accuracy_score(y, model.predict(X)) == pytest.approx(accuracies.max())


def test_threshold_between_neighboring_floats_tells_them_apart():
    cosines = np.array([0.5, np.nextafter(0.5, 1)])
    assert _best_threshold(np.array([0, 1]), cosines) == cosines[1]


@pytest.mark.filterwarnings("ignore:pairs of the class:UserWarning")
def test_where_cosines_tell_nothing_all_pairs_are_similar():
    X = np.ones((4, 2, 3))
    model = CosineSimilarityClassifier("passthrough").fit(X, [0, 1, 0, 1])
    assert model.predict(X).tolist() == [1, 1, 1, 1]
    # The other way round: no threshold is better than half right.
    X[:2, 1] = [1, -1, 0]
    with pytest.warns(
        UserWarning, match=r"pairs of the class 1 are less similar than those of .*0\.00.*y == "
    ):
        model.fit(X, [1, 1, 0, 0])
    assert model.predict(X).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("labels", [[0, 1], [-1, 1], [False, True], ["different", "same"], [2.0, 7.0]])
def test_a_high_cosine_means_the_larger_label(labels):
    X, y = labeled()
    named = np.array(labels)[y]
    model = CosineSimilarityClassifier("passthrough").fit(X, named)
    assert model.classes_.tolist() == labels
    assert model.classes_.dtype == named.dtype
    cosines = 1 - paired_cosine_distances(X[:, 0], X[:, 1])
    assert_allclose(model.decision_function(X), cosines, atol=1e-12)
    assert_array_equal(model.predict(X), np.array(labels)[(cosines >= model.threshold_).astype(int)])
    assert model.score(X, named) == np.mean(model.predict(X) == named)


def test_a_threshold_that_is_given():
    X, y = labeled()
    model = CosineSimilarityClassifier("passthrough", threshold=0.8).fit(X, y)
    assert model.threshold_ == 0.8
    assert_array_equal(model.predict(X), model.decision_function(X) >= 0.8)
    X[0] = [[3, 4, 0, 0, 0], [5, 0, 0, 0, 0]]  # the cosine is 0.6
    assert CosineSimilarityClassifier("passthrough", threshold=0.6).fit(X, y).predict(X[:1]) == [1]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        ([0, 0, 0, 0], r"y must have two classes, got 1: \[0\]"),
        ([0, 1, 2, 1], "y must have two classes, got 3"),
        ([0.1, 0.2, 0.3, 0.4], "Unknown label type: continuous"),
        ([0, 1, np.nan, 1], "NaN"),
        ([0, 1, 1], "inconsistent numbers of samples"),
    ],
)
@pytest.mark.parametrize("threshold", ["auto", 0.5])
def test_labels_that_do_not_fit(y, message, threshold):
    model = CosineSimilarityClassifier(TfidfVectorizer(), threshold=threshold)
    with pytest.raises(ValueError, match=message):
        model.fit(PAIRS, y)


@pytest.mark.parametrize("threshold", ["median", 2, np.nan, None])
def test_thresholds_out_of_range(threshold):
    with pytest.raises(ValueError, match="'threshold' parameter"):
        CosineSimilarityClassifier(TfidfVectorizer(), threshold=threshold).fit(PAIRS, [1, 1, 0, 1])


def test_the_encoder_of_a_classifier_sees_no_labels_and_every_sentence_once():
    model = CosineSimilarityClassifier(Recorder(), extra=["more"]).fit(PAIRS, [1, 1, 0, 1])
    both = [a for a, _ in PAIRS] + [b for _, b in PAIRS] + ["more"]
    assert model.encoder_.seen_ == both
    assert model.encoder_.y_ is None
    assert model.encoder_.transformed_ == [both]


@pytest.mark.parametrize("calibrator", ["passthrough", StandardNormalizationCalibrator()])
def test_classifiers_in_model_selection(calibrator):
    X, y = labeled(120)
    y = np.array(["no", "yes"])[y]
    model = CosineSimilarityClassifier(calibrator)
    auc = cross_val_score(model, X, y, scoring=auc_scorer)
    assert_array_equal(cross_val_score(model, X, y, scoring="roc_auc"), auc)
    assert auc.min() > 0.6
    assert_allclose(
        cross_val_score(
            CosineSimilarityRegressor(calibrator), X, y == "yes", scoring=auc_scorer, cv=KFold(3)
        ),
        cross_val_score(model, X, y, scoring=auc_scorer, cv=KFold(3)),
    )
    assert cross_val_score(model, X, y == "yes", scoring="average_precision").min() > 0.5
    grid = {"encoder": ["passthrough", NATSVCalibrator(1), StandardNormalizationCalibrator()]}
    search = GridSearchCV(model, grid, scoring=auc_scorer, cv=3).fit(X, y)
    assert search.score(X, y) == roc_auc_score(y, search.decision_function(X))
    tuned = TunedThresholdClassifierCV(model, scoring="balanced_accuracy", cv=3).fit(X, y)
    assert set(tuned.predict(X)) == {"no", "yes"}
    fixed = FixedThresholdClassifier(model, threshold=0.9, response_method="decision_function").fit(X, y)
    assert_array_equal(fixed.predict(X) == "yes", model.fit(X, y).decision_function(X) >= 0.9)
    probabilities = CalibratedClassifierCV(model, cv=3).fit(X, y).predict_proba(X)
    assert_allclose(probabilities.sum(axis=1), 1)
    assert roc_auc_score(y, probabilities[:, 1]) == pytest.approx(
        roc_auc_score(y, model.decision_function(X)), abs=0.05
    )
    stack = StackingClassifier([("a", model), ("b", CosineSimilarityClassifier(NATSVCalibrator(1)))]).fit(
        X, y
    )
    assert stack.score(X, y) > 0.6


@pytest.mark.parametrize("Model", [CosineSimilarityRegressor, CosineSimilarityClassifier])
def test_similarities_are_features_of_another_model(Model):
    X, y = labeled()
    features = FeatureUnion([("raw", Model("passthrough")), ("SN", Model(StandardNormalizationCalibrator()))])
    model = make_pipeline(features, LogisticRegression()).fit(X, y)
    name = Model.__name__.lower() + "0"
    assert model[0].get_feature_names_out().tolist() == [f"raw__{name}", f"SN__{name}"]
    expected = [m.fit(X, y).transform(X)[:, 0] for _, m in features.transformer_list]
    assert_array_equal(model[0].transform(X), np.transpose(expected))
    assert model.score(X, y) > 0.6
    pytest.importorskip("pandas")
    frame = Model("passthrough").set_output(transform="pandas").fit_transform(X, y)
    assert frame.columns.tolist() == [name]


@pytest.mark.parametrize("Model", [CosineSimilarityRegressor, CosineSimilarityClassifier])
def test_tags_of_both(Model):
    tags = get_tags(Model("passthrough"))
    assert tags.input_tags.three_d_array
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array
    assert is_classifier(Model("passthrough")) == (Model is CosineSimilarityClassifier)
    assert tags.target_tags.required == (Model is CosineSimilarityClassifier)


@pytest.mark.parametrize(
    "check",
    [
        check_do_not_raise_errors_in_init_or_set_params,
        check_estimator_cloneable,
        check_estimator_repr,
        check_estimator_tags_renamed,
        check_get_params_invariance,
        check_mixin_order,
        check_no_attributes_set_in_init,
        check_parameters_default_constructible,
        check_set_params,
        check_valid_tag_types,
    ],
)
def test_general_checks_of_scikit_learn_for_the_classifier(check):
    check("CosineSimilarityClassifier", CosineSimilarityClassifier(letters()))


def test_a_pickled_classifier_predicts_the_same():
    X, y = labeled()
    model = CosineSimilarityClassifier(WhiteningCalibrator(strength=1.0)).fit(X, y)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    with pytest.raises(NotFittedError):
        clone(model).decision_function(X)
