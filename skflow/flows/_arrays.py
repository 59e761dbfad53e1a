"""A flow that computes on numpy arrays."""

import math

import numpy as np
import torch

from .._device import has_float64
from ._glow import Glow

# A row so many nats per dimension less likely than most from the beginning is an outlier: it would outweigh
# all others in a mean.
OUTLYING = 100.0


def torch_dtype(device, dtype):
    """Return torch's counterpart of a numpy dtype, on mps float32, the only one there."""
    return getattr(torch, np.dtype(dtype).name if has_float64(device) else "float32")


def to_torch(rows, like, *, device=None):
    """Put rows where a tensor is, or on another device, in its dtype."""
    # The host changes the type, since mps has no float64. torch wants to be able to write to what it gets:
    # rows of a read-only file are copied.
    dtype = np.float64 if like.dtype == torch.float64 else np.float32
    rows = np.require(rows, dtype=dtype, requirements=["C", "W"])
    return torch.as_tensor(rows, dtype=like.dtype, device=device or like.device)


def latents(flow, rows):
    """Return the latents of rows."""
    # Inference mode has less overhead, but the modules of others may rely on automatic differentiation.
    with torch.inference_mode() if isinstance(flow, Glow) else torch.no_grad():
        return flow(to_torch(rows, next(flow.parameters())))[0].cpu().numpy()


@torch.no_grad()
def vectors(flow, latents):
    """Return the rows that have these latents."""
    return flow.inverse(to_torch(latents, next(flow.parameters()))).cpu().numpy()


@torch.no_grad()
def log_prob(flow, rows):
    """Return the log-likelihood of each row in nats, as float64."""
    return flow.log_prob(to_torch(rows, next(flow.parameters()))).cpu().numpy().astype(np.float64)


def judge(flow, pieces, *, without_outliers=False):
    """Return a function that computes the mean log-likelihood of rows under a flow as it is then.

    Parameters
    ----------
    flow : torch.nn.Module
    pieces : callable
        Yields the rows piece by piece, as ndarrays, at each call.
    without_outliers : bool, default=False
        Whether rows that are extremely unlikely now are left out. The flow is then as it is now at the first
        call.

    Returns
    -------
    likelihood : callable
        Without arguments; a float in nats, nan where there are no rows to judge by.
    """

    def likelihoods():
        return np.concatenate([log_prob(flow, rows) for rows in pieces()])

    if not without_outliers:
        return lambda: likelihoods().mean()
    first = likelihoods()
    is_typical = first >= np.median(first) - OUTLYING * next(iter(pieces())).shape[1]
    known = [first]  # the first call follows at once

    def typical():
        values = (known.pop() if known else likelihoods())[is_typical]
        return values.mean() if len(values) else math.nan

    return typical
