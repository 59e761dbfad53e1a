"""The directory that downloaded data live in."""

import os
from os import PathLike
from pathlib import Path


def get_data_home(data_home: str | PathLike[str] | None = None) -> str:
    """Return the directory of downloaded data sets, and create it if it does not exist.

    Parameters
    ----------
    data_home : str or path-like, default=None
        The directory. ``None`` means the environment variable ``SKFLOW_DATA`` where it is set, and
        ``~/skflow_data`` where it is not. ``~`` is expanded to the user's home directory.

    Returns
    -------
    data_home : str
        Its path.

    Raises
    ------
    OSError
        If it cannot be created.

    See Also
    --------
    sklearn.datasets.get_data_home : What this function is modeled on.

    Examples
    --------
    >>> import os, tempfile
    >>> from skflow.datasets import get_data_home
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     home = get_data_home(os.path.join(directory, "data"))
    ...     os.path.isdir(home)
    True
    """
    home = data_home_path(data_home)
    home.mkdir(parents=True, exist_ok=True)
    return str(home)


def data_home_path(data_home=None):
    """Return the path of `get_data_home` without creating anything."""
    if data_home is None:
        data_home = os.environ.get("SKFLOW_DATA") or Path("~", "skflow_data")
    return Path(data_home).expanduser()
