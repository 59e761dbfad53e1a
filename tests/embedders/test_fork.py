"""Processes that are forked while threads load or compute."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

PROGRAM = """
import os, signal, sys, threading, time, warnings
import numpy as np
import torch
from skflow.embedders import BertEmbedder
from skflow.embedders._loading import loaded_models

warnings.simplefilter("ignore")
os.environ["TOKENIZERS_PARALLELISM"] = "false"
torch.set_num_threads(1)
paths, loads = sys.argv[2:], sys.argv[1] == "load"
embedders = [BertEmbedder(path) for path in paths]
texts = [f"the cat {i}" for i in range(200)]
expected = embedders[0].transform(texts)
stop = threading.Event()

def work():
    while not stop.is_set():
        for embedder in embedders:
            if loads:
                loaded_models.clear()
            embedder.transform(texts)

thread = threading.Thread(target=work)
thread.start()
failed = 0
for i in range(6):
    time.sleep(0.05 + 0.013 * i)
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # kills what hangs
        same = np.allclose(embedders[0].transform(texts), expected, rtol=0, atol=1e-5)
        os._exit(0 if same else 1)
    failed += os.waitpid(child, 0)[1] != 0
stop.set()
thread.join()
assert np.allclose(embedders[0].transform(texts), expected, rtol=0, atol=1e-5)
sys.exit(failed)
"""


@pytest.mark.parametrize("work", ["compute", "load"])
def test_fork_while_a_thread_works(tiny_bert, declare, work):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, work, tiny_bert, declare()],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
