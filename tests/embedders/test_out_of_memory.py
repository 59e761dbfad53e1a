"""Running out of memory costs a warning, not what was embedded so far."""

import numpy as np
import pytest
import torch

from skflow.embedders import BertEmbedder
from skflow.embedders._encoder import Encoder

from .._encoders import WORDS

TEXTS = [" ".join(np.random.RandomState(i).choice(WORDS, 1 + i % 20)) for i in range(60)]


def limit(monkeypatch, n_tokens):
    """Let batches of more tokens, padding included, run out of memory; return the shapes that ran."""
    run, shapes = Encoder._run, []

    def limited(self, modules, tokens, rows):
        shape = len(rows), int(tokens.lengths[rows].max())
        if shape[0] * shape[1] > n_tokens:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")
        shapes.append(shape)
        return run(self, modules, tokens, rows)

    monkeypatch.setattr(Encoder, "_run", limited)
    return shapes


def test_batches_are_halved_once(tiny_bert, monkeypatch):
    embedder = BertEmbedder(tiny_bert, batch_size=16, device="cpu")
    expected = embedder.transform(TEXTS)
    shapes = limit(monkeypatch, 128)
    with pytest.warns(RuntimeWarning, match="batch_size below 16") as caught:
        X = embedder.transform(TEXTS)
    assert len(caught) == 1
    assert sum(n for n, _ in shapes) == len(TEXTS)
    np.testing.assert_allclose(X, expected, rtol=0, atol=1e-5)


def test_a_second_time_is_an_error(tiny_bert, monkeypatch):
    limit(monkeypatch, 20)
    with pytest.warns(RuntimeWarning, match="halved"), pytest.raises(torch.cuda.OutOfMemoryError):
        BertEmbedder(tiny_bert, batch_size=16, device="cpu").transform(TEXTS)
