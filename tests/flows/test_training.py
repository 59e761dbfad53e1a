"""The training step: agreement with the reference, and the hand-written gradient against autograd."""

import math
import unittest.mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from skflow.flows import Glow
from skflow.flows._gradient import GlowGradient
from skflow.flows._training import AutogradGradient, Trainer, gradient_of
from tests.flows._reference import from_reference, to_reference
from tests.flows.test_glow import seeded, trained_looking

RECIPE = {"learning_rate": 1e-3, "weight_decay": 0.01, "max_grad_norm": 1.0}


@pytest.mark.parametrize("gradient", ["analytic", "autograd"])
@pytest.mark.parametrize("width", [16, 384])
def test_reference_training(shared, width, gradient, monkeypatch):
    # ../shared/reference: 20 updates in float64 by a public port of BERT-flow on real sentence vectors.
    if gradient == "autograd":
        monkeypatch.setattr("skflow.flows._training.gradient_of", AutogradGradient)
    reference = np.load(shared / "reference" / f"glow_{width}.npz")
    arrays = {k.removeprefix("after_init."): v for k, v in reference.items() if k.startswith("after_init.")}
    flow = from_reference(arrays, int(reference["n_levels"]), int(reference["n_steps"]))
    trainer = Trainer(flow, **RECIPE)
    losses, grad_norms = [], []
    for batch in reference["batches"]:
        loss, grad_norm = trainer.step(torch.tensor(batch)).tolist()
        losses.append(loss)
        grad_norms.append(grad_norm)
    assert_allclose(losses, reference["losses"], rtol=0, atol=1e-8)
    assert_allclose(grad_norms, reference["grad_norms"], rtol=0, atol=1e-8)
    for name, array in to_reference(flow).items():
        assert_allclose(array, reference[f"final.{name}"], rtol=0, atol=1e-8, err_msg=name)


def gradients_of(gradient_type, flow, x):
    gradient = gradient_type(flow)
    sizes = [p.numel() for p in gradient.parameters]
    flat, grad = (torch.zeros(sum(sizes), dtype=x.dtype) for _ in range(2))
    for p, value, g in zip(gradient.parameters, flat.split(sizes), grad.split(sizes), strict=True):
        value.copy_(p.detach().reshape(-1))
        p.data, p.grad = value.view_as(p), g.view_as(p)
    gradient.bind(flat, grad)
    with torch.no_grad():
        loss = gradient(x).item()
    return loss, {name: p.grad.clone() for name, p in flow.named_parameters()}


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(["reverse", "random"]),
    st.integers(1, 33),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 20),
    st.integers(1, 30),
)
def test_analytic_gradient_is_that_of_autograd(
    permutation, n_features, n_levels, n_steps, hidden_width, n_rows
):
    options = {"n_levels": n_levels, "n_steps": n_steps, "hidden_width": hidden_width}
    options["permutation"] = permutation
    x = torch.randn(n_rows, n_features, generator=seeded(1), dtype=torch.float64)
    # Some of the batches are computed in several slices.
    with unittest.mock.patch("skflow.flows._gradient.SLICE_ROWS", 7):
        loss, grads = gradients_of(GlowGradient, trained_looking(n_features, **options), x)
    expected_loss, expected = gradients_of(AutogradGradient, trained_looking(n_features, **options), x)
    assert loss == pytest.approx(expected_loss, rel=1e-12, abs=1e-12)
    for name, grad in grads.items():
        assert_allclose(grad, expected[name], rtol=1e-9, atol=1e-10, err_msg=name)


def test_the_published_architecture_gets_the_analytic_gradient():
    assert isinstance(gradient_of(Glow(4)), GlowGradient)
    assert isinstance(gradient_of(Glow(4, permutation="random")), GlowGradient)
    assert isinstance(gradient_of(Glow(4, coupling="affine")), AutogradGradient)
    assert isinstance(gradient_of(Glow(4, permutation="lu")), AutogradGradient)


def test_batches_of_many_sizes_share_a_trainer():
    together, alone = trained_looking(6), trained_looking(6)
    trainer = Trainer(together, **RECIPE)
    for n_rows in (5, 3, 8, 5, 1, 3):
        x = torch.randn(n_rows, 6, generator=seeded(n_rows), dtype=torch.float64)
        moments = None if n_rows == 5 and trainer.moments[0].max() == 0 else trainer.moments
        result = trainer.step(x)
        fresh = Trainer(alone, **RECIPE, moments=moments)
        assert_allclose(fresh.step(x), result, rtol=1e-12)
    for p, q in zip(together.parameters(), alone.parameters(), strict=True):
        assert torch.equal(p, q)


def test_resident_step_is_that_of_a_cpu(monkeypatch):
    # Off the cpu the step can hold no branch, which would wait for the device; its arithmetic runs anywhere.
    on_cpu, as_on_gpu = (Trainer(trained_looking(6), **RECIPE) for _ in range(2))
    for i in range(6):
        x = torch.randn(8, 6, generator=seeded(i), dtype=torch.float64) * (1e300 if i == 3 else 1)
        result = on_cpu.step(x)
        with monkeypatch.context() as patch:
            patch.setattr("skflow.flows._training.reading_is_free", lambda device: False)
            other = as_on_gpu.step(x)
        if i == 3:
            assert not torch.isfinite(result).all()
            assert not torch.isfinite(other).all()
        else:
            assert_allclose(other, result, rtol=1e-12)
        assert_allclose(as_on_gpu.snapshot(), on_cpu.snapshot(), rtol=1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a cuda device")
def test_cuda_agrees_with_cpu():
    on_cpu, on_gpu = Trainer(trained_looking(6), **RECIPE), Trainer(trained_looking(6).cuda(), **RECIPE)
    for i, n_rows in enumerate((8, 8, 7, 8, 300, 7)):
        x = torch.randn(n_rows, 6, generator=seeded(i), dtype=torch.float64)
        assert_allclose(on_gpu.step(x.cuda()).cpu(), on_cpu.step(x), rtol=1e-9)
    assert_allclose(on_gpu.snapshot().cpu(), on_cpu.snapshot(), rtol=1e-9, atol=1e-12)


def test_a_non_finite_batch_is_left_out():
    flow = trained_looking(4)
    trainer = Trainer(flow, **RECIPE)
    trainer.step(torch.randn(8, 4, generator=seeded(1), dtype=torch.float64))
    before = trainer.snapshot()
    assert math.isinf(trainer.step(torch.full((8, 4), 1e300, dtype=torch.float64))[0])
    assert torch.equal(trainer.snapshot(), before)
    assert torch.isfinite(trainer.step(torch.randn(8, 4, generator=seeded(2), dtype=torch.float64))).all()
    assert all(bool(torch.isfinite(p).all()) for p in flow.parameters())
    assert not torch.equal(trainer.snapshot(), before)
    trainer.restore(before)
    assert torch.equal(trainer.snapshot(), before)
