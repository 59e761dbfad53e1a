"""skflow: make the sentence vectors of a frozen encoder usable for similarity."""

from ._version import __version__

__all__ = ["__version__"]
