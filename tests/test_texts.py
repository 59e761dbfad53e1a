"""Columns of text of every library, everywhere that texts are taken."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin

from skflow import CosineSimilarityRegressor
from skflow._texts import check_texts
from skflow.evaluation import evaluate_pairs, suggest_calibrator

TEXTS = ["a cat", "a dog", "it rains", "a cat"]
INDEX = [7, 7, 0, 3]


class Letters(TransformerMixin, BaseEstimator):
    """How often a text has each letter."""

    def fit(self, X, y=None):
        check_texts(X)
        return self

    def transform(self, X):
        return np.array([[text.count(letter) for letter in "acdgirstno"] for text in check_texts(X)], float)


def series(dtype=None):
    return pd.Series(TEXTS, index=INDEX, dtype=dtype)


def arrow(method):
    pa = pytest.importorskip("pyarrow")
    return method(pa)


COLUMNS = {
    "values": lambda: series().values,
    "array": lambda: series().array,
    "of objects": lambda: series(object).array,
    "unique": lambda: series("string").unique(),
    "string array": lambda: series("string").array,
    "Categorical": lambda: pd.Categorical(TEXTS),
    "categories": lambda: series("category"),
    "Index": lambda: pd.Index(TEXTS),
    "frame": lambda: series().to_frame("text"),
    "string[pyarrow]": lambda: arrow(lambda pa: series("string[pyarrow]").values),
    "ArrowDtype": lambda: arrow(lambda pa: series(pd.ArrowDtype(pa.string()))),
    "ArrowDtype, values": lambda: arrow(lambda pa: series(pd.ArrowDtype(pa.string())).values),
    "ArrowDtype, frame": lambda: arrow(lambda pa: series(pd.ArrowDtype(pa.string())).to_frame("text")),
    "pyarrow": lambda: arrow(lambda pa: pa.array(TEXTS)),
    "pyarrow, chunks": lambda: arrow(lambda pa: pa.chunked_array([TEXTS[:1], TEXTS[1:]])),
    "polars": lambda: pytest.importorskip("polars").Series(TEXTS),
    "polars frame": lambda: pytest.importorskip("polars").DataFrame({"text": TEXTS}),
}


@pytest.fixture(params=COLUMNS)
def column(request):
    return COLUMNS[request.param]()


def test_column_of_text(column):
    expected = list(dict.fromkeys(TEXTS)) if len(column) == 3 else TEXTS  # "unique" lists each one once
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
