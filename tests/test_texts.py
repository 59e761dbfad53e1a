"""Columns of text of every library, everywhere that texts are taken."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, TransformerMixin

from skflow import CosineSimilarityRegressor
from skflow._texts import check_texts
from skflow.evaluation import evaluate_pairs, suggest_calibrator

TEXTS = ["a cat", "", "zwei Hunde"]


class Labeled(str):
    """A str subclass, as some libraries hand out."""


@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        lambda t: np.array(t, dtype=object),
        np.array,
        lambda t: np.array(t, dtype=object)[:, None],
        lambda t: [Labeled(x) for x in t],
        lambda t: [np.str_(x) for x in t],
    ],
)
def test_columns_of_text(make):
    texts = check_texts(make(TEXTS))
    assert texts == TEXTS
    assert all(type(text) is str for text in texts)


def test_pandas_columns():
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(TEXTS, index=[7, 5, 3], name="text")
    for column in (series, series.astype("string"), series.astype("category"), series.to_frame()):
        assert check_texts(column) == TEXTS
    with pytest.raises(ValueError, match="two has 2 columns"):
        check_texts(pandas.DataFrame({"a": TEXTS, "b": TEXTS}), name="two")
    for missing in (None, np.nan, pandas.NA):
        with pytest.raises(ValueError, match=re.escape("X[1] is missing")):
            check_texts(pandas.Series(["a", missing], dtype=object))
    with pytest.raises(ValueError, match=re.escape("X[1] is missing")):
        check_texts(pandas.Series(["a", None], dtype="string"))


def test_polars_columns():
    polars = pytest.importorskip("polars")
    series = polars.Series("text", TEXTS)
    assert check_texts(series) == TEXTS
    assert check_texts(polars.DataFrame({"text": TEXTS})) == TEXTS
    with pytest.raises(ValueError, match=re.escape("X[1] is missing")):
        check_texts(polars.Series("text", ["a", None]))


def test_input_is_not_shared():
    given_list = list(TEXTS)
    check_texts(given_list).append("more")
    assert given_list == TEXTS


@pytest.mark.parametrize("value", [3, 2.5, b"bytes", ["nested"], ("a", "b"), True, object(), np.float32(1)])
def test_position_of_a_wrong_element(value):
    with pytest.raises(TypeError, match=re.escape("sentences[2] is of type")):
        check_texts(["a", "b", value], name="sentences")


@pytest.mark.parametrize("value", [None, float("nan"), np.nan, np.float32("nan")])
def test_position_of_a_missing_element(value):
    with pytest.raises(ValueError, match=re.escape("X[1] is missing")):
        check_texts(["a", value])


@pytest.mark.parametrize("X", ["one text", np.array("one text"), np.array([["a", "b"]]), np.zeros((3, 2))])
def test_not_one_column(X):
    with pytest.raises(ValueError, match=r"^X "):
        check_texts(X)


@pytest.mark.parametrize("X", [None, 3, b"bytes", {"a"}, {"a": 1}, iter(["a"])])
def test_not_a_column(X):
    with pytest.raises(TypeError, match=r"X is a .*expected a list"):
        check_texts(X)


@pytest.mark.parametrize("X", [[], (), np.array([], dtype=object), np.empty((0, 1), dtype=object)])
def test_empty(X):
    with pytest.raises(ValueError, match=re.escape("0 sample(s)")):
        check_texts(X)


def test_numeric_array_names_the_first_position():
    with pytest.raises(TypeError, match=re.escape("X[0] is of type float")):
        check_texts(np.zeros(3))


def test_long_values_are_shortened_in_messages():
    with pytest.raises(TypeError) as caught:
        check_texts([b"x" * 10_000])
    assert len(str(caught.value)) < 200


@given(st.lists(st.text(), min_size=1))
def test_any_text_passes_unchanged(texts):
    assert check_texts(texts) == texts
    assert check_texts(np.array(texts, dtype=object)) == texts


WORDS = ["a cat", "a dog", "it rains", "a cat"]
INDEX = [7, 7, 0, 3]


class Letters(TransformerMixin, BaseEstimator):
    """How often a text has each letter."""

    def fit(self, X, y=None):
        check_texts(X)
        return self

    def transform(self, X):
        return np.array([[text.count(letter) for letter in "acdgirstno"] for text in check_texts(X)], float)


def series(dtype=None):
    return pd.Series(WORDS, index=INDEX, dtype=dtype)


def arrow(method):
    pa = pytest.importorskip("pyarrow")
    return method(pa)


COLUMNS = {
    "values": lambda: series().values,
    "array": lambda: series().array,
    "of objects": lambda: series(object).array,
    "unique": lambda: series("string").unique(),
    "string array": lambda: series("string").array,
    "Categorical": lambda: pd.Categorical(WORDS),
    "categories": lambda: series("category"),
    "Index": lambda: pd.Index(WORDS),
    "frame": lambda: series().to_frame("text"),
    "string[pyarrow]": lambda: arrow(lambda pa: series("string[pyarrow]").values),
    "ArrowDtype": lambda: arrow(lambda pa: series(pd.ArrowDtype(pa.string()))),
    "ArrowDtype, values": lambda: arrow(lambda pa: series(pd.ArrowDtype(pa.string())).values),
    "ArrowDtype, frame": lambda: arrow(lambda pa: series(pd.ArrowDtype(pa.string())).to_frame("text")),
    "pyarrow": lambda: arrow(lambda pa: pa.array(WORDS)),
    "pyarrow, chunks": lambda: arrow(lambda pa: pa.chunked_array([WORDS[:1], WORDS[1:]])),
    "pyarrow, table": lambda: arrow(lambda pa: pa.table({"text": WORDS})),
    "polars": lambda: pytest.importorskip("polars").Series(WORDS),
    "polars frame": lambda: pytest.importorskip("polars").DataFrame({"text": WORDS}),
}


@pytest.fixture(params=COLUMNS)
def column(request):
    return COLUMNS[request.param]()


def test_column_of_text(column):
    expected = list(dict.fromkeys(WORDS)) if len(column) == 3 else WORDS  # "unique" lists each one once
    texts = check_texts(column)
    assert texts == expected
    assert all(type(text) is str for text in texts)


def test_wherever_texts_are_taken(column):
    """Letters learn nothing from what they are fitted on, so that both scores are the same."""
    pairs = [("a cat", "a dog"), ("it rains", "I sing"), ("a cat", "it rains"), ("I sing", "a dog")] * 3
    y = [3.0, 4.0, 1.0, 2.0] * 3
    model = CosineSimilarityRegressor(Letters(), extra=column).fit(pairs)
    result = evaluate_pairs(Letters(), pairs, y, fit_on=column, n_resamples=0)
    assert model.score(pairs, y) == pytest.approx(result["spearman"] / 100)
    suggest_calibrator(Letters(), pairs, y, extra=column, n_resamples=100)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pd.array(["a", pd.NA], dtype="string"),
        lambda: pd.Series(["a", None]).astype("category"),
        lambda: pd.DataFrame({"text": ["a", None]}),
        lambda: arrow(lambda pa: pd.array(["a", None], dtype=pd.ArrowDtype(pa.string()))),
        lambda: arrow(lambda pa: pa.array(["a", None])),
        lambda: pytest.importorskip("polars").Series(["a", None]),
    ],
)
def test_missing_text(make):
    with pytest.raises(ValueError, match=r"X\[1\] is missing"):
        check_texts(make())


def test_numbers_are_no_texts():
    with pytest.raises(TypeError, match=r"X\[0\] is of type int"):
        check_texts(pd.array([1, 2]))


@pytest.mark.parametrize("dtype", ["string", "category", object])
def test_pairs_in_two_columns(dtype):
    frame = pd.DataFrame([("a cat", "a dog"), ("it rains", "I sing")], index=[5, 5], columns=["x", "y"])
    expected = CosineSimilarityRegressor(Letters()).fit(frame.to_numpy()).predict(frame.to_numpy())
    typed = frame.astype(dtype)
    for pairs in (typed, typed.values):
        np.testing.assert_array_equal(
            CosineSimilarityRegressor(Letters()).fit(pairs).predict(pairs), expected
        )
