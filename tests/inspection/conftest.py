"""An embedder whose word embeddings are known, and axes."""

import pytest

from skflow.embedders import BertEmbedder


@pytest.fixture
def tiny_embedder(tiny):
    """Make a BertEmbedder of a tiny random encoder of some architecture."""
    return lambda name, **parameters: BertEmbedder(tiny(name), device="cpu", **parameters)


@pytest.fixture
def axes():
    """Fresh axes of matplotlib, on no screen."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt.subplots()[1]
    plt.close("all")
