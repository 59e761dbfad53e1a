"""Graphs of updates, by an emulator of capture and replay, and training that never reads a number."""

import functools
import itertools
import warnings
import weakref

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode

from skflow.calibrators import NormalizingFlowCalibrator
from skflow.flows import Glow, _cuda, _training
from skflow.flows._fit import fit
from skflow.flows._training import Trainer

from ._emulator import NoDoubles, capture, emulated_graphs, resident
from .test_glow import VARIANTS, seeded, trained_looking

RECIPE = {"learning_rate": 1e-3, "weight_decay": 0.01, "max_grad_norm": 1.0}


def steps(trainer, sizes, width=6, dtype=torch.float32, offset=0):
    return [
        trainer.step(torch.randn(n, width, generator=seeded(i + offset), dtype=dtype)).clone()
        for i, n in enumerate(sizes)
    ]


def test_the_emulator_runs_nothing_while_it_captures():
    x, total = torch.ones(3), torch.zeros(3)

    def function():
        total.add_(x)
        return 2 * total

    replay, result = capture(function, x.device)
    assert total.tolist() == [0, 0, 0]
    assert result.isnan().all()
    replay()
    assert result.tolist() == [2, 2, 2]
    x.fill_(3)
    replay()
    assert result.tolist() == [8, 8, 8]
    x.set_(torch.empty(0))
    with pytest.raises(RuntimeError, match="freed"):
        replay()
    with pytest.raises(RuntimeError, match="number was read"):
        capture(lambda: total.sum().item(), total.device)


@pytest.mark.parametrize(("coupling", "permutation"), VARIANTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_graphs_give_what_updates_without_them_give(coupling, permutation, dtype, monkeypatch):
    options = {"coupling": coupling, "permutation": permutation, "dtype": dtype}
    sizes = [8, 7] * 8 + [30, 8]
    with resident(monkeypatch):
        expected = steps(without := Trainer(trained_looking(6, **options), **RECIPE), sizes, dtype=dtype)
    with emulated_graphs(monkeypatch):
        results = steps(trainer := Trainer(trained_looking(6, **options), **RECIPE), sizes, dtype=dtype)
    assert trainer.n_replays == 2 * (8 - _cuda.WARM_UP) + 1
    assert without.n_replays == 0
    assert torch.equal(torch.stack(results), torch.stack(expected))
    assert torch.equal(trainer.snapshot(), without.snapshot())
    for moment, other in zip(trainer.moments, without.moments, strict=True):
        np.testing.assert_array_equal(moment, other)


@pytest.mark.parametrize("sizes", [(1300, 1299), (512, 511), (513, 512), (1024, 1023, 700)])
def test_graphs_own_their_buffers_whatever_the_sizes(sizes, monkeypatch):
    # Batches above 512 rows are computed in slices: those of 1300 and 1299 rows have three sizes.
    sizes = list(itertools.chain(*itertools.repeat(sizes, _cuda.WARM_UP + 3)))
    with resident(monkeypatch):
        expected = steps(without := Trainer(trained_looking(6, dtype=torch.float32), **RECIPE), sizes)
    with emulated_graphs(monkeypatch):
        results = steps(trainer := Trainer(trained_looking(6, dtype=torch.float32), **RECIPE), sizes)
    assert trainer.n_replays > 4
    assert torch.equal(torch.stack(results), torch.stack(expected))
    assert torch.equal(trainer.snapshot(), without.snapshot())


def test_a_graph_that_outlives_its_buffers_is_noticed(monkeypatch):
    # The fault that the tests above guard against: graphs whose gradient keeps the last two slices only.
    monkeypatch.setattr(_training, "_new_step", functools.cache(_training._new_step))
    with emulated_graphs(monkeypatch), pytest.raises(RuntimeError, match="freed"):
        steps(Trainer(trained_looking(6, dtype=torch.float32), **RECIPE), [1300, 1299] * (_cuda.WARM_UP + 2))


def test_a_graph_leaves_out_an_update_that_is_not_finite(monkeypatch):
    with emulated_graphs(monkeypatch):
        trainer = Trainer(trained_looking(4, dtype=torch.float32), **RECIPE)
        steps(trainer, [8] * 6, width=4)
        before = trainer.snapshot()
        assert not torch.isfinite(trainer.step(torch.full((8, 4), 1e30))).all()
        assert torch.equal(trainer.snapshot(), before)
        assert torch.isfinite(steps(trainer, [8], width=4)[0]).all()
        assert not torch.equal(trainer.snapshot(), before)


def test_a_trainer_is_freed_with_its_graphs(monkeypatch):
    # Without waiting for the garbage collector: a device has little memory.
    with emulated_graphs(monkeypatch):
        trainer = Trainer(trained_looking(4, dtype=torch.float32), **RECIPE)
        steps(trainer, [8] * 6, width=4)
    assert trainer.n_replays
    freed = weakref.ref(trainer), weakref.ref(trainer._graphed_step)
    del trainer
    assert [each() for each in freed] == [None, None]


def failing(function, device):
    raise RuntimeError("operation not permitted when stream is capturing")


def wrong(function, device):
    replay, result = capture(function, device)

    def off():
        replay()
        result.mul_(1.001)

    return off, result


@pytest.mark.parametrize(("broken", "message"), [(failing, "not permitted"), (wrong, "computes otherwise")])
def test_training_goes_on_where_graphs_fail(broken, message, monkeypatch):
    sizes = [8, 7] * 8
    with resident(monkeypatch):
        expected = steps(without := Trainer(trained_looking(6, dtype=torch.float32), **RECIPE), sizes)
    with emulated_graphs(monkeypatch), monkeypatch.context() as patch:
        patch.setattr("skflow.flows._cuda.capture", broken)
        trainer = Trainer(trained_looking(6, dtype=torch.float32), **RECIPE)
        with pytest.warns(RuntimeWarning, match=message) as caught:
            results = steps(trainer, sizes)
    assert len(caught) == 1
    assert trainer.n_replays == 0
    assert torch.equal(torch.stack(results), torch.stack(expected))
    assert torch.equal(trainer.snapshot(), without.snapshot())


def test_modules_of_others_are_not_captured(monkeypatch):
    class Other(Glow):
        pass

    with emulated_graphs(monkeypatch):
        trainer = Trainer(Other(6), **RECIPE)
        steps(trainer, [8] * 9)
    assert trainer.n_replays == 0


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"strength": 0.5},
        {"early_stopping": True, "max_epochs": 4, "n_iter_no_change": 2},
        {"coupling": "affine", "permutation": "lu"},
        {"permutation": "random"},
    ],
)
@pytest.mark.parametrize("batch_size", [60, 650])
def test_calibrator_with_graphs(options, batch_size, monkeypatch):
    X = np.random.RandomState(0).standard_normal((1299, 6)).astype(np.float32) * np.arange(1.0, 7, dtype="f4")
    options = {"max_epochs": 3, "batch_size": batch_size, "random_state": 0, **options}
    monkeypatch.setattr(_cuda, "WARM_UP", 1)
    replays = []
    counted = _cuda._Graph.__call__
    monkeypatch.setattr(_cuda._Graph, "__call__", lambda self, x: replays.append(len(x)) or counted(self, x))
    with resident(monkeypatch):
        expected = NormalizingFlowCalibrator(**options).fit(X).partial_fit(X)
    assert not replays
    with emulated_graphs(monkeypatch):
        calibrator = NormalizingFlowCalibrator(**options).fit(X).partial_fit(X)
    assert replays
    np.testing.assert_array_equal(calibrator.loss_curve_, expected.loss_curve_)
    np.testing.assert_array_equal(calibrator.validation_scores_, expected.validation_scores_)
    np.testing.assert_array_equal(calibrator.transform(X), expected.transform(X))
    # Where there is a branch, clipping is rounded otherwise, which Adam amplifies.
    on_cpu = NormalizingFlowCalibrator(**options).fit(X).partial_fit(X)
    assert_allclose(calibrator.loss_curve_, on_cpu.loss_curve_, rtol=5e-3)


def loop(flow, batches, n_updates, epoch_length):
    """Fit with a stand-in for the one function that reads numbers; return how many it was asked for."""
    asked = []

    def read(results):
        asked.append(len(results))
        return [(0.0, 1.0)] * len(results)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(
            Trainer(flow, **RECIPE),
            batches,
            n_updates=n_updates,
            epoch_length=epoch_length,
            likelihood=lambda: 0.0,
            tolerance=1.0,
            read=read,
        )
    return asked


@pytest.mark.parametrize(("coupling", "permutation"), VARIANTS)
def test_resident_loop_reads_nothing_between_epochs_on_meta(coupling, permutation):
    # On torch's meta device there are no numbers: reading one raises.
    flow = Glow(6, coupling=coupling, permutation=permutation).to("meta")
    batches = (torch.empty(8 - i % 2, 6, device="meta") for i in itertools.count())
    assert loop(flow, batches, 5, 2) == [2, 2, 1]
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.empty(2, device="meta").tolist()


class WithoutGuards(TorchFunctionMode):
    """Indexes and copies tensors of a device that torch was not built for, which torch itself refuses."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is torch.Tensor.__getitem__:
            return self._get(*args)
        if function is torch.Tensor.__setitem__:
            target, index, value = args
            return checked_copy(self._get(target, index), value)
        return function(*args, **kwargs)

    def _get(self, tensor, index):
        dim = 0
        for part in index if isinstance(index, tuple) else (index,):
            if isinstance(part, slice):
                tensor = torch.ops.aten.slice.Tensor(tensor, dim, part.start, part.stop, part.step or 1)
                dim += 1
            elif isinstance(part, torch.Tensor):
                tensor = tensor.index_select(dim, part)
                dim += 1
            else:
                tensor = tensor.select(dim, part)
        return tensor


def checked_copy(target, value):
    assert value.device == target.device
    assert value.expand(target.shape).shape == target.shape
    return target


@pytest.mark.parametrize("permutation", ["reverse", "random"])
@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_resident_loop_mixes_no_devices(device, permutation, monkeypatch):
    # Tensors without numbers that know their device: an operation on two devices raises. Not for autograd,
    # which needs a torch built for the device.
    monkeypatch.setattr("skflow.flows._training.can_capture", lambda device: False)
    monkeypatch.setattr(torch.Tensor, "copy_", checked_copy)
    flow = Glow(6, permutation=permutation)
    with FakeTensorMode(), WithoutGuards():
        flow = placed(flow, device)
        batches = (torch.empty(8 - i % 2, 6, device=device) for i in itertools.count())
        assert loop(flow, batches, 3, 2) == [2, 1]
        with pytest.raises(RuntimeError), torch.no_grad():
            flow(torch.empty(8, 6))


def placed(flow, device):
    """Return a flow of the same architecture without numbers, on a device that is not there."""
    for module in flow.modules():
        for name, p in list(module.named_parameters(recurse=False)):
            module._parameters[name] = torch.nn.Parameter(torch.empty(p.shape, device=device))
        for name, b in list(module.named_buffers(recurse=False)):
            module._buffers[name] = torch.empty(b.shape, dtype=b.dtype, device=device)
    return flow


@pytest.mark.parametrize(("coupling", "permutation"), VARIANTS)
def test_nothing_is_float64_on_mps(coupling, permutation, monkeypatch):
    flow = Glow(6, coupling=coupling, permutation=permutation)
    monkeypatch.setattr(torch.Tensor, "copy_", checked_copy)
    with FakeTensorMode(), WithoutGuards():
        flow = placed(flow, "mps")
        x = torch.empty(8, 6, device="mps")
        with NoDoubles(), torch.no_grad():
            with pytest.raises(TypeError, match="float64"):
                x.double()
            flow.initialize(x)
            assert flow.log_prob(x).dtype == torch.float32
            assert flow.inverse(flow(x)[0]).device.type == "mps"
            if (coupling, permutation) == VARIANTS[0]:
                assert loop(flow, itertools.repeat(x), 2, 2) == [2]
