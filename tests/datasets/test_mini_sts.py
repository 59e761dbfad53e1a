import numpy as np
import pytest

from skflow.datasets import load_mini_sts, load_published_sts


def test_mini_sts():
    data = load_mini_sts()
    n = len(data.score)
    assert n >= 300
    assert data.pairs.shape == (n, 2)
    assert data.kind.shape == (n,)
    assert all(type(text) is str and text.strip() == text for text in data.pairs.ravel())
    assert data.feature_names == ["sentence1", "sentence2"]
    assert data.target_names == ["score"]
    assert str(n) in data.DESCR
    # Spread over the scale: no part of it holds nearly everything, none is empty.
    counts, _ = np.histogram(data.score, bins=5, range=(0, 5))
    assert counts.min() >= n / 20
    assert counts.max() <= n / 2
    # No pair stands there twice, whichever way round.
    assert len({frozenset(pair) for pair in data.pairs.tolist()}) == n


def test_pairs_as_x_and_y_and_as_frame():
    data = load_mini_sts()
    pairs, score = load_mini_sts(return_X_y=True)
    assert np.array_equal(pairs, data.pairs)
    assert np.array_equal(score, data.score)
    pytest.importorskip("pandas")
    frame = load_mini_sts(as_frame=True)
    assert list(frame.frame.columns) == ["kind", "score", "sentence1", "sentence2"]
    assert list(frame.pairs.columns) == data.feature_names
    assert frame.pairs.to_numpy().tolist() == data.pairs.tolist()
    pairs, score = load_mini_sts(return_X_y=True, as_frame=True)
    assert pairs.equals(frame.pairs)
    assert score.tolist() == data.score.tolist()


def test_published_figures_are_those_of_the_reference(shared):
    published = load_published_sts()
    text = (shared / "reference" / "published.tsv").read_text(encoding="utf-8").splitlines()
    columns = text[1].removeprefix("# ").split("\t")
    rows = [dict(zip(columns, line.split("\t"), strict=True)) for line in text[2:]]
    assert len(rows) == len(published.model) == len(published.source) == 34
    for row, model, source, table, figures in zip(
        rows, published.model, published.source, published.table, published.spearman, strict=True
    ):
        assert (row["model"], row["source"], row["table"]) == (model, source, table)
        assert [float(row[task]) for task in published.tasks] == figures.tolist()


def test_published_figures_say_how_they_were_aggregated():
    published = load_published_sts()
    kinds = dict(zip(published.source, published.aggregate, strict=True))
    assert kinds == {"Reimers2019": "all", "Li2020": "wmean", "Su2021": "wmean", "Gao2021-all": "all"}
    assert set(published.references) == set(published.source)
    assert all("arXiv:" in reference for reference in published.references.values())
