"""A calibrator that says what it computes exports itself; one that does not is refused by name."""

from typing import ClassVar

import numpy as np
import pytest
import torch
from sklearn.base import OneToOneFeatureMixin
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from skflow.calibrators import NormalizingFlowCalibrator, WhiteningCalibrator
from skflow.calibrators._base import BaseCalibrator
from skflow.export import CalibrationModule, to_onnx

from .conftest import assert_close


class RangeCalibrator(OneToOneFeatureMixin, BaseCalibrator):
    """Shifts features by their minimum, divides them by their range, and adds a rotation."""

    _fitted_shapes: ClassVar[dict] = {"min_": ("n_features_in_",)}
    _parameter_constraints: ClassVar[dict] = {}

    def fit(self, X, y=None):
        X = self._validate_rows(X, reset=True)
        self.min_, self.range_ = X.min(axis=0).astype(float), np.ptp(X, axis=0).astype(float)
        self.rotation_ = np.linalg.qr(X[: X.shape[1]].astype(float))[0]
        return self

    def transform(self, X):
        check_is_fitted(self)
        X = self._validate_rows(X, reset=False)
        return ((X - self.min_) / self.range_ @ self.rotation_).astype(X.dtype)

    def __skflow_operations__(self):
        return np.dtype(np.float64), [
            ("subtract", self.min_),
            ("divide", self.range_),
            ("multiply", self.rotation_),
        ]


class Doubled(WhiteningCalibrator):
    def transform(self, X):
        return 2 * super().transform(X)


class Renamed(WhiteningCalibrator):
    """Computes what its base does."""


@pytest.fixture(name="X")
def fixture_x():
    return (np.random.RandomState(0).standard_normal((60, 5)) * 3 + 1).astype(np.float32)


def run_onnx(calibrator, X, path):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    to_onnx(calibrator, path)
    return onnxruntime.InferenceSession(path).run(["Z"], {"X": X})[0]


def run_torch(calibrator, X):
    return CalibrationModule(calibrator)({"sentence_embedding": torch.tensor(X)})[
        "sentence_embedding"
    ].numpy()


@pytest.mark.parametrize("kind", [RangeCalibrator, Renamed])
def test_a_class_of_ones_own(kind, X, tmp_path):
    calibrator = kind().fit(X)
    expected = calibrator.transform(X)
    assert_close(run_torch(calibrator, X), expected)
    assert_close(run_onnx(calibrator, X, tmp_path / "a.onnx"), expected)
    chain = make_pipeline(calibrator, WhiteningCalibrator(strength=0.5)).fit(X)
    assert_close(run_onnx(chain, X, tmp_path / "b.onnx"), chain.transform(X))


def test_an_overridden_transform_without_its_operations(X, tmp_path):
    calibrator = Doubled().fit(X)
    with pytest.raises(TypeError, match=r"the Doubled cannot be exported; expected a calibrator"):
        CalibrationModule(calibrator)
    pytest.importorskip("onnx")
    with pytest.raises(TypeError, match=r"step 'doubled' \(Doubled\) cannot be exported"):
        to_onnx(make_pipeline(calibrator), tmp_path / "a.onnx")


@pytest.mark.parametrize("changed", [{"strength": 0.3}, {"strength": "auto"}, {"method": "zca"}])
def test_parameters_that_transform_reads_count(changed, X, tmp_path):
    calibrator = WhiteningCalibrator(strength=1.0).fit(X).set_params(**changed)
    assert_close(run_torch(calibrator, X), calibrator.transform(X))
    assert_close(run_onnx(calibrator, X, tmp_path / "a.onnx"), calibrator.transform(X))


@pytest.mark.parametrize("changed", [{"flow": "maf"}, {"n_levels": 7}, {"strength": 0.5}])
def test_parameters_that_only_fit_reads_do_not(changed, X, tmp_path):
    calibrator = NormalizingFlowCalibrator(max_epochs=3, random_state=0).fit(X).set_params(**changed)
    assert_close(run_torch(calibrator, X), calibrator.transform(X))
    assert_close(run_onnx(calibrator, X, tmp_path / "a.onnx"), calibrator.transform(X))


def test_a_flow_of_zuko_stays_one_whatever_the_parameter_says(X, tmp_path):
    pytest.importorskip("zuko")
    calibrator = NormalizingFlowCalibrator("maf", random_state=0).fit(X).set_params(flow="glow")
    assert_close(run_torch(calibrator, X), calibrator.transform(X))
    pytest.importorskip("onnx")
    with pytest.raises(ValueError, match="flow='maf', where only 'glow' can be"):
        to_onnx(calibrator, tmp_path / "a.onnx")
