"""Where the rows of a training are: on its device where they fit, else on their way there."""

import numpy as np
import torch

from ._arrays import to_torch
from ._batches import BUFFER_BYTES, ShuffledEpochs
from ._cuda import copied

# Rows may take this share of the memory that is free on a device; the others are for the training itself.
SHARE_OF_FREE_MEMORY = 0.5


def free_memory(device):
    """Return how many bytes are free on a device, 0 where torch does not say."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if device.type == "mps" and hasattr(torch.mps, "recommended_max_memory"):  # torch 2.5 and later
        return torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory()
    return 0


def batches_for(flow, batches, before):
    """Yield the batches that a flow is trained on, where it is.

    Parameters
    ----------
    flow : torch.nn.Module
    batches : ShuffledEpochs, or iterable of ndarray
    before : callable
        Maps rows to what the flow sees.

    Yields
    ------
    batch : Tensor of shape (n, d)
    """
    like = next(flow.parameters())
    if isinstance(batches, ShuffledEpochs) and like.device.type != "cpu":
        n_bytes = batches.n_rows * batches.X.shape[1] * like.element_size()
        if n_bytes <= SHARE_OF_FREE_MEMORY * free_memory(like.device):
            return resident_batches(flow, batches, before)
    if like.device.type == "cuda":
        rows = (to_torch(before(batch), like, device="cpu") for batch in batches)
        return copied(rows, like.device)
    return (to_torch(before(batch), like) for batch in batches)


def resident_batches(flow, epochs, before):
    """Yield shuffled batches of rows that are copied to the flow's device once, and chosen there."""
    like = next(flow.parameters())
    n_features = epochs.X.shape[1]
    held = torch.empty((epochs.n_rows, n_features), dtype=like.dtype, device=like.device)
    n_at_once = max(1, BUFFER_BYTES // (n_features * like.element_size()))
    for start in range(0, epochs.n_rows, n_at_once):
        stop = min(start + n_at_once, epochs.n_rows)
        held[start:stop] = to_torch(before(epochs.take(np.arange(start, stop))), like)
    sizes = np.diff(epochs.bounds).tolist()
    while True:
        order = torch.as_tensor(np.concatenate(list(epochs.order())), device=like.device)
        for index in order.split(sizes):
            yield held.index_select(0, index)
