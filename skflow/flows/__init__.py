"""Density models in torch; this room knows nothing of scikit-learn or text."""
