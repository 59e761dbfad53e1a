import csv
import sys

import numpy as np
import pytest

from skflow.datasets import load_sts

from .._sts_files import write, write_senteval

SPLITS = {"train": "train", "dev": "validation", "test": "test"}
PAIRS = [('A "cat", black', "A cat.", 3.8), ("Two\nlines", "Ein Hündchen", 0.4), ("a", "b", 5.0)]


def write_csv(path, pairs, score="score", factor=1.0):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sentence1", "sentence2", score, "idx"])
        writer.writerows([a, b, s if s == -1 else s * factor, i] for i, (a, b, s) in enumerate(pairs))


def write_parquet(path, pairs, dtype):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pandas.DataFrame(pairs, columns=["sentence1", "sentence2", "label"])
    frame.astype({"label": dtype}).to_parquet(path)


@pytest.mark.parametrize("factor", [1.0, 0.2])
@pytest.mark.parametrize(
    "name", ["{}.csv", "data/{}.csv", "stsb/{}.parquet", "data/{}-00000-of-00001.parquet"]
)
def test_the_official_pairs_come_out_of_the_hub_files(shared, tmp_path, name, factor):
    official = load_sts("stsb", shared / "data" / "senteval")
    for split, file in SPLITS.items():
        kept = official.split == split
        pairs = [(a, b, s) for (a, b), s in zip(official.pairs[kept], official.score[kept], strict=True)]
        path = tmp_path / name.format(file)
        if name.endswith("csv"):
            write_csv(path, pairs, factor=factor)
        else:
            write_parquet(path, [(a, b, s * factor) for a, b, s in pairs], np.float32)
    data = load_sts("stsb", tmp_path)
    np.testing.assert_array_equal(data.pairs, official.pairs)
    np.testing.assert_array_equal(data.split, official.split)
    np.testing.assert_allclose(data.score, official.score, rtol=0, atol=1e-6)


def test_csv_is_read_with_its_quotes(tmp_path):
    for name in SPLITS.values():
        write_csv(tmp_path / f"{name}.csv", PAIRS, "label", 0.2)
    data = load_sts("stsb", tmp_path, "dev")
    assert data.pairs.tolist() == [[a, b] for a, b, _ in PAIRS]
    assert data.score.tolist() == [3.8, 0.4, 5.0]


def test_hidden_and_missing_scores_are_left_out(tmp_path):
    write_parquet(tmp_path / "train.parquet", [*PAIRS, ("c", "d", np.nan)], np.float64)
    write_parquet(tmp_path / "validation.parquet", [("low", "scores", 0.5)], np.float32)  # no reason to scale
    write_parquet(tmp_path / "test.parquet", [("a", "b", -1.0)], np.float32)
    data = load_sts("stsb", tmp_path)
    assert data.score.tolist() == [3.8, 0.4, 5.0, 0.5]
    with pytest.raises(ValueError, match="no split 'test'"):
        load_sts("stsb", tmp_path, "test")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sentence1,sentence2\na,b\n", r"test\.csv:1: expected the columns .*'score', 'label'\], found"),
        ("sentence1,sentence2,score\na,b\n", r"test\.csv:2: expected 3 fields as in the header, found 2"),
        ("sentence1,sentence2,score\na,b,7\n", r"test\.csv:2: the score must be a number from 0 to 5"),
        ('sentence1,sentence2,score\na,"b,3', r"test\.csv:2: not a CSV file"),
        ("", r"test\.csv:1: the file is empty"),
        ("sentence1,sentence2,score\n", r"test\.csv:1: no pairs"),
    ],
)
def test_damaged_csv(tmp_path, content, message):
    for name in ("train", "validation"):
        write_csv(tmp_path / f"{name}.csv", PAIRS)
    (tmp_path / "test.csv").write_text(content)
    with pytest.raises(ValueError, match=message):
        load_sts("stsb", tmp_path)


def test_parquet_that_is_damaged_or_cannot_be_read(tmp_path, monkeypatch):
    for name in SPLITS.values():
        write_parquet(tmp_path / f"{name}.parquet", PAIRS, float)
    expected = load_sts("stsb", tmp_path).pairs
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    np.testing.assert_array_equal(load_sts("stsb", tmp_path).pairs, expected)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"needs pyarrow or polars"):
        load_sts("stsb", tmp_path)
    monkeypatch.undo()
    (tmp_path / "test.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(ValueError, match=r"test\.parquet: not a Parquet file"):
        load_sts("stsb", tmp_path)


def sick_lines(data):
    """Return the lines of SICK.txt, which has more columns than are read."""
    parts = {"train": "TRAIN", "dev": "TRIAL", "test": "TEST"}
    lines = [
        "pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score\tentailment_AB\tSemEval_set"
    ]
    for (a, b), score, label, split in zip(data.pairs, data.score, data.entailment, data.split, strict=True):
        lines.append(f"1\t{a}\t{b}\t{label}\t{score}\tA_neutral_B\t{parts[split]}")
    return lines


@pytest.mark.parametrize("directory", ["SICK", "."])
def test_the_official_pairs_come_out_of_sick_txt(shared, tmp_path, directory):
    official = load_sts("sickr", shared / "data" / "senteval")
    write(tmp_path / directory / "SICK.txt", sick_lines(official), end="\r\n")
    data = load_sts("sickr", tmp_path)
    for name in ("pairs", "score", "split", "entailment"):
        np.testing.assert_array_equal(data[name], official[name])


def test_sick_txt_with_an_unknown_or_cut_split(tmp_path):
    lines = sick_lines(load_sts("sickr", write_senteval(tmp_path / "senteval")))
    path = tmp_path / "SICK" / "SICK.txt"
    write(path, lines)
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(ValueError, match=rf"SICK\.txt:{len(lines)}: SemEval_set must be .*got 'TES'"):
        load_sts("sickr", tmp_path / "SICK")


def test_a_missing_task_names_what_was_sought_and_found(tmp_path):
    write(tmp_path / "notes.txt", ["text"])
    with pytest.raises(FileNotFoundError, match=r"looked for sts-train\.csv, .*; found notes\.txt\."):
        load_sts("stsb", tmp_path)
