"""Checkpoints around tiny encoders, and a count of the texts that ran through one."""

import pytest


@pytest.fixture(scope="session")
def declare(tiny, tmp_path_factory):
    """Return a function that saves a sentence-transformers checkpoint around a tiny encoder."""
    from sentence_transformers import SentenceTransformer

    try:
        from sentence_transformers.base.modules import Dense, Normalize, Transformer
        from sentence_transformers.sentence_transformer.modules import CNN, Pooling
    except ImportError:  # before 5.4
        from sentence_transformers.models import CNN, Dense, Normalize, Pooling, Transformer

    def save(architecture="bert", pooling="mean", *, behind=(), lower=False, include_prompt=True, **options):
        directory = tmp_path_factory.mktemp("declared")
        transformer = Transformer(tiny(architecture), max_seq_length=24, do_lower_case=lower)
        if transformer.tokenizer.pad_token is None:
            transformer.tokenizer.pad_token = transformer.tokenizer.eos_token
        modules = [transformer, Pooling(32, pooling_mode=pooling, include_prompt=include_prompt)]
        if "cnn" in behind:  # which works on tokens
            modules.insert(1, CNN(32, 16, [1, 3]))
        makers = {"dense": lambda: Dense(32, 8), "normalize": Normalize}
        modules += [makers[name]() for name in behind if name != "cnn"]
        SentenceTransformer(modules=modules, device="cpu", **options).save(str(directory))
        return str(directory)

    return save


@pytest.fixture
def n_embedded(monkeypatch):
    """A list of the numbers of texts that ran through an encoder, call by call."""
    from skflow.embedders._bert import BertEmbedder

    counts, original = [], BertEmbedder._compute

    def compute(self, directory, recipe, texts, keep):
        counts.append(len(texts))
        return original(self, directory, recipe, texts, keep)

    monkeypatch.setattr(BertEmbedder, "_compute", compute)
    return counts
