"""Real sentence vectors for the calibrators' tests."""

import pytest


@pytest.fixture(scope="session")
def embeddings(minilm):
    """Mean-pooled vectors of layers 0, 4 and 6 of all-MiniLM-L6-v2 for 600 sentences."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    from skflow.datasets import load_mini_sts

    sentences = load_mini_sts(subset="hard").pairs.ravel().tolist()[:600]
    tokenizer, model = AutoTokenizer.from_pretrained(minilm), AutoModel.from_pretrained(minilm).eval()
    layers = {0: [], 4: [], 6: []}
    with torch.no_grad():
        for start in range(0, len(sentences), 128):
            batch = tokenizer(sentences[start : start + 128], padding=True, return_tensors="pt")
            hidden = model(**batch, output_hidden_states=True).hidden_states
            mask = batch["attention_mask"].unsqueeze(-1).float()
            for layer, vectors in layers.items():
                vectors.append((hidden[layer] * mask).sum(dim=1) / mask.sum(dim=1))
    return [torch.cat(vectors).numpy() for vectors in layers.values()]
