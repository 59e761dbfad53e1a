"""The calibrators on real vectors, and on a file larger than they may copy: ``pytest -m slow``."""

import subprocess
import sys

import numpy as np
import pytest

from skflow import BertEmbedder, NormalizingFlowCalibrator
from skflow.datasets import load_sts
from skflow.datasets._sts import TASKS

pytestmark = pytest.mark.slow


def sentences_of(task, shared):
    return load_sts(task, data_home=shared / "data" / "senteval").pairs.T.ravel().tolist()


def assert_useful(calibrator, X):
    Z = calibrator.transform(X)
    assert np.isfinite(Z).all()
    assert np.isfinite(calibrator.score_samples(X)).all()
    assert np.isfinite(calibrator.loss_curve_).all()
    assert calibrator.loss_curve_[-10:].mean() < calibrator.loss_curve_[:10].mean()


@pytest.mark.parametrize("task", TASKS)
def test_cls_vectors_of_every_task(task, minilm, shared):
    # A public port of BERT-flow ends in NaN for 3 of these 21 fits; three of the features are constant.
    X = BertEmbedder(minilm, layers="last", pooling="cls").transform(sentences_of(task, shared))
    for seed in range(3):
        assert_useful(NormalizingFlowCalibrator(random_state=seed).fit(X), X)


@pytest.mark.parametrize("batch_size", [2, 4])
def test_small_batches(batch_size, minilm, shared):
    # The same port ends in NaN for 3 of these 6 fits.
    X = BertEmbedder(minilm, layers="last", pooling="mean").transform(sentences_of("stsb", shared))
    for seed in range(3):
        assert_useful(NormalizingFlowCalibrator(batch_size=batch_size, random_state=seed).fit(X), X)


MEASURE = """
import sys
import numpy as np
from skflow import {calibrator}

def anonymous():
    status = open("/proc/self/status").read()
    return int(status.split("RssAnon:")[1].split()[0]) / 1024

X = np.load(sys.argv[1], mmap_mode="r")
{calibrator}({options}).fit(X[:1000])
before = anonymous()
peak = before
import threading
done = threading.Event()
def watch():
    global peak
    while not done.wait(0.02):
        peak = max(peak, anonymous())
thread = threading.Thread(target=watch)
thread.start()
fitted = {calibrator}({options}).fit(X)
done.set()
thread.join()
assert np.isfinite(fitted.transform(X[::1000])).all()
print(peak - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads RssAnon from /proc")
@pytest.mark.parametrize(
    ("calibrator", "options"),
    [
        ("NormalizingFlowCalibrator", "max_epochs=0.2, batch_size=256, random_state=0"),
        ("WhiteningCalibrator", ""),
        ("NATSVCalibrator", ""),
        ("StandardNormalizationCalibrator", ""),
    ],
)
def test_memory_of_a_fit_on_a_file_of_3_gigabytes(calibrator, options, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "million.npy"
    if not path.exists():
        X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(1_000_000, 768))
        rng = np.random.default_rng(0)
        for start in range(0, len(X), 10_000):
            X[start : start + 10_000] = 0.1 * rng.standard_normal((10_000, 768), dtype=np.float32) + 1
        X.flush()
        del X
    code = MEASURE.format(calibrator=calibrator, options=options)
    result = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert float(result.stdout) < 500
