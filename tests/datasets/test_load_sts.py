import csv
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skflow.datasets import get_data_home, load_sts

from .._sts_files import (
    SUBSETS,
    glue_lines,
    pairs,
    sick_lines,
    stsb_lines,
    write,
    write_semeval,
    write_senteval,
)

# Numbers of scored pairs: those of the official releases, as every paper on these tasks counts them.
N_PAIRS = {
    "sts12": 3108,
    "sts13": 1500,
    "sts14": 3750,
    "sts15": 3000,
    "sts16": 1186,
    "stsb": 8628,
    "sickr": 9927,
}


@pytest.fixture
def senteval(tmp_path):
    return write_senteval(tmp_path / "data")


# The official files


@pytest.mark.parametrize("task", N_PAIRS)
def test_no_row_of_the_official_files_is_lost(shared, task):
    data = load_sts(task, shared / "data" / "senteval")
    n = N_PAIRS[task]
    assert data.pairs.shape == (n, 2)
    assert data.score.shape == data.subset.shape == data.split.shape == (n,)
    assert data.score.dtype == np.float64
    assert all(type(text) is str and text.strip() for text in data.pairs.ravel())
    assert not any(end in text for text in data.pairs.ravel() for end in "\t\r\n")
    assert data.score.min() >= (1 if task == "sickr" else 0)
    assert data.score.max() == 5


def test_official_subsets_and_splits(shared):
    home = shared / "data" / "senteval"
    sts16 = load_sts("sts16", home)
    subsets, counts = np.unique(sts16.subset.astype(str), return_counts=True)
    # Scored pairs of each subset as the paper of SemEval-2016 Task 1 lists them (doi:10.18653/v1/S16-1081).
    assert dict(zip(subsets.tolist(), counts.tolist(), strict=True)) == {
        "answer-answer": 254,
        "headlines": 249,
        "plagiarism": 230,
        "postediting": 244,
        "question-question": 209,
    }
    for task, sizes in {"stsb": (5749, 1500, 1379), "sickr": (4500, 500, 4927)}.items():
        for split, size in zip(("train", "dev", "test"), sizes, strict=True):
            data = load_sts(task, home, split)
            assert len(data.pairs) == size
            assert set(data.split) == {split}
            assert set(data.subset) == {task}
    assert set(load_sts("stsb", home).genre) == {"main-captions", "main-news", "main-forums", "main-forum"}
    assert set(load_sts("sickr", home).entailment) == {"ENTAILMENT", "NEUTRAL", "CONTRADICTION"}


def test_quotes_are_text(shared):
    home = shared / "data" / "senteval"
    raw = (home / "STS/STSBenchmark/sts-train.csv").read_text(encoding="utf-8")
    data = load_sts("stsb", home, "train")
    kept = sum(text.count('"') for text in data.pairs.ravel())
    assert kept == raw.count('"') > 0


@pytest.mark.parametrize(
    "name",
    [
        "STS/STS12-en-test/STS.input.MSRvid.txt",
        "STS/STS16-en-test/STS.gs.headlines.txt",
        "STS/STSBenchmark/sts-test.csv",
        "SICK/SICK_test_annotated.txt",
    ],
)
@pytest.mark.parametrize("fraction", [0.31, 0.5, 0.987, 1])
def test_a_truncated_official_file_is_an_error_wherever_it_is_cut(shared, tmp_path, name, fraction):
    home = tmp_path / "data"
    shutil.copytree(shared / "data" / "senteval", home, copy_function=shutil.copyfile)
    for path in (home, *home.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    path = home / name
    whole = path.read_bytes()
    task = {"STS12": "sts12", "STS16": "sts16", "STSBe": "stsb", "SICK_": "sickr"}[name.split("/")[1][:5]]
    rough = min(int(len(whole) * fraction), len(whole) - 1)
    line_end = whole.index(b"\n", rough) + 1
    # Inside a line, and before the end of a line that is otherwise whole.
    for cut in (rough - 9, line_end - 4, line_end - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match=rf"{path.name}:\d+: "):
            load_sts(task, home)
    path.write_bytes(whole)
    load_sts(task, home)


@pytest.mark.parametrize(
    ("task", "name", "n_lines"), [("sickr", "SICK/SICK_test_annotated.txt", 1), ("stsb", "dev.tsv", 1)]
)
def test_nothing_after_the_header_is_an_error(shared, tmp_path, task, name, n_lines):
    if task == "sickr":
        shutil.copytree(
            shared / "data" / "senteval" / "SICK", tmp_path / "SICK", copy_function=shutil.copyfile
        )
        for path in (tmp_path / "SICK", *(tmp_path / "SICK").iterdir()):
            path.chmod(0o755 if path.is_dir() else 0o644)
    else:
        for part in ("train", "dev"):
            write(tmp_path / f"{part}.tsv", glue_lines([("rain", "sun", 0.5)]))
    path = tmp_path / name
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:n_lines]))
    with pytest.raises(ValueError, match=rf"{path.name}:1: no pairs"):
        load_sts(task, tmp_path)


def test_both_files_of_a_subset_cut_in_the_same_line(shared, tmp_path):
    official = shared / "data" / "senteval/STS/STS13-en-test"
    for path in official.iterdir():
        lines = path.read_bytes().splitlines(keepends=True)
        text = b"".join(lines[:-5])[:-2] if "FNWN" in path.name else b"".join(lines)
        (tmp_path / path.name).write_bytes(text)
    message = r"STS\.input\.FNWN\.txt:184: truncated inside this line, pair 184 of 189"
    with pytest.raises(ValueError, match=message):
        load_sts("sts13", tmp_path)


def test_the_first_lines_of_an_official_file_are_read_with_a_warning(shared, tmp_path):
    official = shared / "data" / "senteval/STS/STSBenchmark"
    for split in ("train", "dev", "test"):
        lines = (official / f"sts-{split}.csv").read_bytes().splitlines(keepends=True)
        (tmp_path / f"sts-{split}.csv").write_bytes(b"".join(lines[:50]))
    with pytest.warns(UserWarning, match="do not compare") as caught:
        assert len(load_sts("stsb", tmp_path).pairs) == 150
    for warning, (split, n) in zip(caught, [("train", 5749), ("dev", 1500), ("test", 1379)], strict=True):
        assert f"sts-{split}.csv ends after 50 of the official file's {n} pairs" in str(warning.message)
        assert warning.filename == __file__


# Formats


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends(tmp_path, end):
    write_senteval(tmp_path)
    path = tmp_path / "SICK/SICK_trial.txt"
    write(path, sick_lines([("a b", "c d", 2.5), ("e", "f", 3)]), end)
    assert load_sts("sickr", tmp_path, "dev").pairs.tolist() == [["a b", "c d"], ["e", "f"]]
    path.write_bytes(path.read_bytes().removesuffix(end.encode()))  # the last line may lack its end
    data = load_sts("sickr", tmp_path, "dev")
    assert data.pairs.tolist() == [["a b", "c d"], ["e", "f"]]
    assert set(data.entailment) == {"NEUTRAL"}


def test_unannotated_pairs_are_skipped_and_the_rest_keep_their_scores(senteval):
    made = [("a", "b", None), ("c", "d", 1.5), ("e", "f", None), ("g", "h", 4.0), ("i", "j", None)]
    write_semeval(senteval / "STS/STS16-en-test", "plagiarism", made)
    data = load_sts("sts16", senteval)
    of_it = data.subset == "plagiarism"
    assert data.pairs[of_it].tolist() == [["c", "d"], ["g", "h"]]
    assert data.score[of_it].tolist() == [1.5, 4.0]


def test_characters_that_look_like_line_ends_or_quotes_stay_in_the_sentence(senteval):
    first, second = 'He said "no\u2028 \x0b \x85', "'\"never\"' \\t #"
    write_semeval(senteval / "STS/STS13-en-test", "FNWN", [(first, second, 3.0)])
    data = load_sts("sts13", senteval)
    assert data.pairs[data.subset == "FNWN"].tolist() == [[first, second]]


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]), min_size=1),
            st.text(st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]), min_size=1),
            st.one_of(st.none(), st.floats(0, 5)),
        ),
        min_size=1,
    )
)
def test_what_was_written_is_read(tmp_path_factory, made):
    home = write_senteval(tmp_path_factory.mktemp("data"), n=1)
    made = [(a.removeprefix("\ufeff") or "x", b, s) for a, b, s in made]  # a byte order mark is no text
    write_semeval(home / "STS/STS13-en-test", "FNWN", made)
    data = load_sts("sts13", home)
    of_it = data.subset == "FNWN"
    assert data.pairs[of_it].tolist() == [[a, b] for a, b, s in made if s is not None]
    assert data.score[of_it].tolist() == [s for *_, s in made if s is not None]


# Layouts


def test_order_is_that_of_the_files(senteval):
    data = load_sts("sts12", senteval)
    assert list(dict.fromkeys(data.subset)) == list(SUBSETS["sts12"])
    assert set(data.split) == {"test"}
    expected = [pair for extra, s in enumerate(SUBSETS["sts12"]) for pair in pairs(s, 6 + extra)]
    assert data.pairs.tolist() == [[a, b] for a, b, _ in expected]
    assert data.score.tolist() == [score for *_, score in expected]


@pytest.mark.parametrize(
    ("task", "directory", "prefix"),
    [
        ("sts12", "test-gold", "STS"),
        ("sts12", "STS2012-en-test/test-gold", "STS"),
        ("sts13", "test-gs", "STS"),
        ("sts14", "sts-en-test-gs-2014", "STS"),
        ("sts15", "test_evaluation_task2a", "STS"),
        ("sts16", "sts2016-english-with-gs-v1.0", "STS2016"),
        ("sts16", ".", "STS2016"),
        ("sts14", ".", "STS"),
    ],
)
def test_the_organisers_layout(tmp_path, task, directory, prefix):
    for subset in SUBSETS[task]:
        made = pairs(subset, 4)
        # The files of 2016 have two more columns, the source of each sentence.
        if prefix == "STS2016":
            made = [(a, f"{b}\tsource 1\tsource 2", s) for a, b, s in made]
        write_semeval(tmp_path / directory, subset, made, prefix)
    data = load_sts(task, tmp_path)
    assert data.pairs.tolist() == [[a, b] for s in SUBSETS[task] for a, b, _ in pairs(s, 4)]


@pytest.mark.parametrize("directory", ["STS-B", "glue_data/STS-B", "."])
def test_the_glue_layout(tmp_path, directory):
    train = [('"Yes", he said', 'He said "yes', 4.8), ("a cat", "a dog", 1.0), ("x", "y", 0.0)]
    write(tmp_path / directory / "train.tsv", glue_lines(train))
    write(tmp_path / directory / "dev.tsv", glue_lines([("rain", "sun", 0.5)]))
    data = load_sts("stsb", tmp_path)
    assert data.pairs.tolist() == [[a, b] for a, b, _ in train] + [["rain", "sun"]]
    assert data.score.tolist() == [4.8, 1.0, 0.0, 0.5]
    assert data.split.tolist() == ["train"] * 3 + ["dev"]
    assert set(data.genre) == {"main-news"}
    with pytest.raises(ValueError, match=r"no split 'test', only \['train', 'dev'\]"):
        load_sts("stsb", tmp_path, "test")


def test_the_one_file_of_sick(shared, tmp_path):
    """As its authors publish it: made of the three files of SemEval, in the order of the pairs' numbers."""
    rows = []
    for name, split in (("train", "TRAIN"), ("trial", "TRIAL"), ("test_annotated", "TEST")):
        lines = (shared / f"data/senteval/SICK/SICK_{name}.txt").read_text(encoding="utf-8").splitlines()[1:]
        for line in lines:
            number, first, second, score, label = line.split("\t")
            more = ["A_entails_B", "B_neutral_A", first, second, "FLICKR", "FLICKR"]
            rows.append([number, first, second, label, score, *more, split])
    rows.sort(key=lambda row: int(row[0]))
    header = "pair_ID sentence_A sentence_B entailment_label relatedness_score entailment_AB entailment_BA "
    header += "sentence_A_original sentence_B_original sentence_A_dataset sentence_B_dataset SemEval_set"
    write(tmp_path / "SICK.txt", ["\t".join(row) for row in (header.split(), *rows)])
    official = load_sts("sickr", shared / "data/senteval")
    data = load_sts("sickr", tmp_path)
    for name in ("pairs", "score", "split", "entailment"):
        np.testing.assert_array_equal(data[name], official[name])


def write_hub(path, pairs, scores, column):
    if path.suffix == ".parquet":
        polars = pytest.importorskip("polars")
        path.parent.mkdir(parents=True, exist_ok=True)
        columns = dict(zip(("sentence1", "sentence2"), zip(*pairs, strict=True), strict=True))
        polars.DataFrame({"idx": range(len(pairs)), **columns, column: scores}).write_parquet(path)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["sentence1", "sentence2", column])
        rows.writerows([*pair, score] for pair, score in zip(pairs, scores, strict=True))


@pytest.mark.parametrize(
    ("name", "dev", "column", "scale"),
    [
        ("{}.csv", "validation", "score", 5),
        ("{}.csv", "dev", "label", 1),
        ("{}.parquet", "validation", "score", 5),
        ("data/{}-00000-of-00001.parquet", "validation", "label", 1),
    ],
)
def test_stsb_of_the_hub(shared, tmp_path, name, dev, column, scale):
    """The benchmark's own pairs, written the way that the hub holds them."""
    for split in ("train", "dev", "test"):
        official = load_sts("stsb", shared / "data/senteval", split)
        path = tmp_path / name.format(dev if split == "dev" else split)
        write_hub(path, official.pairs.tolist(), (official.score / scale).tolist(), column)
    official, data = load_sts("stsb", shared / "data/senteval"), load_sts("stsb", tmp_path)
    for field in ("pairs", "split"):
        np.testing.assert_array_equal(data[field], official[field])
    np.testing.assert_allclose(data.score, official.score, rtol=1e-15)


def test_hidden_scores_of_the_hub_are_not_annotated(tmp_path):
    for name, scores in (("train", [5.0, 0.5]), ("validation", [1.0, 4.0]), ("test", [-1.0, -1.0])):
        write_hub(tmp_path / f"{name}.csv", [('a "b", c', "line\nline"), ("x", "y")], scores, "label")
    data = load_sts("stsb", tmp_path)
    assert data.pairs.tolist() == [['a "b", c', "line\nline"], ["x", "y"]] * 2
    assert data.score.tolist() == [5.0, 0.5, 1.0, 4.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sentence1,sentence2\na,b\n", r"train\.csv:1: expected the columns"),
        ("sentence1,sentence2,score\na,b\n", r"train\.csv:2: expected 3 fields as in the header, found 2"),
        ("sentence1,sentence2,score\na,b,7\n", r"train\.csv:2: the score must be a number from 0 to 5"),
        ('sentence1,sentence2,score\n"a,b,3\n', r"train\.csv:2: not a CSV file"),
        ("sentence1,sentence2,score\n", r"train\.csv:1: no pairs"),
    ],
)
def test_a_damaged_table_of_the_hub(tmp_path, text, message):
    (tmp_path / "train.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        load_sts("stsb", tmp_path)


def test_stsb_rows_that_name_their_sources(senteval):
    path = senteval / "STS/STSBenchmark/sts-dev.csv"
    write(path, [f"{line}\tsource 1\tsource 2" for line in stsb_lines([("a", "b", 2.0)], "dev")])
    assert load_sts("stsb", senteval, "dev").pairs.tolist() == [["a", "b"]]


# Errors


def edit(path, line, text):
    lines = path.read_text().split("\n")
    lines[line - 1] = text
    path.write_text("\n".join(lines))


@pytest.mark.parametrize("score", ["high", "nan", "inf", "5.1", "-1", "4_5", "3,5"])
@pytest.mark.parametrize(
    ("task", "name", "template"),
    [
        ("sts12", "STS/STS12-en-test/STS.gs.MSRvid.txt", "{}"),
        ("stsb", "STS/STSBenchmark/sts-test.csv", "g\tf\ty\t1\t{}\ta\tb"),
        ("sickr", "SICK/SICK_train.txt", "1\ta\tb\t{}\tNEUTRAL"),
    ],
)
def test_a_score_that_is_no_number_from_0_to_5(senteval, task, name, template, score):
    edit(senteval / name, 3, template.format(score))
    with pytest.raises(ValueError, match=rf"{name}:3: .*number from 0 to 5, got '{score}'"):
        load_sts(task, senteval)


@pytest.mark.parametrize(
    ("task", "name", "text"),
    [
        ("sts12", "STS/STS12-en-test/STS.input.MSRvid.txt", "one sentence only"),
        ("stsb", "STS/STSBenchmark/sts-test.csv", "g\tf\ty\t1\t2.0\tone sentence"),
        ("sickr", "SICK/SICK_train.txt", "1\ta\tb\t3.0"),
        ("sickr", "SICK/SICK_train.txt", "1\ta\tb\tc\t3.0\tNEUTRAL"),
    ],
)
def test_a_line_that_lacks_or_has_too_many_fields(senteval, task, name, text):
    edit(senteval / name, 4, text)
    with pytest.raises(ValueError, match=rf"{name}:4: expected"):
        load_sts(task, senteval)


@pytest.mark.parametrize(
    ("kept", "n", "message"),
    [
        ("input", 5, r"STS\.gs\.FNWN\.txt:5: the file ends after 5 lines, but .*STS\.input\.FNWN\.txt has 6"),
        ("gs", 2, r"STS\.input\.FNWN\.txt:2: the file ends after 2 lines, but .*STS\.gs\.FNWN\.txt has 6"),
    ],
)
def test_unequal_numbers_of_lines(senteval, kept, n, message):
    other = {"input": "gs", "gs": "input"}[kept]
    path = senteval / f"STS/STS13-en-test/STS.{other}.FNWN.txt"
    write(path, path.read_text().splitlines()[:n])
    with pytest.raises(ValueError, match=message):
        load_sts("sts13", senteval)


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("sts14", "STS/STS14-en-test/STS.gs.images.txt"),
        ("sts14", "STS/STS14-en-test/STS.input.images.txt"),
        ("stsb", "STS/STSBenchmark/sts-dev.csv"),
        ("sickr", "SICK/SICK_trial.txt"),
    ],
)
def test_a_missing_file(senteval, task, name):
    (senteval / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        load_sts(task, senteval)


def test_a_missing_subset_is_no_smaller_task(senteval):
    for kind in ("input", "gs"):
        (senteval / f"STS/STS14-en-test/STS.{kind}.images.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"STS\.input\.images\.txt"):
        load_sts("sts14", senteval)


def test_a_directory_without_the_task(tmp_path):
    write(tmp_path / "notes.txt", ["x"])
    message = r"no files of stsb under .*looked for sts-train\.csv, train\.tsv, .*found notes\.txt.*senteval"
    with pytest.raises(FileNotFoundError, match=message):
        load_sts("stsb", tmp_path)


def test_an_empty_file(senteval):
    (senteval / "SICK/SICK_train.txt").write_bytes(b"")
    with pytest.raises(ValueError, match=r"SICK_train\.txt:1: the file is empty"):
        load_sts("sickr", senteval)


def test_a_header_that_lacks_a_column(tmp_path):
    write(tmp_path / "train.tsv", ["index\tsentence1\tsentence2\tlabel", "0\ta\tb\t1"])
    with pytest.raises(ValueError, match=r"train\.tsv:1: .*'score', 'genre'\] not found"):
        load_sts("stsb", tmp_path)


def test_text_that_is_not_utf8(senteval):
    path = senteval / "STS/STS13-en-test/STS.input.FNWN.txt"
    lines = path.read_bytes().split(b"\n")
    lines[3] = b"caf\xe9\tbar"
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(ValueError, match=r"STS\.input\.FNWN\.txt:4: not UTF-8"):
        load_sts("sts13", senteval)


@pytest.mark.parametrize("task", ["sts17", "STSB", None, 12])
def test_an_unknown_task(tmp_path, task):
    with pytest.raises(ValueError, match="task must be one of"):
        load_sts(task, tmp_path)


def test_an_unknown_split(senteval):
    with pytest.raises(ValueError, match="split must be one of"):
        load_sts("stsb", senteval, "trial")
    with pytest.raises(ValueError, match=r"no split 'train', only \['test'\]"):
        load_sts("sts12", senteval, "train")


# Where the data are


def test_data_home(monkeypatch, tmp_path):
    monkeypatch.setenv("SKFLOW_DATA", str(tmp_path / "from_environment"))
    assert get_data_home() == str(tmp_path / "from_environment")
    assert (tmp_path / "from_environment").is_dir()
    assert get_data_home(tmp_path / "given") == str(tmp_path / "given")
    monkeypatch.delenv("SKFLOW_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert get_data_home() == str(tmp_path / "skflow_data")


def test_load_sts_reads_the_data_home(monkeypatch, tmp_path):
    monkeypatch.setenv("SKFLOW_DATA", str(tmp_path))
    write_senteval(tmp_path / "senteval")  # where fetch_sts puts them
    assert len(load_sts("sickr").pairs) == 18
    assert len(load_sts("sickr", tmp_path).pairs) == 18
    assert len(load_sts("sickr", str(tmp_path / "senteval")).pairs) == 18
