"""Flows of a strength below 1: the whitening before and the spectrum after them are exported too."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from skflow.calibrators import NormalizingFlowCalibrator
from skflow.embedders import BertEmbedder
from skflow.export import CalibrationModule, to_onnx, to_sentence_transformer

from .conftest import assert_close


@pytest.fixture(name="X")
def fixture_x():
    rng = np.random.RandomState(0)
    return (rng.standard_normal((300, 10)) @ rng.standard_normal((10, 10)) + 2).astype(np.float32)


@pytest.mark.parametrize("scale", [1, 1e-25])
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


@pytest.mark.parametrize("strength", [0.0, 0.5])
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_pipeline(pooling, strength, tiny_bert, texts, transform):
    # The layer normalization at the end leaves a direction of rounding errors, which depend on the batch.
    flow = NormalizingFlowCalibrator(strength=strength, max_epochs=5, random_state=0)
    pipeline = make_pipeline(BertEmbedder(tiny_bert, layers=-1, pooling=pooling), flow)
    expected = transform(pipeline, texts)
    model = to_sentence_transformer(pipeline)
    assert_close(model.encode(texts), expected)
    assert_close(model.encode(texts, batch_size=1), expected)
