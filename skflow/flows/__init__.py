"""Density models in torch; this package knows nothing of scikit-learn or text."""

from ._glow import Glow

__all__ = ["Glow"]
