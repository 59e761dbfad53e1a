"""A flow from its settings, and from its arrays."""

import numpy as np
import pytest
import torch

from skflow.flows import Glow
from skflow.flows._build import build_flow, restore_flow

from .test_glow import VARIANTS, seeded, trained_looking


def state(flow):
    return {name: tensor.numpy() for name, tensor in flow.state_dict().items()}


def settings_of(coupling="additive", permutation="reverse"):
    sizes = {"n_levels": 3, "n_steps": 3, "hidden_width": 32}
    return {"flow": "glow", "coupling": coupling, "permutation": permutation, **sizes}


@pytest.mark.parametrize(("coupling", "permutation"), VARIANTS)
@pytest.mark.parametrize("n_features", [1, 2, 5, 8])
def test_arrays_round_trip(coupling, permutation, n_features):
    flow = trained_looking(n_features, coupling=coupling, permutation=permutation)
    settings = settings_of(coupling, permutation)
    copy = restore_flow(settings, n_features, state(flow), dtype="float64")
    x = torch.randn(4, n_features, generator=seeded(5), dtype=torch.float64)
    with torch.no_grad():
        assert torch.equal(copy(x)[0], flow(x)[0])
        assert torch.equal(copy.log_prob(x), flow.log_prob(x))
        assert torch.equal(copy.inverse(x), flow.inverse(x))
    assert all(p.requires_grad for p in copy.parameters())


def test_a_seed_decides_the_weights():
    flows = [build_flow(settings_of(), 6, seed=seed) for seed in (1, 1, 2)]
    first, second, other = (flow.levels[0][0].coupling.hidden[0].weight for flow in flows)
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    expected = Glow(6, generator=seeded(1)).levels[0][0].coupling.hidden[0].weight
    assert torch.equal(first, expected)


def test_restoring_draws_nothing():
    arrays = state(Glow(4, generator=seeded()))
    before = torch.get_rng_state()
    restore_flow(settings_of(), 4, arrays, dtype="float32")
    assert torch.equal(torch.get_rng_state(), before)


def test_what_is_done_to_the_flow_does_not_reach_the_arrays():
    arrays = state(Glow(4, generator=seeded()))
    arrays = {name: array.copy() for name, array in arrays.items()}
    for array in arrays.values():
        array.flags.writeable = False  # as in a memory map; torch would warn if it did not copy
    copies = {name: array.copy() for name, array in arrays.items()}
    flow = restore_flow(settings_of(), 4, arrays, dtype="float32")
    with torch.no_grad():
        for p in flow.parameters():
            p.add_(1)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, copies[name])


def test_arrays_that_do_not_fit_are_named():
    arrays = state(Glow(4))
    with pytest.raises(ValueError, match="parameters_ do not fit the flow"):
        restore_flow(settings_of(), 4, {}, dtype="float32")
    lacking = {k: v for k, v in arrays.items() if k != "levels.0.1.actnorm.bias"}
    with pytest.raises(ValueError, match=r"Missing key.*levels\.0\.1\.actnorm\.bias"):
        restore_flow(settings_of(), 4, lacking, dtype="float32")
    name = "levels.0.1.coupling.output.bias"
    with pytest.raises(ValueError, match=rf"size mismatch for {name}"):
        restore_flow(settings_of(), 4, arrays | {name: np.zeros(3)}, dtype="float32")
    with pytest.raises(ValueError, match="size mismatch"):
        restore_flow(settings_of(), 5, arrays, dtype="float32")


@pytest.mark.parametrize("kind", ["glow", "maf", "nice", "nsf", "gf"])
def test_no_setting_makes_the_flow_larger_than_its_arrays(kind):
    """A forged width of 10**12 would take terabytes."""
    if kind != "glow":
        pytest.importorskip("zuko")
    settings = settings_of() if kind == "glow" else {"flow": kind, "hidden_width": 8}
    flow = build_flow(settings, 6, seed=0)
    forged = {**settings, "hidden_width": 10**12}
    if kind == "glow":
        forged |= {"n_levels": 10**12, "n_steps": 10**12}
    copy = restore_flow(forged, 6, state(flow), dtype="float32")
    x = torch.randn(3, 6, generator=seeded())
    with torch.no_grad():
        assert torch.equal(copy(x)[0], flow(x)[0])
