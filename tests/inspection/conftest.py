"""An encoder whose word embeddings are known, and a transformer that looks vectors up."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin

from skflow.embedders import BertEmbedder

from ..embedders.conftest import make_encoder


class Lookup(TransformerMixin, BaseEstimator):
    """Maps a text that starts with the number i to row i of a matrix."""

    def __init__(self, vectors):
        self.vectors = vectors

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return self.vectors[[int(text.split()[0]) for text in X]]


@pytest.fixture
def lookup():
    """Make a transformer of texts that are row numbers."""
    return Lookup


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """Make a BertEmbedder of a tiny random encoder of some architecture."""
    made = {}

    def make(name, **parameters):
        if name not in made:
            made[name] = tmp_path_factory.mktemp(name)
            make_encoder(name, made[name])
        return BertEmbedder(made[name], device="cpu", **parameters)

    return make


@pytest.fixture
def axes():
    """Fresh axes of matplotlib, on no screen."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt.subplots()[1]
    plt.close("all")


@pytest.fixture
def rng():
    return np.random.default_rng(0)
