"""What only CUDA offers: an update captured as one graph, and copies beside the computation."""

import collections
import functools
import threading
import warnings

import torch

# Capturing an update and comparing it takes about as long as a graph saves in so many updates.
WARM_UP = 4
# The batches of an epoch have two sizes.
MAX_GRAPHS = 2
# How far the first replay may be off, relative to the same update without a graph.
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-9}
# Batches copied before they are needed: keeps the device busy, and bounds the memory.
MAX_AHEAD = 8

# A stream takes part in one capture at a time.
_CAPTURING = threading.Lock()


def can_capture(device):
    """Return whether updates can be captured on a device."""
    return device.type == "cuda" and torch.cuda.is_available()


@functools.lru_cache(maxsize=8)
def _capture_stream(device):
    return torch.cuda.Stream(device)


def capture(function, device):
    """Record the kernels that `function` launches, without running them.

    Returns
    -------
    replay : callable
        Runs them.
    result : Tensor
        What `function` returned, to be filled by each replay.
    """
    graph = torch.cuda.CUDAGraph()
    # What other threads do meanwhile, such as allocating, concerns them alone.
    options = {"stream": _capture_stream(device), "capture_error_mode": "thread_local"}
    with _CAPTURING, torch.cuda.device(device), torch.cuda.graph(graph, **options):
        result = function()
    return graph.replay, result


class _Graph:
    """A captured update: holds everything that it reads or writes, but for the state of the trainer."""

    def __init__(self, step, x):
        self._step = step
        self._x = x.clone()
        self._replay, self._result = capture(lambda: step(self._x), x.device)

    def __call__(self, x):
        self._x.copy_(x)
        self._replay()
        return self._result


class GraphedStep:
    """An update, replayed as a CUDA graph, since launching its kernels one by one takes longer than they do.

    There is one graph for each number of rows. Its first replay is compared with the same update done without
    a graph. Where they disagree, or capturing fails, all goes on without graphs, with a warning.

    Parameters
    ----------
    step : callable
        Does an update on a batch, asking the device for nothing; returns a tensor.
    new_step : callable
        Returns such a function with working memory of its own.
    state : list of Tensor
        What an update changes, the parameters first.

    Attributes
    ----------
    n_replays : int
        Updates done by a graph.
    """

    def __init__(self, step, new_step, state):
        self._step, self._new_step, self._state = step, new_step, state
        self._graphs = {}
        self._n_met = collections.Counter()
        self._is_off = False
        self.n_replays = 0

    def __call__(self, x):
        """Do an update; what is returned is good until the next one."""
        n_rows = len(x)
        graph = self._graphs.get(n_rows)
        if graph is None:
            self._n_met[n_rows] += 1
            if self._is_off or self._n_met[n_rows] <= WARM_UP:
                return self._step(x)
            return self._capture(x)
        self.n_replays += 1
        return graph(x)

    def _capture(self, x):
        step = self._new_step()
        before = self._snapshot()
        # This also allocates what the kernels work in.
        expected = step(x).clone()
        after = self._snapshot()
        self._restore(before)
        try:
            graph = _Graph(step, x)
            result = graph(x)
            problem = "" if self._agrees(result, expected, before[0], after[0]) else "it computes otherwise"
        except RuntimeError as error:
            problem = str(error) or type(error).__name__
        if problem:
            self._restore(after)
            self._is_off = True
            self._graphs = {}
            warnings.warn(
                f"Training goes on without CUDA graphs, at a lower speed, since capturing an update of "
                f"{len(x)} rows failed: {problem}",
                RuntimeWarning,
                stacklevel=2,
            )
            return expected
        self._graphs = {**dict(list(self._graphs.items())[1 - MAX_GRAPHS :]), len(x): graph}
        self.n_replays += 1
        return result

    def _snapshot(self):
        return [tensor.clone() for tensor in self._state]

    def _restore(self, values):
        for tensor, value in zip(self._state, values, strict=True):
            tensor.copy_(value)

    def _agrees(self, result, expected, before, after):
        tolerance = TOLERANCE[after.dtype]
        error, change, size = (
            torch.linalg.vector_norm(v) for v in (self._state[0] - after, after - before, after)
        )
        # A parameter may be rounded the other way, which a small change of it must bear.
        allowed = tolerance * change + torch.finfo(after.dtype).eps * size
        return bool(
            torch.allclose(result, expected, rtol=tolerance, atol=0, equal_nan=True) & (error <= allowed)
        )


def copied(tensors, device):
    """Yield tensors of the host on a device, copied through pinned memory beside what is computed there.

    Parameters
    ----------
    tensors : iterable of Tensor
    device : torch.device

    Yields
    ------
    tensor : Tensor
    """
    beside, main = torch.cuda.Stream(device), torch.cuda.current_stream(device)
    ahead = collections.deque()
    for tensor in tensors:
        with torch.cuda.stream(beside):
            moved = tensor.pin_memory().to(device, non_blocking=True)
        main.wait_stream(beside)
        moved.record_stream(main)
        yield moved
        ahead.append(main.record_event())
        if len(ahead) > MAX_AHEAD:
            ahead.popleft().synchronize()
