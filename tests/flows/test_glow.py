"""Glow: agreement with the reference, exact inverses, and log-determinants against autograd's Jacobian."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from skflow.flows import Glow

from ._reference import from_reference, to_reference


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def trained_looking(n_features, *, dtype=torch.float64, **options):
    """A flow whose every parameter is random: right after construction the couplings are the identity."""
    flow = Glow(n_features, generator=seeded(), **options).to(dtype)
    flow.initialize(torch.randn(64, n_features, generator=seeded(1), dtype=dtype))
    generator = seeded(2)
    with torch.no_grad():
        for name, p in flow.named_parameters():
            # Sixteen triangular matrices in a row are singular to float32 unless they are near a rotation's.
            size = 0.002 if "mixing" in name else 0.02
            p.add_(size * torch.randn(p.shape, generator=generator, dtype=dtype))
    return flow


VARIANTS = [(c, p) for c in ("additive", "affine") for p in ("reverse", "random", "lu")]


@pytest.mark.parametrize("width", [16, 384])
def test_reference_latents_and_likelihood(shared, width):
    # ../shared/reference: computed in float64 by a public port of BERT-flow on real sentence vectors.
    reference = np.load(shared / "reference" / f"glow_{width}.npz")
    arrays = {k.removeprefix("final."): v for k, v in reference.items() if k.startswith("final.")}
    flow = from_reference(arrays, int(reference["n_levels"]), int(reference["n_steps"]))
    x = torch.tensor(reference["held_out"])
    with torch.no_grad():
        assert_allclose(flow(x)[0].numpy(), reference["z_held_out"], rtol=0, atol=1e-8)
        assert_allclose(flow.log_prob(x).numpy(), reference["log_prob_held_out"], rtol=1e-8)
        assert_allclose(flow.inverse(flow(x)[0]).numpy(), x.numpy(), rtol=0, atol=1e-10)
    for name, array in to_reference(flow).items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)


@pytest.mark.parametrize("width", [16, 384])
def test_reference_initialization(shared, width):
    reference = np.load(shared / "reference" / f"glow_{width}.npz")
    sizes = {"n_levels": int(reference["n_levels"]), "n_steps": int(reference["n_steps"])}
    arrays = to_reference(Glow(width, **sizes).double())
    arrays |= {k.removeprefix("init."): v for k, v in reference.items() if k.startswith("init.")}
    flow = from_reference(arrays, **sizes)
    flow.initialize(torch.tensor(reference["batches"][0]))
    for name, array in to_reference(flow).items():
        assert_allclose(array, reference[f"after_init.{name}"], rtol=0, atol=1e-8, err_msg=name)
    with torch.no_grad():
        z = flow(torch.tensor(reference["batches"][0]))[0].numpy()
    assert_allclose(z, reference["z_first_batch"], rtol=0, atol=1e-8)


@pytest.mark.parametrize(("coupling", "permutation"), VARIANTS)
@pytest.mark.parametrize("n_features", [1, 2, 3, 7, 12])
def test_log_det_is_that_of_the_jacobian(coupling, permutation, n_features):
    flow = trained_looking(n_features, coupling=coupling, permutation=permutation)
    for row in torch.randn(3, n_features, generator=seeded(3), dtype=torch.float64):
        jacobian = torch.autograd.functional.jacobian(lambda x: flow(x[None])[0][0], row)
        expected = torch.linalg.slogdet(jacobian).logabsdet.item()
        assert flow(row[None])[1].item() == pytest.approx(expected, abs=1e-10)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 40),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(1, 40),
    st.sampled_from(VARIANTS),
    st.sampled_from([(torch.float64, 1e-8), (torch.float32, 5e-3)]),
)
def test_inverse(n_features, n_levels, n_steps, hidden_width, variant, precision):
    dtype, tolerance = precision
    flow = trained_looking(
        n_features,
        dtype=dtype,
        n_levels=n_levels,
        n_steps=n_steps,
        hidden_width=hidden_width,
        coupling=variant[0],
        permutation=variant[1],
    )
    x = torch.randn(9, n_features, generator=seeded(4), dtype=dtype)
    with torch.no_grad():
        z, log_det = flow(x)
        assert z.shape == x.shape
        assert log_det.shape == (9,)
        assert_allclose(flow.inverse(z), x, rtol=tolerance, atol=tolerance)
        # What random latents come from may lie far away, beyond what float32 resolves.
        x = x.double()
        assert_allclose(flow.double()(flow.inverse(x))[0], x, rtol=1e-8, atol=1e-8)


def test_learned_mixing_is_exact_to_float32():
    # Of 384 features: products with one factor after the other in float32 would be off by 1e-5.
    flow = Glow(384, permutation="lu", generator=torch.Generator().manual_seed(0))
    x = torch.randn(100, 384, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        z = flow(x)[0]
        back = flow.inverse(z)
        expected = flow.double()(x.double())[0]
    assert z.dtype == back.dtype == torch.float32
    assert_allclose(z, expected, rtol=0, atol=2e-6)
    assert_allclose(back, x, rtol=0, atol=2e-6)


def test_reversal_by_bookkeeping_is_reversal():
    # One additive step written out from its definition: normalize, reverse, shift the second half.
    flow = trained_looking(5, n_levels=1, n_steps=2)
    arrays = to_reference(flow)
    x = torch.randn(6, 5, generator=seeded(6), dtype=torch.float64).numpy()
    expected = x
    for step in ("levels.0.steps.0.", "levels.0.steps.1."):
        p = {k.removeprefix(step): v for k, v in arrays.items() if k.startswith(step)}
        expected = np.exp(3 * p["actnorm.log_scale"]) * (expected + p["actnorm.bias"])
        expected = expected[:, ::-1]
        h = expected[:, :2]
        for i in (0, 1):
            name = f"coupling.hidden.{i}."
            h = h @ p[f"{name}weight"].T + p[f"{name}actnorm.bias"]
            h = np.maximum(np.exp(3 * p[f"{name}actnorm.log_scale"]) * h, 0)
        shift = h @ p["coupling.output.weight"].T + p["coupling.output.bias"]
        shift *= np.exp(3 * p["coupling.output.log_scale"])
        expected = np.hstack([expected[:, :2], expected[:, 2:] + shift])
    with torch.no_grad():
        assert_allclose(flow(torch.tensor(x))[0].numpy(), expected, rtol=1e-12, atol=1e-12)


def test_initialization_normalizes_and_leaves_constant_units_alone():
    x = torch.randn(200, 6, generator=seeded(7), dtype=torch.float64) * 5 + 2
    x[:, 2] = 7.0
    flow = Glow(6, n_levels=1, n_steps=1, generator=seeded()).double()
    flow.initialize(x)
    with torch.no_grad():
        z = flow(x)[0]
    varying = [0, 1, 3, 4, 5]
    # The recipe divides by the standard deviation plus 1e-6.
    assert_allclose(z.flip(1)[:, varying].std(dim=0, correction=0), 1, atol=1e-5)
    assert_allclose(z.mean(dim=0), 0, atol=1e-12)
    assert flow.levels[0][0].actnorm.log_scale[2].item() == 0


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match=r"coupling must be one of .*'rotary'"):
        Glow(4, coupling="rotary")
    with pytest.raises(ValueError, match=r"permutation must be one of .*'none'"):
        Glow(4, permutation="none")
    with pytest.raises(ValueError, match="n_steps must be at least 1, got 0"):
        Glow(4, n_steps=0)
