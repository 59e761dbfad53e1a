"""Density models in torch; this room knows nothing of scikit-learn or text."""

from ._glow import Glow

__all__ = ["Glow"]
