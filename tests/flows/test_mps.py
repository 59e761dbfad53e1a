"""Apple's GPUs, simulated on the cpu: numbers are not to be waited for, and there is no float64."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.utils._python_dispatch import _disable_current_modes

from skflow.calibrators import NormalizingFlowCalibrator
from skflow.flows import _build

from ._emulator import NoDoubles, resident
from .test_glow import VARIANTS

ZUKO = [{"flow": name} for name in ("nice", "maf", "nsf", "gf")]


@pytest.fixture
def mps(monkeypatch):
    def on_the_host(build):
        def run(*args, **options):
            with _disable_current_modes():
                return build(*args, **options)

        return run

    # Weights are drawn and restored before the flow is moved.
    for name in ("build_flow", "restore_flow"):
        monkeypatch.setattr(_build, name, on_the_host(getattr(_build, name)))
    for module in ("_arrays", "_layers", "_glow", "_zuko"):
        monkeypatch.setattr(f"skflow.flows.{module}.has_float64", lambda device: False)
    with resident(monkeypatch):
        yield


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "options",
    [
        *({"coupling": coupling, "permutation": permutation} for coupling, permutation in VARIANTS),
        {"strength": 0.5},
        *ZUKO,
    ],
)
def test_calibrator_computes_in_float32(options, dtype, mps):
    if "flow" in options:
        pytest.importorskip("zuko")
    X = np.random.RandomState(0).standard_normal((300, 6)).astype(dtype) * np.arange(1, 7, dtype=dtype)
    calibrator = NormalizingFlowCalibrator(**options, device="cpu", random_state=0)
    with NoDoubles():
        with pytest.raises(TypeError, match="float64"):
            torch.ones(2).double()
        calibrator.fit(X).partial_fit(X)
        Z = calibrator.transform(X)
        assert np.isfinite(calibrator.score_samples(X)).all()
        back = calibrator.inverse_transform(Z)
        assert calibrator.sample(5, random_state=0).shape == (5, 6)
    assert Z.dtype == dtype
    assert_allclose(back, X, atol=5e-3)
