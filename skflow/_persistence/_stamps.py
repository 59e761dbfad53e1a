"""The version of skflow in the state of fitted estimators."""

import os
import warnings

from sklearn.exceptions import InconsistentVersionWarning

from .._version import __version__

STAMP = "_skflow_version"


class InconsistentSkflowVersionWarning(InconsistentVersionWarning):
    """A fitted estimator was written by another version of skflow than the one that reads it.

    Parameters
    ----------
    estimator_name : str
        Class of the estimator.
    current_skflow_version : str
        Version that reads.
    original_skflow_version : str
        Version that wrote, "unknown" where the file does not say.

    Examples
    --------
    >>> import warnings
    >>> from skflow.exceptions import InconsistentSkflowVersionWarning
    >>> warning = InconsistentSkflowVersionWarning(
    ...     estimator_name="WhiteningCalibrator",
    ...     current_skflow_version="0.2.0",
    ...     original_skflow_version="0.1.0",
    ... )
    >>> print(str(warning)[:52])
    This WhiteningCalibrator was saved by skflow 0.1.0 a
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", InconsistentSkflowVersionWarning)  # refuse to load such files
    """

    def __init__(
        self, *, estimator_name: str, current_skflow_version: str, original_skflow_version: str
    ) -> None:
        self.estimator_name = estimator_name
        self.current_skflow_version = current_skflow_version
        self.original_skflow_version = original_skflow_version

    def __str__(self):
        return (
            f"This {self.estimator_name} was saved by skflow {self.original_skflow_version} and is loaded by "
            f"skflow {self.current_skflow_version}: it may fail, or give other numbers than it gave there. "
            "Load it with the version that saved it, or fit it again."
        )


class VersionStamped:
    """Mixin that stamps pickles with skflow's version.

    To be placed left of :class:`sklearn.base.BaseEstimator`. The stamp is in the state only, never an
    attribute of the estimator. A state of another version, or of none, is read with a warning. Paths in the
    state are strings.

    Warns
    -----
    InconsistentSkflowVersionWarning
        On unpickling what another version of skflow wrote. It is a subclass of
        :class:`sklearn.exceptions.InconsistentVersionWarning`, so that one filter covers both.
    """

    def __getstate__(self):
        # A path of this system's class could not be read on another one, and skops would ask to trust it.
        plain = {
            name: os.fspath(value) if isinstance(value, os.PathLike) else value
            for name, value in super().__getstate__().items()
        }
        return {**plain, STAMP: __version__}

    def __setstate__(self, state):
        state = dict(state)
        version = state.pop(STAMP, "unknown")
        if version != __version__:
            warnings.warn(
                InconsistentSkflowVersionWarning(
                    estimator_name=type(self).__name__,
                    current_skflow_version=__version__,
                    original_skflow_version=version,
                ),
                stacklevel=2,
            )
        super().__setstate__(state)
