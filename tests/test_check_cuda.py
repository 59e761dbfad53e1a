"""benchmarks/check_cuda.py without CUDA: it says so, and a rehearsal finds no mistake in it."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "check_cuda.py"


def run(*options):
    command = [sys.executable, str(SCRIPT), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=500)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a cuda device")
def test_without_cuda():
    result = run()
    assert result.returncode == 2
    assert "no CUDA device" in result.stdout


@pytest.mark.slow
def test_rehearsal():
    result = run("--rehearse")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "FAILED" not in result.stdout
    assert result.stdout.count("speed of") == 7
