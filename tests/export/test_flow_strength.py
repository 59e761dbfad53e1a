"""Flows of a strength below 1: the whitening before and the spectrum after them are exported too."""

import numpy as np
import pytest

from skflow.calibrators import NormalizingFlowCalibrator
from skflow.export import to_onnx
from skflow.export.modules import CalibrationModule

from .conftest import assert_close


@pytest.fixture(name="X")
def fixture_x():
    rng = np.random.RandomState(0)
    return (rng.standard_normal((300, 10)) @ rng.standard_normal((10, 10)) + 2).astype(np.float32)


@pytest.mark.parametrize("scale", [1, 1e-32])
@pytest.mark.parametrize("strength", [0.0, 0.5, "auto"])
def test_module(X, strength, scale, tmp_path):
    import torch

    X = X * np.float32(scale)
    calibrator = NormalizingFlowCalibrator(strength=strength, max_epochs=5, random_state=0).fit(X)
    module = CalibrationModule(calibrator)
    module.save(str(tmp_path))
    for other in (module, CalibrationModule.load(str(tmp_path))):
        result = other({"sentence_embedding": torch.tensor(X)})["sentence_embedding"].numpy()
        assert_close(result, calibrator.transform(X))


@pytest.mark.parametrize("strength", [0.0, 0.5, "auto"])
@pytest.mark.parametrize("permutation", ["reverse", "lu"])
def test_onnx(X, strength, permutation, tmp_path):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    calibrator = NormalizingFlowCalibrator(
        strength=strength, permutation=permutation, max_epochs=5, random_state=0
    ).fit(X)
    to_onnx(calibrator, tmp_path / "flow.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "flow.onnx")
    assert_close(session.run(["Z"], {"X": X})[0], calibrator.transform(X))
