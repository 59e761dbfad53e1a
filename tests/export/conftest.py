"""Texts, and tiny random encoders and checkpoints, for the exports."""

import warnings

import numpy as np
import pytest

from .._encoders import SENTENCES, WORDS

# What sentence-transformers 6 demands for modules of another package; earlier versions take it as well.
LOADING = {"trust_remote_code": True, "local_files_only": True}


@pytest.fixture(scope="session")
def texts():
    """As many texts as make a covariance of 32 features regular, odd ones among them."""
    rng = np.random.RandomState(0)
    return [*(" ".join(rng.choice(WORDS, size=2 + i % 9)) for i in range(64)), *SENTENCES]


@pytest.fixture
def transform():
    """Return a function that fits and transforms without the warning that texts were truncated."""

    def fit_transform(pipeline, texts):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*texts were truncated", category=UserWarning)
            return pipeline.fit(texts).transform(texts)

    return fit_transform


@pytest.fixture
def checkpoint(tiny_bert, tmp_path):
    """Return a function that saves a sentence-transformers checkpoint with modules behind a tiny BERT."""
    from sentence_transformers import SentenceTransformer

    try:
        from sentence_transformers.sentence_transformer import modules as library
    except ImportError:  # before version 5.4
        from sentence_transformers import models as library

    def save(*names, **options):
        import torch

        first = library.Transformer(tiny_bert)
        parts = {
            "mean": lambda: library.Pooling(32, "mean"),
            "weightedmean": lambda: library.Pooling(32, "weightedmean"),
            "dense": lambda: library.Dense(32, 24, activation_function=torch.nn.Tanh()),
            "normalize": library.Normalize,
        }
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            modules = [first, *(parts[name]() for name in names)]
        model = SentenceTransformer(modules=modules, device="cpu", **options)
        model.max_seq_length = 24
        model.save(str(tmp_path / "checkpoint"))
        return str(tmp_path / "checkpoint")

    return save


def assert_close(actual, expected):
    """Check that vectors agree within 1e-5 of the largest value, the project's promise for exports."""
    assert actual.shape == expected.shape
    assert actual.dtype == np.float32
    assert np.abs(expected).max() > 0
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
