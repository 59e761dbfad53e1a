from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from skflow.datasets import load_mini_sts, load_published_sts


@pytest.mark.parametrize(("subset", "n"), [("representative", 1000), ("hard", 398)])
def test_mini_sts(subset, n):
    data = load_mini_sts(subset=subset)
    assert data.pairs.shape == (n, 2)
    assert data.score.shape == data.subset.shape == (n,)
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


def test_representative_pairs_and_unlabeled_sentences():
    data = load_mini_sts()
    assert dict(zip(*np.unique(data.subset.astype(str), return_counts=True), strict=True)) == dict.fromkeys(
        ["answer", "caption", "definition", "headline", "question"], 200
    )
    unlabeled = set(data.unlabeled)
    assert len(data.unlabeled) == len(unlabeled) == 3000
    assert not unlabeled & set(data.pairs.ravel())
    assert all(text and text.strip() == text for text in unlabeled)
    # Words in common tell something of the grade, as in the STS tasks, and not everything.
    overlap = [
        len(a & b) / len(a | b) for a, b in ([set(t.lower().split()) for t in p] for p in data.pairs.tolist())
    ]
    assert 0.3 < spearmanr(overlap, data.score).statistic < 0.8
    # The hard pairs are fewer, and others, and bring no text of their own.
    hard = load_mini_sts(subset="hard")
    assert hard.unlabeled == []
    assert not {frozenset(p) for p in hard.pairs.tolist()} & {frozenset(p) for p in data.pairs.tolist()}


def test_subset_that_does_not_exist():
    with pytest.raises(ValueError, match="subset"):
        load_mini_sts(subset="test")


def test_words_of_wordnet_come_with_its_license():
    folder = Path(load_mini_sts().filename).parent
    license = (folder / "WORDNET_LICENSE.txt").read_text(encoding="utf-8")
    assert "WordNet 3.0 Copyright 2006 by Princeton University.  All rights reserved." in license
    assert len((folder / "wordnet_sentences.txt").read_text(encoding="utf-8").splitlines()) == 2600


def test_pairs_as_x_and_y_and_as_frame():
    data = load_mini_sts()
    pairs, score = load_mini_sts(return_X_y=True)
    assert np.array_equal(pairs, data.pairs)
    assert np.array_equal(score, data.score)
    pytest.importorskip("pandas")
    frame = load_mini_sts(as_frame=True)
    assert list(frame.frame.columns) == ["subset", "score", "sentence1", "sentence2"]
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
