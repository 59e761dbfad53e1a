"""The flow under the names and in the order of features of ../shared/reference.

There, features stand as each step receives them, reversed at every step; a Glow leaves them where they are.
"""

import torch

from skflow.flows import Glow


def to_reference(glow):
    """Return the parameters of a Glow as arrays under the reference's names."""
    return {name: _flip(glow, tensor.detach(), axes).numpy().copy() for name, tensor, axes in _tensors(glow)}


@torch.no_grad()
def from_reference(arrays, n_levels, n_steps):
    """Return the float64 Glow, additive and of reversed order, that has these arrays."""
    first = "levels.0.steps.0."
    width = len(arrays[f"{first}coupling.hidden.0.weight"])
    n_features = len(arrays[f"{first}actnorm.bias"])
    glow = Glow(n_features, n_levels=n_levels, n_steps=n_steps, hidden_width=width).double()
    assert sorted(name for name, _, _ in _tensors(glow)) == sorted(arrays)
    for name, tensor, axes in _tensors(glow):
        tensor.copy_(_flip(glow, torch.tensor(arrays[name]), axes))
    return glow


def _tensors(glow):
    """Yield each parameter's name, its tensor, and the axes along which it is stored in reverse order."""
    is_reversed = False
    for level, steps in enumerate(glow.levels):
        for index, step in enumerate(steps):
            name = f"levels.{level}.steps.{index}."
            own = (0,) if is_reversed else ()
            yield f"{name}actnorm.bias", step.actnorm.bias, own
            yield f"{name}actnorm.log_scale", step.actnorm.log_scale, own
            if step.coupling is None:
                continue
            is_reversed = not is_reversed
            for i, layer in enumerate(step.coupling.hidden):
                axes = (1,) if is_reversed and i == 0 else ()
                yield f"{name}coupling.hidden.{i}.weight", layer.weight, axes
                yield f"{name}coupling.hidden.{i}.actnorm.bias", layer.bias, ()
                yield f"{name}coupling.hidden.{i}.actnorm.log_scale", layer.log_scale, ()
            for key in ("weight", "bias", "log_scale"):
                yield f"{name}coupling.output.{key}", getattr(step.coupling.output, key), (0,) * is_reversed


def _flip(glow, tensor, axes):
    assert glow.coupling == "additive"
    assert glow.permutation == "reverse"
    return tensor.flip(axes) if axes else tensor
