"""The leading features of sentence vectors, for what comes behind them."""

from typing import Any

from ._library import Module


class Truncation(Module):
    """Keep the first features, as `truncate_dim` of a SentenceTransformer does.

    A checkpoint that declares `truncate_dim` cuts its vectors at the very end, which here is in the middle.

    Parameters
    ----------
    n_features : int
        How many to keep.

    Examples
    --------
    >>> import torch
    >>> from skflow.modules import Truncation
    >>> Truncation(2)({"sentence_embedding": torch.tensor([[1.0, 2.0, 3.0]])})["sentence_embedding"]
    tensor([[1., 2.]])
    """

    config_keys = ["n_features"]  # noqa: RUF012 - sentence-transformers' convention

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.n_features = n_features

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Cut the entry "sentence_embedding"."""
        features["sentence_embedding"] = features["sentence_embedding"][:, : self.n_features]
        return features

    def get_embedding_dimension(self) -> int:
        """Return the number of features kept."""
        return self.n_features

    # The name of this method in sentence-transformers before 5.4.
    get_sentence_embedding_dimension = get_embedding_dimension

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        """Save the settings in a directory."""
        self.save_config(output_path)


# The import path that a saved model names.
Truncation.__module__ = "skflow.modules"
