"""Fitted estimators on disk: version stamps in pickles, and a format without pickle."""

from ._files import write_atomically
from ._pretrained import SavePretrainedMixin
from ._stamps import InconsistentSkflowVersionWarning, VersionStamped

__all__ = ["InconsistentSkflowVersionWarning", "SavePretrainedMixin", "VersionStamped", "write_atomically"]
