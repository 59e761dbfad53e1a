"""What is published: names, addresses, the README on PyPI, and what lies beside us in the same folder."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import skflow

ROOT = Path(__file__).parents[1]
PACKAGE = Path(skflow.__file__).parent


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_urls(project):
    assert {"Repository", "Documentation", "Issues", "Changelog"} <= project["urls"].keys()


def test_no_message_or_page_names_the_foreign_distribution():
    """`pip install skflow` brings another project's package."""
    pattern = re.compile(r"""pip install ["'` ]*(-U )?["'`]?skflow|["']skflow\[""")
    files = [*PACKAGE.rglob("*.py"), *(ROOT / "examples").rglob("*.py"), *ROOT.glob("*.rst")]
    files += [*(ROOT / "docs").rglob("*.rst"), ROOT / "pyproject.toml"]
    found = [path.name for path in files if pattern.search(path.read_text(encoding="utf-8"))]
    assert found == []


def test_readme_has_no_relative_link():
    """PyPI shows the README alone."""
    text = (ROOT / "README.rst").read_text(encoding="utf-8")
    targets = re.findall(r"`[^`]*<([^`>]+)>`_|^\.\. (?:image|figure):: (\S+)", text, re.MULTILINE)
    targets = ["".join(groups) for groups in targets]
    assert targets
    assert [target for target in targets if not target.startswith("https://")] == []


@pytest.mark.parametrize("name", ["trainer.py", "models.py", "estimators/dnn.py"])
def test_files_of_the_foreign_package(name, tmp_path):
    """Where our __init__ runs beside files of the TensorFlow package skflow, it says what to do."""
    package = tmp_path / "skflow"
    package.mkdir()
    for own in ("__init__.py", "_installation.py", "_version.py"):
        shutil.copy(PACKAGE / own, package)
    (package / name).parent.mkdir(exist_ok=True)
    (package / name).touch()
    done = subprocess.run(
        [sys.executable, "-c", "import skflow"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "ImportError" in done.stderr
    assert "pip uninstall skflow scikit-bertflow && pip install scikit-bertflow" in done.stderr


@pytest.mark.parametrize(
    "name", ["datasets", "evaluation", "exceptions", "export", "flows", "inspection", "metrics"]
)
def test_subpackages_are_reached_without_an_import_of_their_own(name):
    code = f"import skflow; assert {name!r} in dir(skflow); print(skflow.{name}.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"skflow.{name}"


def test_import_loads_no_heavy_library():
    code = """
import sys, skflow
print(sorted({"torch", "transformers", "sentence_transformers", "matplotlib"} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="module 'skflow' has no attribute 'nothing'"):
        _ = skflow.nothing
