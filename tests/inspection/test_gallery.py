"""The scripts of the gallery run, as the gallery runs them."""

import runpy
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[2] / "examples").glob("plot_*.py"))


def test_there_is_a_script_for_every_display():
    text = "".join(script.read_text() for script in SCRIPTS)
    from skflow import inspection

    assert [n for n in inspection.__all__ if n.endswith("Display") and n not in text] == []


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
def test_script(script, minilm, monkeypatch, axes):
    pytest.importorskip("rapidfuzz")
    pytest.importorskip("wordfreq")
    monkeypatch.setattr(sys, "argv", [str(script)])
    plt = sys.modules["matplotlib.pyplot"]
    before, shown = set(plt.get_fignums()), []
    monkeypatch.setattr(plt, "show", lambda: shown.append(set(plt.get_fignums()) - before))
    runpy.run_path(str(script), run_name="__main__")
    assert shown
    assert all(shown)
