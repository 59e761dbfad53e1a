"""Other devices, emulated on the cpu: capture and replay of CUDA graphs, no reading, no float64."""

import contextlib

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_unflatten


class _Place:
    """A tensor as a graph knows it: an address.

    Memory that was there before the capture is not kept alive by a graph, and memory allocated within is.
    """

    def __init__(self, tensor, *, is_owned):
        storage = tensor.untyped_storage()
        self._ref = StorageWeakRef(storage)
        self._owned = storage if is_owned else None
        self._dtype, self._view = tensor.dtype, (tensor.storage_offset(), tensor.size(), tensor.stride())

    def tensor(self):
        if self._ref.expired():
            raise RuntimeError("a graph reads or writes memory that has been freed")
        storage = torch.UntypedStorage._new_with_weak_ptr(self._ref.cdata)
        return torch.empty(0, dtype=self._dtype).set_(storage, *self._view)


class _Recorder(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.operations = []
        self._inside = {}
        self._written = {}

    def _place(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        return _Place(value, is_owned=value.untyped_storage()._cdata in self._inside)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is torch.ops.aten._local_scalar_dense.default:
            raise RuntimeError("a number was read during a capture")
        leaves, spec = tree_flatten((args, kwargs))
        inputs = {
            t.untyped_storage()._cdata: t.untyped_storage() for t in leaves if isinstance(t, torch.Tensor)
        }
        places = [self._place(leaf) for leaf in leaves]
        if function._schema.is_mutable:
            for key, storage in inputs.items():
                if key not in self._inside and key not in self._written:
                    self._written[key] = storage, storage.clone()
        result = function(*args, **kwargs)
        outputs = [t for t in tree_flatten(result)[0] if isinstance(t, torch.Tensor)]
        new = [t for t in outputs if t.untyped_storage()._cdata not in inputs]
        for tensor in new:
            self._inside[tensor.untyped_storage()._cdata] = tensor.untyped_storage()
        if function._schema.is_mutable or new:
            targets = [self._place(t) for t in outputs] if new else None
            self.operations.append((function, places, spec, targets))
        return result

    def undo(self):
        """Leave memory as if nothing had been computed, as a capture does."""
        for storage, before in self._written.values():
            storage.copy_(before)
        for _, _, _, targets in self.operations:
            for place in targets or ():
                tensor = place.tensor()
                tensor.fill_(float("nan") if tensor.is_floating_point() else 0)
        self._written.clear()


def capture(function, device):
    """Stand in for `skflow.flows._cuda.capture`."""
    recorder = _Recorder()
    with recorder:
        result = function()
    recorder.undo()
    operations = recorder.operations

    def replay():
        with torch.no_grad():
            for operation, places, spec, targets in operations:
                leaves = [place.tensor() if isinstance(place, _Place) else place for place in places]
                args, kwargs = tree_unflatten(leaves, spec)
                outputs = operation(*args, **kwargs)
                if targets is None:
                    continue
                new = [t for t in tree_flatten(outputs)[0] if isinstance(t, torch.Tensor)]
                for place, tensor in zip(targets, new, strict=True):
                    place.tensor().copy_(tensor)

    return replay, result


@contextlib.contextmanager
def emulated_graphs(monkeypatch):
    """Train as on cuda, with emulated graphs."""
    with monkeypatch.context() as patch:
        patch.setattr("skflow.flows._training.can_capture", lambda device: True)
        patch.setattr("skflow.flows._cuda.capture", capture)
        yield


@contextlib.contextmanager
def resident(monkeypatch):
    """Train as on a device that is not to be waited for, without graphs."""
    with monkeypatch.context() as patch:
        patch.setattr("skflow.flows._training.reading_is_free", lambda device: False)
        yield


class NoDoubles(TorchDispatchMode):
    """Fails where something is computed in float64, which mps does not have."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else (result,):
            if isinstance(tensor, torch.Tensor) and tensor.dtype == torch.float64:
                raise TypeError(f"{function} gives float64")
        return result
