"""Where to compute."""

import torch

from ._user_warnings import warn_user


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


def has_float64(device):
    """Return whether a device computes in float64; mps does not."""
    return device.type != "mps"


def resolve_device(device, *, missing="raise"):
    """Return the torch.device that a `device` parameter means here.

    Parameters
    ----------
    device : str
        "auto" takes cuda, then mps, then cpu.
    missing : {"raise", "warn", "cpu"}, default="raise"
        What to do where the device is not there: raise, or take the cpu with or without a warning.

    Returns
    -------
    device : torch.device

    Raises
    ------
    ValueError
        If torch knows no such device, or it computes nothing, or is not there and `missing` is "raise".

    Warns
    -----
    UserWarning
        If the cpu is taken instead, and `missing` is "warn".
    """
    if device == "auto":
        candidates = [torch.device("cuda"), torch.device("mps"), torch.device("cpu")]
        return next(candidate for candidate in candidates if is_available(candidate))
    try:
        resolved = torch.device(device)
    except RuntimeError as error:
        raise ValueError(
            f"device={device!r} is not a device of torch; expected 'auto', 'cpu', 'cuda:0'..."
        ) from error
    if is_available(resolved):
        return resolved
    if resolved.type == "meta":
        raise ValueError("device='meta' computes nothing; expected 'auto', 'cpu', 'cuda:0'...")
    if missing == "raise":
        raise ValueError(f"device={device!r} is not available here; expected 'auto' or 'cpu'")
    if missing == "warn":
        warn_user(f"device={device!r} is not available here; the cpu is used.")
    return torch.device("cpu")
