"""The base classes of sentence-transformers' modules, wherever its version keeps them."""

from typing import Any

import torch

try:
    from sentence_transformers.sentence_transformer.modules import InputModule, Module, Normalize
except ImportError:  # before version 5.4
    from sentence_transformers.models import InputModule, Module, Normalize

__all__ = ["FullPrecision", "InputModule", "Module", "Normalize", "location"]


class FullPrecision:
    """Mixin for modules whose tensors follow the model to its device, but not to a narrower dtype.

    To be placed left of the module class. Means and projections lose what they are for in half precision, and
    cost next to nothing beside the encoder.
    """

    def _apply(self, fn, recurse=True):
        def keep_dtype(tensor):
            probe = fn(tensor.new_empty(0, dtype=torch.float32))
            if probe.device.type == "mps" and tensor.dtype == torch.float64:
                tensor = tensor.float()  # mps has no float64
            if probe.dtype == torch.float32 or not tensor.is_floating_point():
                return fn(tensor)
            return tensor.to(probe.device)

        return super()._apply(keep_dtype, recurse)


def location(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return those of the keyword arguments of `load` that say where a saved module lies."""
    names = ("subfolder", "token", "cache_folder", "revision", "local_files_only")
    return {name: kwargs[name] for name in names if name in kwargs}
