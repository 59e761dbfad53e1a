"""What mypy makes of a user's program."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("user_program.py")


def run_mypy(path, cache):
    root = Path(__file__).parents[2]
    # --config-file= leaves out this project's settings, which a user does not have.
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent"]
    command += ["--ignore-missing-imports", f"--cache-dir={cache}", str(path)]
    environment = {**os.environ, "MYPYPATH": str(root)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_program_under_strict_rules(tmp_path):
    """The program asserts its types, and marks the errors that mypy must find."""
    pytest.importorskip("mypy")
    done = run_mypy(PROGRAM, tmp_path)
    assert done.returncode == 0, done.stdout
    # Without the marks they are errors: a misspelled method, argument and value.
    unmarked = tmp_path / "unmarked.py"
    text = PROGRAM.read_text(encoding="utf-8")
    unmarked.write_text(text.replace("  # type: ignore", "  # "), encoding="utf-8")
    done = run_mypy(unmarked, tmp_path)
    assert done.stdout.count("error:") == 3
    assert 'has no attribute "transfrom"' in done.stdout
