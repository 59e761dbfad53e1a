"""Where to compute."""

import warnings

import torch


def is_available(device):
    """Return whether torch can compute on `device` here."""
    if device.type == "cuda":
        return torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count()
    if device.type == "mps":
        return torch.backends.mps.is_available()
    if device.type == "meta":  # which has no numbers
        return False
    try:
        torch.empty(0, device=device)
    except Exception:  # each kind of device that torch was not built for says so in its own way
        return False
    return True


def resolve_device(device, *, fall_back=False):
    """Return the torch.device that a `device` parameter means here.

    Parameters
    ----------
    device : str
        "auto" takes cuda, then mps, then cpu.
    fall_back : bool, default=False
        Whether to warn and take the cpu where the device is not there, instead of raising.

    Raises
    ------
    ValueError
        If torch knows no such device, or finds none here.
    """
    if device == "auto":
        candidates = [torch.device("cuda"), torch.device("mps"), torch.device("cpu")]
        return next(candidate for candidate in candidates if is_available(candidate))
    try:
        resolved = torch.device(device)
    except RuntimeError as error:
        raise ValueError(
            f"device must be 'auto' or a torch device such as 'cpu' or 'cuda', got {device!r}"
        ) from error
    if is_available(resolved):
        return resolved
    if not fall_back:
        raise ValueError(f"device={device!r}, but torch finds no such device here; use 'auto' or 'cpu'")
    warnings.warn(f"device={device!r} is not available here: computing on the cpu instead", stacklevel=3)
    return torch.device("cpu")
