"""Where flows and embedders compute."""

import warnings

import pytest
import torch

from skflow._device import is_available, resolve_device
from skflow._user_warnings import warn_user


def absent():
    """Name a device that is not here."""
    return next(name for name in ("hpu", "cuda:99") if not is_available(torch.device(name)))


def test_devices_that_are_here():
    assert resolve_device("cpu") == torch.device("cpu")
    expected = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    assert resolve_device("auto").type == expected


def test_device_that_is_not_here():
    name = absent()
    with pytest.raises(ValueError, match=f"device='{name}' is not available here; expected 'auto' or 'cpu'"):
        resolve_device(name)
    with pytest.warns(UserWarning, match=f"device='{name}' is not available here; the cpu is used") as seen:
        assert resolve_device(name, missing="warn") == torch.device("cpu")
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert resolve_device(name, missing="cpu") == torch.device("cpu")


@pytest.mark.parametrize("missing", ["raise", "warn", "cpu"])
@pytest.mark.parametrize(("name", "message"), [("abacus", "is not a device"), ("meta", "computes nothing")])
def test_what_no_machine_computes_on(name, message, missing):
    with pytest.raises(ValueError, match=f"device='{name}' {message}"):
        resolve_device(name, missing=missing)


def test_warning_without_any_line_of_the_user():
    scope = {"__name__": "skflow.some", "warn_user": warn_user}
    exec("def work():\n    warn_user('hm', RuntimeWarning)", scope)
    with pytest.warns(RuntimeWarning, match="hm") as seen:
        scope["work"]()
    assert seen[0].filename == __file__
