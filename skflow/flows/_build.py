"""A flow from its settings, or from its arrays.

Settings are a dict of plain values: "flow" is "glow", the name of a flow of zuko, or "callable"; the others
are the keyword arguments of :class:`Glow` ("hidden_width" alone for zuko, none for a callable).
"""

import threading

import numpy as np
import torch
from torch import nn

from ._glow import Glow
from ._zuko import ZukoFlow

# Modules of others draw their weights from torch's global generator, which all threads share.
GLOBAL_GENERATOR = threading.Lock()


def build_flow(settings, n_features, *, seed, builder=None):
    """Build a flow with random weights.

    Parameters
    ----------
    settings : dict
    n_features : int
    seed : int
    builder : callable or None
        For settings of a callable: n_features to a module.

    Returns
    -------
    flow : torch.nn.Module
        Of float32, on the cpu.

    Raises
    ------
    ImportError
        If zuko is needed and not installed.
    TypeError
        If what `builder` returns is no flow.
    ValueError
        If a callable is needed and `builder` is none.
    """
    kind, options = settings["flow"], {name: value for name, value in settings.items() if name != "flow"}
    if kind == "glow":
        return Glow(n_features, generator=torch.Generator().manual_seed(seed), **options)
    with GLOBAL_GENERATOR, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if kind != "callable":
            return ZukoFlow(kind, n_features, **options)
        if not callable(builder):
            raise ValueError(f"flow={builder!r}, but it was a callable when fitted: set it back.")
        flow = builder(n_features)
        _check_module(flow)
        return flow


def check_settings(wanted, fitted):
    """Raise ValueError where settings are not those that a flow was fitted with."""
    for name, value in fitted.items():
        if wanted.get(name) != value:
            raise ValueError(
                f"{name}={wanted.get(name)!r} cannot resume a fit with {name}={value!r}: fit a new "
                f"calibrator, or set {name} back."
            )


def restore_flow(settings, n_features, arrays, *, dtype, builder=None):
    """Build a flow from its state as arrays, drawing nothing and allocating no more than they hold.

    Parameters
    ----------
    settings, n_features, builder
        As for :func:`build_flow`; widths and depths are those of the arrays, whatever the settings say.
    arrays : dict of str to ndarray
        The module's state, copied: they may be read-only.
    dtype : str
        "float32" or "float64".

    Returns
    -------
    flow : torch.nn.Module
        On the cpu.

    Raises
    ------
    ValueError
        If the arrays do not fit the architecture.
    """
    state = {name: torch.tensor(np.asarray(array)) for name, array in arrays.items()}
    try:
        if settings["flow"] == "glow":
            options = {name: settings[name] for name in ("coupling", "permutation")}
            with torch.device("meta"):
                flow = Glow._without_weights(n_features, **_sizes(arrays), **options)
            flow.load_state_dict(state, assign=True)
            return flow.to(getattr(torch, dtype))
        if settings["flow"] != "callable":
            widths = [a.shape[0] for name, a in arrays.items() if name.endswith("hyper.0.weight")]
            settings = {**settings, "hidden_width": max(widths, default=1)}
        flow = build_flow(settings, n_features, seed=0, builder=builder)
        flow.load_state_dict(state)
    except (RuntimeError, LookupError) as error:
        raise ValueError(f"parameters_ do not fit the flow: {error}") from error
    return flow.to(getattr(torch, dtype))


def _sizes(arrays):
    """Return the depths and the width of the Glow that has these arrays."""
    if not arrays:
        raise KeyError("there are none")
    levels, steps = ({name.split(".")[i] for name in arrays} for i in (1, 2))
    hidden = arrays.get("levels.0.0.coupling.hidden.0.weight", np.empty(1))
    return {"n_levels": len(levels), "n_steps": len(steps), "hidden_width": len(hidden)}


def _check_module(flow):
    """Raise TypeError unless what a builder returned has the methods asked of it."""
    missing = [name for name in ("inverse", "log_prob") if not callable(getattr(flow, name, None))]
    if not isinstance(flow, nn.Module) or missing or not list(flow.parameters()):
        lacks = f" without {' and '.join(missing)}" if missing else ""
        raise TypeError(
            "flow must be a callable that returns a torch.nn.Module with parameters and the methods forward, "
            f"inverse and log_prob, got one that returns a {type(flow).__name__}{lacks}"
        )


@torch.no_grad()
def initialize(flow, x):
    """Initialize a flow from its first rows if it can be, and raise TypeError unless it maps them."""
    if hasattr(flow, "initialize"):
        flow.initialize(x)
    result = flow(x)
    is_pair = isinstance(result, tuple) and len(result) == 2
    if not is_pair or [part.shape for part in result] != [x.shape, x.shape[:1]]:
        got = [tuple(part.shape) for part in result] if is_pair else f"a {type(result).__name__}"
        raise TypeError(
            f"forward of the {type(flow).__name__} that flow returns must map {tuple(x.shape)} to a tuple of "
            f"latents of that shape and log-determinants of shape ({len(x)},), got {got}"
        )
