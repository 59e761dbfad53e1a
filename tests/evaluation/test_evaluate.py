import html
import json
import pickle
import re

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import paired_cosine_distances
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skflow.calibrators import NATSVCalibrator, StandardNormalizationCalibrator, WhiteningCalibrator
from skflow.datasets import load_sts
from skflow.evaluation import Difference, compare_calibrators, evaluate_pairs, evaluate_sts
from skflow.similarity import CosineSimilarityRegressor

from .._sts_files import SUBSETS, glue_lines, pairs, write, write_semeval, write_senteval

TASKS = ["sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr"]
PAIRS = [("a cat", "a cat"), ("the cat sleeps", "the dog sleeps"), ("a cat", "no dog"), ("rain", "the rain")]


class Recorder(TransformerMixin, BaseEstimator):
    """Count letters, and write down in a list that clones share what was fitted and transformed."""

    def __init__(self, log=None):
        self.log = log

    def fit(self, X, y=None):
        self.log.append("fit", X)
        self.is_fitted_ = True
        return self

    def transform(self, X):
        if not hasattr(self, "is_fitted_"):
            raise NotFittedError
        self.log.append("transform", X)
        return np.array([[text.count(letter) + 0.1 for letter in "abcdefghijklm "] for text in X])


class Log:
    def __init__(self):
        self.calls = []

    def append(self, name, X):
        assert type(X) is list
        self.calls.append((name, X))

    def __deepcopy__(self, memo):
        return self

    def of(self, name):
        return [X for kind, X in self.calls if kind == name]


@pytest.fixture
def log():
    return Log()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return write_senteval(tmp_path_factory.mktemp("data"), n=12)


def tfidf():
    return make_pipeline(
        TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 3), max_features=60),
        FunctionTransformer(lambda X: X.toarray()),
    )


def correlations(encoder, data, chosen=slice(None)):
    """Spearman's and Pearson's correlation x 100 of a fitted encoder, as scikit-learn and scipy give them."""
    a, b = (encoder.transform(list(data.pairs[chosen, side])) for side in (0, 1))
    cosines = 1 - paired_cosine_distances(a, b)
    return [100 * f(data.score[chosen], cosines)[0] for f in (scipy.stats.spearmanr, scipy.stats.pearsonr)]


def fitted_on_target(encoder, data):
    return encoder.fit([*data.pairs[:, 0], *data.pairs[:, 1]])


# evaluate_sts


def test_every_figure_of_a_task_with_subsets(home):
    result = evaluate_sts(tfidf(), "sts12", data_home=home)
    data = load_sts("sts12", home)
    encoder = fitted_on_target(tfidf(), data)
    counts = {s: 12 + extra for extra, s in enumerate(SUBSETS["sts12"])}
    by_subset = {s: correlations(encoder, data, data.subset == s) for s in counts}
    assert result.aggregate == "wmean"
    for place, name in enumerate(("spearman", "pearson")):
        figures = [by_subset[s][place] for s in counts]
        assert_allclose(getattr(result, name)["sts12"], np.average(figures, weights=list(counts.values())))
        assert_allclose(getattr(result.aggregated("mean"), name)["sts12"], np.mean(figures))
        assert_allclose(
            getattr(result.aggregated("all"), name)["sts12"], correlations(encoder, data)[place], atol=1e-9
        )
        assert_allclose([result.subsets["sts12"][s][name] for s in counts], figures)
    assert {s: values["n_pairs"] for s, values in result.subsets["sts12"].items()} == counts
    assert result.n_pairs == {"sts12": sum(counts.values())}
    assert result["sts12"] == result.spearman["sts12"] != result.aggregated("mean")["sts12"]


@pytest.mark.parametrize("aggregate", ["wmean", "mean", "all"])
def test_aggregate_may_be_asked_for_at_once(home, aggregate):
    asked = evaluate_sts(tfidf(), ["sts13", "stsb"], data_home=home, aggregate=aggregate)
    assert asked == evaluate_sts(tfidf(), ["sts13", "stsb"], data_home=home).aggregated(aggregate)
    assert asked.aggregate == aggregate


@pytest.mark.parametrize("task", ["stsb", "sickr"])
def test_split_says_what_is_scored_and_not_what_is_fitted(home, log, task):
    data = load_sts(task, home)
    encoder = fitted_on_target(tfidf(), data)
    for split in ("train", "dev", "test", None):
        chosen = data.split == split if split else slice(None)
        result = evaluate_sts(tfidf(), task, data_home=home, split=split)
        assert_allclose([result[task], result.pearson[task]], correlations(encoder, data, chosen))
        assert result.n_pairs[task] == len(data.score[chosen])
        evaluate_sts(Recorder(log), task, data_home=home, split=split)
    both = [*data.pairs[:, 0], *data.pairs[:, 1]]
    assert log.of("fit") == [both] * 4
    # STS 2012 to 2016 are scored whole, whatever the split.
    assert evaluate_sts(tfidf(), "sts13", data_home=home, split="dev").n_pairs == {"sts13": 39}


def test_target_is_fitted_for_each_task_on_both_sentences_of_every_pair(home, log):
    result = evaluate_sts(Recorder(log), data_home=home)
    assert list(result) == TASKS
    loaded = [load_sts(task, home) for task in TASKS]
    assert log.of("fit") == [[*data.pairs[:, 0], *data.pairs[:, 1]] for data in loaded]
    # What was embedded for the fit is not embedded again for the scores.
    assert len(log.of("transform")) == 7
    assert len(result) == 7
    assert_allclose(result.average, np.mean([result[task] for task in TASKS]))


def test_fit_on_sentences_is_fitted_once_on_those(home, log):
    sentences = ["a", "b a", "a"]
    result = evaluate_sts(Recorder(log), ["sts16", "stsb"], data_home=home, fit_on=sentences)
    assert log.of("fit") == [sentences]
    assert [len(X) for X in log.of("transform")] == [2 * result.n_pairs["sts16"], 2 * 12]
    encoder = tfidf().fit(load_sts("sts12", home).pairs[:, 0].tolist())
    result = evaluate_sts(
        tfidf(), "sickr", data_home=home, fit_on=load_sts("sts12", home).pairs[:, 0], split=None
    )
    assert_allclose(result["sickr"], correlations(encoder, load_sts("sickr", home))[0])


def test_fit_on_none_uses_the_encoder_as_it_is(home, log):
    with pytest.raises(NotFittedError):
        evaluate_sts(Recorder(log), "stsb", data_home=home, fit_on=None)
    encoder = tfidf().fit(["the cat 0", "no dog 1"])
    result = evaluate_sts(encoder, "stsb", data_home=home, fit_on=None, split=None)
    assert_allclose(result["stsb"], correlations(encoder, load_sts("stsb", home))[0])


def test_the_encoder_given_stays_as_it_was(home):
    encoder = tfidf()
    evaluate_sts(encoder, "stsb", data_home=home)
    assert not hasattr(encoder[0], "vocabulary_")


def test_the_regressor_gives_the_same(home):
    data = load_sts("sts13", home)
    model = CosineSimilarityRegressor(make_pipeline(tfidf(), PCA(5))).fit(data.pairs)
    result = evaluate_sts(model.encoder, "sts13", data_home=home, aggregate="all")
    assert_allclose(result["sts13"], 100 * model.score(data.pairs, data.score), atol=1e-6)


def test_constant_predictions_give_nan_as_scipy_does(home):
    constant = make_pipeline(tfidf(), FunctionTransformer(np.ones_like))
    with pytest.warns(scipy.stats.ConstantInputWarning):
        result = evaluate_sts(constant, "sts13", data_home=home)
    assert np.isnan(result["sts13"])
    assert "nan" in str(result)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tasks": "sts17"}, r"tasks must be one of \['sts12', .*got 'sts17'"),
        ({"tasks": ["stsb", "sick"]}, "got 'sick'"),
        ({"tasks": []}, "tasks is empty"),
        ({"aggregate": "weighted"}, r"aggregate must be one of \['wmean', 'mean', 'all'\], got 'weighted'"),
        ({"split": "trial"}, r"split must be one of .*got 'trial'"),
        ({"fit_on": "nli"}, "fit_on must be 'target', a list of sentences or None, got 'nli'"),
        ({"fit_on": []}, "fit_on is empty"),
        ({"fit_on": ["a", None]}, r"fit_on\[1\] is missing"),
    ],
)
def test_bad_arguments(home, arguments, message):
    with pytest.raises(ValueError, match=message):
        evaluate_sts(tfidf(), **{"tasks": "stsb", "data_home": home, **arguments})


def test_tasks_that_are_no_names():
    with pytest.raises(TypeError, match=r"tasks must be 'all' or some of \['sts12', .*got None"):
        evaluate_sts(tfidf(), None)


def test_glue_has_no_test_split_to_score(tmp_path):
    for split in ("train", "dev"):
        write(tmp_path / f"STS-B/{split}.tsv", glue_lines(pairs(split, 9)))
    with pytest.raises(
        ValueError, match=r"stsb has no pairs of split='test' there, only of \['dev', 'train'\]"
    ):
        evaluate_sts(tfidf(), "stsb", data_home=tmp_path)
    assert evaluate_sts(tfidf(), "stsb", data_home=tmp_path, split="dev").n_pairs == {"stsb": 9}


def test_unannotated_pairs_are_neither_scored_nor_fitted(tmp_path, log):
    for subset in SUBSETS["sts13"]:
        write_semeval(tmp_path, subset, [("not graded", "at all", None), *pairs(subset, 8)])
    result = evaluate_sts(Recorder(log), "sts13", data_home=tmp_path)
    assert result.n_pairs == {"sts13": 24}
    assert "not graded" not in log.of("fit")[0]


def test_real_files_read_and_scored_apart_from_the_package(shared):
    """The weighted mean of STS13, from the raw files with nothing but scikit-learn and scipy."""
    directory = shared / "data/senteval/STS/STS13-en-test"
    subsets = {}
    for name in SUBSETS["sts13"]:
        lines = (directory / f"STS.input.{name}.txt").read_text(encoding="utf-8").rstrip("\n").split("\n")
        gold = (directory / f"STS.gs.{name}.txt").read_text().split()
        subsets[name] = [line.split("\t") for line in lines], np.array(gold, dtype=float)
    encoder = make_pipeline(TfidfVectorizer(), TruncatedSVD(30, random_state=0))
    encoder.fit(
        [text for side in (0, 1) for lines, _ in subsets.values() for text in np.array(lines)[:, side]]
    )
    rhos = []
    for lines, gold in subsets.values():
        a, b = (encoder.transform(side) for side in zip(*lines, strict=True))
        # Rounded, so that pairs of the same words tie; exact ties are up to the last bit elsewhere.
        rhos.append(scipy.stats.spearmanr(gold, np.round(paired_cosine_distances(a, b), 9))[0])
    expected = -100 * np.average(rhos, weights=[189, 750, 561])
    encoder = make_pipeline(TfidfVectorizer(), TruncatedSVD(30, random_state=0))
    result = evaluate_sts(encoder, "sts13", data_home=shared / "data/senteval")
    assert_allclose(result["sts13"], expected, atol=0.01)


# The result


@pytest.fixture(scope="module")
def result(home):
    return evaluate_sts(tfidf(), ["sts13", "stsb"], data_home=home, n_resamples=0)


@pytest.fixture(scope="module")
def resampled(home):
    return evaluate_sts(
        tfidf(), ["sts13", "stsb"], data_home=home, n_resamples=60, confidence_level=0.9, random_state=3
    )


def test_result_is_a_mapping_of_tasks_to_figures(result):
    assert dict(result) == result.spearman == {"sts13": result["sts13"], "stsb": result["stsb"]}
    assert list(result.values()) == [result["sts13"], result["stsb"]]
    assert "sts12" not in result
    with pytest.raises(KeyError):
        result["sts12"]
    assert json.loads(json.dumps(dict(result))) == dict(result)
    loaded = pickle.loads(pickle.dumps(result))
    assert loaded == result
    assert loaded.subsets == result.subsets
    with pytest.raises(ValueError, match="aggregate must be one of"):
        result.aggregated("median")


def test_text(result):
    lines = repr(result).splitlines()
    assert lines[0] == "x 100, aggregate='wmean'"
    assert lines[1].split() == ["task", "spearman", "pearson", "n_pairs"]
    assert lines[2].split() == ["sts13", f"{result['sts13']:.2f}", f"{result.pearson['sts13']:.2f}", "39"]
    assert lines[4].split()[:2] == ["average", f"{result.average:.2f}"]
    assert len({line.index(".") for line in lines[2:]}) == 1  # the points stand under each other


def test_text_with_intervals(resampled):
    lines = repr(resampled).splitlines()
    assert re.split(" {2,}", lines[1]) == ["task", "spearman", "90%", "pearson", "90%", "n_pairs"]
    interval = resampled.intervals["spearman"]["sts13"]
    shown = f"[{interval.low:.2f}, {interval.high:.2f}]"
    assert re.split(" {2,}", lines[2])[:3] == ["sts13", f"{resampled['sts13']:.2f}", shown]
    interval = resampled.intervals["pearson"]["average"]
    assert lines[4].endswith(f"[{interval.low:.2f}, {interval.high:.2f}]")
    assert shown in cells(resampled._repr_html_())


def cells(text):
    return [html.unescape(cell) for cell in re.findall(r"<t[dh]>(.*?)</t[dh]>", text)]


def test_html(result):
    text = result._repr_html_()
    assert text.startswith("<table>")
    assert cells(text)[:6] == ["task", "spearman", "pearson", "n_pairs", "sts13", f"{result['sts13']:.2f}"]


def test_frames(result):
    pytest.importorskip("pandas")
    frame = result.to_frame()
    assert frame.index.tolist() == ["sts13", "stsb"]
    assert frame.loc["stsb"].tolist() == [result["stsb"], result.pearson["stsb"], 12]
    assert frame["n_pairs"].dtype == np.int64
    frame = result.to_frame(subsets=True)
    assert frame.index.names == ["task", "subset"]
    assert frame.index.tolist() == [("sts13", s) for s in SUBSETS["sts13"]] + [("stsb", "stsb")]
    assert frame.loc[("sts13", "FNWN"), "spearman"] == result.subsets["sts13"]["FNWN"]["spearman"]


# Intervals


def test_intervals_of_a_task_are_percentiles_of_its_aggregate(resampled):
    for aggregate in ("wmean", "mean", "all"):
        result = resampled.aggregated(aggregate)
        assert result.confidence_level == 0.9
        for metric in ("spearman", "pearson"):
            drawn = result.bootstrap_distribution[metric]
            assert list(drawn) == ["sts13", "stsb", "average"]
            assert_allclose(drawn["average"], (drawn["sts13"] + drawn["stsb"]) / 2)
            for name, values in drawn.items():
                assert values.shape == (60,)
                interval = result.intervals[metric][name]
                assert_allclose(interval, np.percentile(values, [5, 95]))
                assert interval == (interval.low, interval.high)


def test_figures_of_resamples_are_those_of_the_pairs_drawn(home, resampled):
    data = load_sts("sts13", home)
    encoder = fitted_on_target(tfidf(), data)
    rng = np.random.RandomState(3)
    sizes = [part["n_pairs"] for part in resampled.subsets["sts13"].values()]
    drawn = [
        np.flatnonzero(data.subset == subset)[rng.randint(n, size=(60, n))]
        for subset, n in zip(resampled.subsets["sts13"], sizes, strict=True)
    ]
    for i in (0, 59):
        figures = [correlations(encoder, data, rows[i]) for rows in drawn]
        for place, metric in enumerate(("spearman", "pearson")):
            of_subsets = [figure[place] for figure in figures]
            expected = {
                "wmean": np.average(of_subsets, weights=sizes),
                "mean": np.mean(of_subsets),
                "all": correlations(encoder, data, np.concatenate([rows[i] for rows in drawn]))[place],
            }
            for aggregate, figure in expected.items():
                result = resampled.aggregated(aggregate)
                assert_allclose(result.bootstrap_distribution[metric]["sts13"][i], figure, atol=1e-4)


def test_frames_with_intervals(resampled):
    pytest.importorskip("pandas")
    frame = resampled.to_frame()
    assert frame.columns.tolist() == [
        "spearman", "spearman_low", "spearman_high", "pearson", "pearson_low", "pearson_high", "n_pairs"
    ]  # fmt: skip
    interval = resampled.intervals["spearman"]["stsb"]
    assert tuple(frame.loc["stsb", ["spearman_low", "spearman_high"]]) == interval
    parts = resampled.to_frame(subsets=True)
    assert parts.columns.tolist() == frame.columns.tolist()
    assert_allclose(parts.loc[("stsb", "stsb")], frame.loc["stsb"])
    assert (parts["pearson_low"] <= parts["pearson_high"]).all()


def test_without_resamples_there_are_no_intervals(home, result):
    assert result.intervals == result.bootstrap_distribution == {}
    comparison = compare_calibrators(tfidf(), CALIBRATORS, "stsb", data_home=home, n_resamples=0, verbose=0)
    with pytest.raises(ValueError, match="differences needs resamples"):
        comparison.differences()
    assert "noise" not in str(comparison)


def test_draws_depend_on_the_seed_alone():
    def low(random_state):
        result = evaluate_pairs(
            TfidfVectorizer(), PAIRS * 9, range(36), n_resamples=50, random_state=random_state
        )
        return result.intervals["spearman"]["pairs"].low

    assert low(0) == low(0) == low(np.random.RandomState(0))
    assert low(0) != low(1)


@pytest.mark.parametrize("metric", ["spearman", "pearson", "auc"])
def test_intervals_are_scipys(metric):
    """scipy's own bootstrap of the same statistic, percentiles too, but for the chance of the draws."""
    rng = np.random.RandomState(0)
    cosines = rng.uniform(size=120)
    y = cosines + rng.normal(scale=0.5, size=120)
    if metric == "auc":
        y = (y > 0.6).astype(int)
    statistic = {
        "spearman": lambda a, b: scipy.stats.spearmanr(a, b)[0],
        "pearson": lambda a, b: scipy.stats.pearsonr(a, b)[0],
        "auc": roc_auc_score,
    }[metric]
    theirs = scipy.stats.bootstrap(
        (y, cosines), statistic, n_resamples=2000, paired=True, vectorized=False, method="percentile",
        random_state=np.random.RandomState(1),
    ).confidence_interval  # fmt: skip
    # Vectors on the unit circle, whose cosine with (1, 0) is wanted.
    angles = {str(i): np.arccos(cosine) for i, cosine in enumerate(cosines)}
    encoder = FunctionTransformer(
        lambda X: np.array([[np.cos(angles.get(x, 0)), np.sin(angles.get(x, 0))] for x in X])
    )
    result = evaluate_pairs(
        encoder, [("anchor", name) for name in angles], y, metric, fit_on=None, n_resamples=2000
    )
    ours = result.intervals[metric]["pairs"]
    assert_allclose(ours, 100 * np.array(theirs), atol=2.0)  # an interval is 20 to 30 wide
    assert ours.low < float(result) < ours.high


def test_intervals_of_pairs_that_are_too_few_are_nan():
    # Two pairs: half of the resamples hold one of them twice.
    result = evaluate_pairs(TfidfVectorizer(), PAIRS[1:3], [1, 2])
    assert np.isnan(result.intervals["spearman"]["pairs"]).all()
    assert "[nan, nan]" in str(result)
    result = evaluate_pairs(TfidfVectorizer(), PAIRS, [1, 1, 0, 0], "auc", subset=["u", "u", "v", "v"])
    assert "[nan, nan]" in str(result)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_resamples": -1}, ValueError, "n_resamples == -1, must be >= 0"),
        ({"n_resamples": 10.5}, TypeError, "n_resamples must be an instance of"),
        ({"n_resamples": True}, TypeError, "n_resamples must be a number of resamples"),
        ({"confidence_level": 0}, ValueError, "confidence_level == 0, must be > 0"),
        ({"confidence_level": 95}, ValueError, "confidence_level == 95, must be < 1"),
        ({"random_state": "seed"}, ValueError, "cannot be used to seed"),
    ],
)
def test_bad_resampling(home, arguments, error, message):
    with pytest.raises(error, match=message):
        evaluate_sts(tfidf(), "stsb", data_home=home, **arguments)
    with pytest.raises(error, match=message):
        evaluate_pairs(tfidf(), PAIRS, [1, 2, 3, 4], **arguments)


# evaluate_pairs


def test_evaluate_pairs_by_hand():
    # Counts of the words "a" and "b": cosines 1, 0 and 1 / sqrt(2).
    encoder = TfidfVectorizer(use_idf=False, token_pattern=r"\w", norm=None)
    made = [("a", "a"), ("a", "b"), ("a b", "b")]
    assert_allclose(evaluate_pairs(encoder, made, [5, 0, 1])["spearman"], 100)
    # r of (1, 0, 1/sqrt 2) with (5, 0, 1).
    expected = 100 * np.corrcoef([1, 0, 2**-0.5], [5, 0, 1])[0, 1]
    assert_allclose(evaluate_pairs(encoder, made, [5, 0, 1], "pearson")["pearson"], expected)
    # One positive pair, in the middle of the three: it is above one of the two negative ones.
    assert_allclose(float(evaluate_pairs(encoder, made, [0, 0, 1], metric="auc")), 50)


@pytest.mark.parametrize(
    "y", [[True, False, False, True], [1, 0, 0, 1], [1, -1, -1, 1], [1.0, 0.0, 0.0, 1.0]]
)
def test_auc(y):
    result = evaluate_pairs(TfidfVectorizer(), PAIRS, y, metric="auc")
    encoder = TfidfVectorizer().fit([a for a, _ in PAIRS] + [b for _, b in PAIRS])
    cosines = 1 - paired_cosine_distances(*(encoder.transform(side) for side in zip(*PAIRS, strict=True)))
    assert dict(result) == {"auc": 100 * roc_auc_score(y, cosines)}
    assert float(result) == result["auc"]
    with pytest.raises(KeyError):
        result["spearman"]


@pytest.mark.parametrize("kind", ["tuples", "array", "pandas"])
def test_pairs_of_every_kind(kind):
    X = {
        "tuples": lambda: PAIRS,
        "array": lambda: np.array(PAIRS),
        "pandas": lambda: pytest.importorskip("pandas").DataFrame(PAIRS, columns=["a", "b"]),
    }[kind]()
    assert evaluate_pairs(TfidfVectorizer(), X, [5, 3, 0, 4]) == evaluate_pairs(
        TfidfVectorizer(), PAIRS, np.array([5, 3, 0, 4])
    )


def test_evaluate_pairs_fits_as_evaluate_sts_does(log):
    sides = [a for a, _ in PAIRS] + [b for _, b in PAIRS]
    evaluate_pairs(Recorder(log), PAIRS, range(4))
    evaluate_pairs(Recorder(log), PAIRS, range(4), fit_on=("x", "y"))
    assert log.calls == [("fit", sides), ("transform", sides), ("fit", ["x", "y"]), ("transform", sides)]
    with pytest.raises(NotFittedError):
        evaluate_pairs(Recorder(log), PAIRS, range(4), fit_on=None)


def test_subsets_of_pairs(home):
    data = load_sts("sts14", home)
    result = evaluate_pairs(tfidf(), data.pairs, data.score, subset=data.subset, aggregate="wmean")
    of_task = evaluate_sts(tfidf(), "sts14", data_home=home)
    assert result["spearman"] == of_task["sts14"]
    assert result.aggregated("all")["spearman"] == of_task.aggregated("all")["sts14"]
    assert result.n_pairs == {"pairs": len(data.score)}
    assert result.subsets["pairs"]["images"]["n_pairs"] == 15
    lines = str(result).splitlines()
    assert [line.split()[0] for line in lines[2:]] == [*SUBSETS["sts14"], "pairs"]
    assert cells(result._repr_html_())[:4] == ["data", "spearman", "95%", "n_pairs"]
    pytest.importorskip("pandas")
    assert result.to_frame().loc["pairs", "spearman"] == result["spearman"]
    assert result.to_frame(subsets=True).loc[("pairs", "OnWN"), "n_pairs"] == 16


def test_auc_of_a_subset_with_pairs_of_one_kind_is_nan():
    result = evaluate_pairs(TfidfVectorizer(), PAIRS, [1, 1, 0, 0], "auc", subset=["u", "u", "v", "v"])
    assert np.isnan(result.subsets["pairs"]["u"]["auc"])
    assert np.isfinite(result["auc"])


@pytest.mark.parametrize(
    ("y", "arguments", "message"),
    [
        ([1, 2, 3, 4], {"metric": "auc"}, r"needs y of booleans, 0 and 1, or -1 and 1, got \{"),
        ([1, 1, 1, 1], {"metric": "auc"}, "needs y of booleans"),
        (["yes", "no", "no", "yes"], {"metric": "auc"}, "needs y of booleans"),
        ([1, 2, 3, 4], {"metric": "kendall"}, r"metric must be one of \['spearman', 'pearson', 'auc'\]"),
        ([1, 2, 3], {}, "inconsistent numbers of samples"),
        ([1, 2, 3, np.nan], {}, r"y\[3\] is nan"),
        (["1", "2", "3", "4"], {}, r"y\[0\] is '1'"),
        ([1, 2, None, 4], {}, r"y\[2\] is None"),
        ([1, 2, 3, 4], {"subset": ["a"]}, "inconsistent numbers of samples"),
        ([1, 2, 3, 4], {"aggregate": "sum"}, "aggregate must be one of"),
        ([1, 2, 3, 4], {"subset": ["a", "a", None, "b"]}, r"subset\[2\] is missing"),
        ([1, 2, 3, 4], {"subset": [0.0, np.nan, 1.0, 1.0]}, r"subset\[1\] is missing"),
        ([True, False, None, True], {"metric": "auc"}, r"y\[2\] is missing"),
        ([1, 0, np.nan, 1], {"metric": "auc"}, r"y\[2\] is missing"),
        ([1, 2, 3, 4], {"fit_on": "all"}, "fit_on must be"),
    ],
)
def test_bad_arguments_of_evaluate_pairs(y, arguments, message):
    with pytest.raises(ValueError, match=message):
        evaluate_pairs(TfidfVectorizer(), PAIRS, y, **arguments)


def test_a_missing_sentence_is_named():
    with pytest.raises(ValueError, match=r"pairs\[:, 1\]\[1\] is missing"):
        evaluate_pairs(TfidfVectorizer(), [("a", "b"), ("c", None)], [1, 2])


# compare_calibrators

CALIBRATORS = {
    "raw": "passthrough",
    "SN": StandardNormalizationCalibrator(),
    "SN + NATSV": make_pipeline(StandardNormalizationCalibrator(), NATSVCalibrator(2)),
    "whitening": WhiteningCalibrator(8),
}


@pytest.mark.parametrize(
    "fit_on", ["target", ["the cat 0 no dog", "the owl 2", "the hen 1 no pig", "no cow 9"] * 5]
)
def test_comparison_gives_what_pipelines_give(home, fit_on):
    comparison = compare_calibrators(
        tfidf(), CALIBRATORS, ["sts15", "sickr"], data_home=home, fit_on=fit_on, split=None, verbose=0
    )
    assert list(comparison) == list(CALIBRATORS)
    for name, calibrator in CALIBRATORS.items():
        encoder = make_pipeline(tfidf(), calibrator)
        alone = evaluate_sts(encoder, ["sts15", "sickr"], data_home=home, fit_on=fit_on, split=None)
        assert_allclose(list(comparison[name].values()), list(alone.values()), atol=1e-6)
        assert comparison[name].n_pairs == alone.n_pairs


def test_comparison_without_fitting(home):
    encoder = tfidf().fit(load_sts("sts12", home).pairs[:, 0])
    Z = encoder.transform(load_sts("sts12", home).pairs[:, 1])
    fitted = {"raw": None, "scaled": StandardScaler().fit(Z)}
    comparison = compare_calibrators(encoder, fitted, "stsb", data_home=home, fit_on=None, verbose=0)
    assert_allclose(
        comparison["scaled"]["stsb"],
        correlations(make_pipeline(encoder, fitted["scaled"]), load_sts("stsb", home, "test"))[0],
    )
    with pytest.raises(NotFittedError):
        compare_calibrators(encoder, [StandardScaler()], "stsb", data_home=home, fit_on=None, verbose=0)


def test_every_sentence_is_embedded_once(home, log):
    compare_calibrators(Recorder(log), CALIBRATORS, ["sts12", "stsb"], data_home=home, verbose=0)
    assert [len(X) for X in log.of("transform")] == [
        2 * len(load_sts(t, home).pairs) for t in ("sts12", "stsb")
    ]


def test_calibrators_are_not_fitted_in_place(home):
    calibrator = WhiteningCalibrator()
    compare_calibrators(tfidf(), {"w": calibrator}, "stsb", data_home=home, verbose=0)
    assert not hasattr(calibrator, "n_features_in_")


def test_an_encoder_of_sparse_or_named_vectors(home):
    raw = compare_calibrators(tfidf(), ["passthrough"], "stsb", data_home=home, verbose=0)
    sparse = tfidf()[0]
    svd = {"passthrough": "passthrough", "lsa": TruncatedSVD(4, random_state=0)}
    assert_allclose(
        compare_calibrators(sparse, svd, "stsb", data_home=home, verbose=0)["passthrough"]["stsb"],
        raw["passthrough"]["stsb"],
    )
    pytest.importorskip("pandas")
    scale = StandardScaler(with_mean=False, with_std=False).set_output(transform="pandas")
    named = make_pipeline(tfidf(), scale)
    found = compare_calibrators(
        named, {"raw": None, "SN": CALIBRATORS["SN"]}, "stsb", data_home=home, verbose=0
    )
    assert_allclose(found["raw"]["stsb"], raw["passthrough"]["stsb"])


def test_calibrators_of_a_list_are_named_after_their_classes(home):
    calibrators = ["passthrough", WhiteningCalibrator(2), NATSVCalibrator(), WhiteningCalibrator(3)]
    comparison = compare_calibrators(tfidf(), calibrators, "stsb", data_home=home, verbose=0)
    assert list(comparison) == [
        "passthrough",
        "WhiteningCalibrator-1",
        "NATSVCalibrator",
        "WhiteningCalibrator-2",
    ]


@pytest.mark.parametrize(
    ("calibrators", "error", "message"),
    [
        ({}, ValueError, "calibrators is empty"),
        ("passthrough", TypeError, "must be a dict or a sequence"),
        (WhiteningCalibrator(), TypeError, "must be a dict or a sequence"),
        ({"w": WhiteningCalibrator}, TypeError, "'w' must be a transformer .* got <class"),
        ({"w": 3}, TypeError, "calibrator 'w' must be a transformer or 'passthrough', got 3"),
        ({"w": "none"}, TypeError, "got 'none'"),
    ],
)
def test_bad_calibrators(home, calibrators, error, message):
    with pytest.raises(error, match=message):
        compare_calibrators(tfidf(), calibrators, "stsb", data_home=home)


def test_progress_is_shown_unless_told_otherwise(home, capsys):
    compare_calibrators(tfidf(), CALIBRATORS, "stsb", data_home=home, verbose=0)
    assert capsys.readouterr().err == ""
    compare_calibrators(tfidf(), CALIBRATORS, "stsb", data_home=home)
    shown = capsys.readouterr().err
    assert "4/4" in shown
    assert "stsb, SN + NATSV" in shown


def test_comparison_shows_published_figures_on_request(home):
    calibrators = {"<raw & co>": "passthrough", "SN": CALIBRATORS["SN"]}
    tasks = ["stsb", "sts12"]
    bare = compare_calibrators(tfidf(), calibrators, tasks, data_home=home, n_resamples=0, verbose=0)
    assert "Li2020" not in str(bare)
    comparison = compare_calibrators(
        tfidf(), calibrators, tasks, data_home=home, published=True, n_resamples=0, verbose=0
    )
    assert list(comparison) == list(calibrators)
    row = next(line for line in str(comparison).splitlines() if line.startswith("BERT-base-flow (target)"))
    # Li et al. (2020), Table 2.
    assert row.split() == [
        "BERT-base-flow",
        "(target)",
        "70.72",
        "63.48",
        "67.10",
        "wmean",
        "Li2020,",
        "Table",
        "2",
    ]
    text = comparison._repr_html_()
    assert "<raw" not in text
    assert "<raw & co>" in cells(text)
    pytest.importorskip("pandas")
    frame = comparison.to_frame()
    assert frame.columns.tolist() == ["stsb", "sts12", "average", "aggregate", "source"]
    assert len(frame) == 2 + 34
    assert frame.loc["SN", "average"] == comparison["SN"].average
    assert frame.loc["BERT-base-whitening-256 (NLI)", "sts12"] == 61.46  # Su et al. (2021), Table 1
    assert set(frame[frame["source"].str.startswith("Gao2021-all")]["aggregate"]) == {"all"}
    assert len(bare.to_frame()) == 2


class Tail(TransformerMixin, BaseEstimator):
    """All features but the first `start`."""

    def __init__(self, start=0):
        self.start = start

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.asarray(X)[:, self.start :]


def test_differences_are_paired(home):
    calibrators = {"few": Tail(40), "raw": "passthrough", "same": Tail(), "SN": CALIBRATORS["SN"]}
    comparison = compare_calibrators(
        tfidf(), calibrators, ["sts13", "sickr"], data_home=home, n_resamples=80, verbose=0
    )
    assert comparison.baseline == "raw"
    differences = comparison.differences()
    assert list(differences) == ["few", "same", "SN"]
    for name, by_task in differences.items():
        assert list(by_task) == ["sts13", "sickr", "average"]
        mine, base = comparison[name], comparison["raw"]
        assert_allclose(by_task["sickr"].difference, mine["sickr"] - base["sickr"])
        assert_allclose(by_task["average"].difference, mine.average - base.average)
        drawn = [r.bootstrap_distribution["spearman"]["average"] for r in (mine, base)]
        assert_allclose(by_task["average"][1:], np.percentile(drawn[0] - drawn[1], [2.5, 97.5]))
        for difference in by_task.values():
            assert difference.is_noise == (difference.low <= 0 <= difference.high)
    assert differences["same"]["average"] == (0, 0, 0)
    assert differences["same"]["average"].is_noise
    # The other way round, and by Pearson's r.
    turned = comparison.differences("few", "pearson")["raw"]["sts13"]
    straight = comparison.differences(metric="pearson")["few"]["sts13"]
    assert_allclose(turned, [-straight.difference, -straight.high, -straight.low])
    with pytest.raises(KeyError):
        comparison.differences("none")
    # Alone or in company, an encoder sees the same draws.
    alone = evaluate_sts(tfidf(), ["sts13", "sickr"], data_home=home, n_resamples=80)
    assert alone.intervals == comparison["raw"].intervals


def test_differences_are_shown_and_noise_is_marked(home):
    calibrators = {"raw": "passthrough", "same": Tail(), "few": Tail(55)}
    comparison = compare_calibrators(
        tfidf(), calibrators, ["sts12", "sts14"], data_home=home, published=True, n_resamples=80, verbose=0
    )
    few = comparison.differences()["few"]["average"]
    assert few.high < 0
    lines = str(comparison).splitlines()
    assert "noise: no clear difference from raw" in lines[0]
    assert re.split(" {2,}", lines[1])[3:6] == ["average", "95%", "less raw"]
    raw, same, few_line = (re.split(" {2,}", line) for line in lines[2:5])
    low, high = comparison["raw"].intervals["spearman"]["average"]
    assert raw[4:] == [f"[{low:.2f}, {high:.2f}]", "wmean"]
    assert same[5] == "+0.00 [+0.00, +0.00], noise"
    assert few_line[5] == f"{few.difference:.2f} [{few.low:.2f}, {few.high:.2f}]"
    assert len({len(re.findall("<td>", row)) for row in comparison._repr_html_().split("<tr>")[2:]}) == 1
    pytest.importorskip("pandas")
    frame = comparison.to_frame()
    assert frame.columns.tolist() == [
        "sts12", "sts14", "average", "average_low", "average_high",
        "difference", "difference_low", "difference_high", "aggregate", "source",
    ]  # fmt: skip
    assert tuple(frame.loc["few", "difference":"difference_high"]) == few
    assert (
        frame.loc[["raw", "BERT-base-whitening-256 (NLI)"], "difference":"difference_high"]
        .isna()
        .all(axis=None)
    )
    assert frame.loc["BERT-base-whitening-256 (NLI)", "aggregate"] == "wmean"


def test_without_raw_vectors_the_first_row_is_the_baseline(home):
    calibrators = {"whitening": CALIBRATORS["whitening"], "SN": CALIBRATORS["SN"]}
    comparison = compare_calibrators(tfidf(), calibrators, "stsb", data_home=home, n_resamples=20, verbose=0)
    assert comparison.baseline == "whitening"
    assert list(comparison.differences()) == ["SN"]


# The published figures of the real encoder

# Spearman's rho x 100 of all-MiniLM-L6-v2 on the public MTEB leaderboard: all pairs at once, raw cosine,
# SICK-R on all of its pairs.
LEADERBOARD = {
    "sts12": 72.37,
    "sts13": 80.60,
    "sts14": 75.59,
    "sts15": 85.39,
    "sts16": 78.99,
    "stsb": 82.03,
    "sickr": 77.58,
}


@pytest.mark.slow
def test_raw_encoder_reproduces_the_leaderboard(shared, minilm):
    from skflow.embedders import BertEmbedder

    home = shared / "data/senteval"
    encoder = BertEmbedder(minilm, device="cpu")
    result = evaluate_sts(encoder, TASKS[:-1], data_home=home, aggregate="all")
    sickr = evaluate_sts(encoder, "sickr", data_home=home, aggregate="all", split=None)
    found = {**result, **sickr}
    assert found == pytest.approx(LEADERBOARD, abs=0.1)


class DropsRows(FunctionTransformer):
    """Returns a vector less than it was given sentences."""

    def __init__(self):
        super().__init__(lambda X: np.ones((len(X) - 1, 2)))


def test_an_encoder_that_drops_rows_is_an_error():
    pairs = [("a", "b"), ("c", "d"), ("e", "f")]
    with pytest.raises(ValueError, match="returned 5 vectors for 6 sentences"):
        evaluate_pairs(DropsRows(), pairs, [1, 2, 3])


def test_a_rare_resample_without_a_figure_is_left_out():
    # 5 of 1000 pairs belong together: the chance that a resample has none of them is exp(-5).
    rng = np.random.default_rng(0)
    y = np.zeros(1000, dtype=int)
    y[:5] = 1
    X = np.vstack([np.tile([1.0, 0.0], (1000, 1)), rng.normal(size=(1000, 2)) + 3 * y[:, None]])
    encoder = FunctionTransformer(lambda texts: X[np.array(texts).astype(int)])
    pairs = [(str(i), str(1000 + i)) for i in range(1000)]
    result = evaluate_pairs(encoder, pairs, y, "auc", n_resamples=2000, random_state=0)
    interval = result.intervals["auc"]["pairs"]
    assert interval.low < result["auc"] < interval.high


def test_auc_takes_booleans_of_any_dtype_and_names_missing_ones():
    pairs = [("1 0", "1 0"), ("1 0", "0 1"), ("1 0", "1 1")]
    encoder = FunctionTransformer(lambda texts: np.array([text.split() for text in texts], dtype=float))
    y = np.array([True, False, False], dtype=object)
    assert evaluate_pairs(encoder, pairs, y, "auc", n_resamples=0)["auc"] == 100
    with pytest.raises(ValueError, match=r"y\[1\] is missing"):
        evaluate_pairs(encoder, pairs, [1.0, np.nan, 0.0], "auc", n_resamples=0)


def test_an_undefined_difference_is_no_noise():
    assert Difference(1.0, -1.0, 2.0).is_noise
    assert not Difference(1.0, 0.5, 2.0).is_noise
    assert not Difference(np.nan, np.nan, np.nan).is_noise
