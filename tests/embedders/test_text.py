import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from skflow import CosineSimilarityRegressor
from skflow._texts import check_texts

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


def _pandas_arrays(texts):
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    series = pandas.Series(texts)
    arrow = pandas.ArrowDtype(pyarrow.string())
    dtypes = (object, "string[python]", "string[pyarrow]", arrow, "category")
    columns = [
        array for dtype in dtypes for c in [series.astype(dtype)] for array in (c.values, c.array, c.unique())
    ]
    columns += [series.values, series.array, series.unique(), pandas.Categorical(texts), pandas.Index(texts)]
    columns += [
        pyarrow.array(texts),
        pyarrow.chunked_array([texts[:1], texts[1:]]),
        pyarrow.table({"a": texts}),
    ]
    columns += [series.astype(arrow).to_frame().set_index([[1] * len(texts)])]
    return columns


def test_extension_arrays():
    for column in _pandas_arrays(TEXTS):
        texts = check_texts(column)
        assert texts == TEXTS
        assert all(type(text) is str for text in texts)


def test_missing_in_extension_arrays():
    for column in _pandas_arrays(["a", None]):
        with pytest.raises(ValueError, match=re.escape("X[1] is missing")):
            check_texts(column)


def test_numbers_in_extension_arrays():
    pandas = pytest.importorskip("pandas")
    for column in (pandas.array([1, 2], dtype="Int64"), pandas.Categorical([1, 2])):
        with pytest.raises(TypeError, match=re.escape("X[0] is of type int (1)")):
            check_texts(column)


def test_extension_arrays_reach_the_estimators():
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    texts = ["cat dog", "dog owl", "owl hen", "hen cat"]
    column = pandas.Series(texts, dtype="string[pyarrow]")
    pairs = [("cat dog", "dog owl"), ("owl hen", "hen cat"), ("cat dog", "owl hen")]
    frame = pandas.DataFrame(pairs, columns=["one", "two"], index=[3, 3, 1]).astype("string[pyarrow]")
    encoder = TfidfVectorizer()
    expected = CosineSimilarityRegressor(encoder, extra=texts).fit(pairs).predict(pairs)
    for extra in (column.values, column, column.to_frame(), pandas.Categorical(texts)):
        regressor = CosineSimilarityRegressor(encoder, extra=extra).fit(frame)
        np.testing.assert_array_equal(regressor.predict(frame), expected)
    column[1] = pandas.NA
    with pytest.raises(ValueError, match=re.escape("extra[1] is missing (<NA>)")):
        CosineSimilarityRegressor(encoder, extra=column.values).fit(pairs)


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
