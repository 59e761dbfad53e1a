"""Warnings of their own class, to be filtered by it."""

from ._persistence import InconsistentSkflowVersionWarning

__all__ = ["InconsistentSkflowVersionWarning"]
