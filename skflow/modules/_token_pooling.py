"""Token vectors to sentence vectors, as BertEmbedder pools them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from safetensors.torch import load_file, save

from .._persistence import write_atomically
from ._library import FullPrecision, Module, location
from ._pooling import POOLINGS, pool_tokens

if TYPE_CHECKING:
    import torch


WEIGHTS_NAME = "model.safetensors"


class TokenPooling(FullPrecision, Module):
    """Pool token vectors in float32, if need be without special tokens or with a weight for each token.

    Parameters
    ----------
    n_features : int
        Length of the vectors.
    pooling : {"mean", "cls", "max"}
        Average of the token vectors, the first token's vector, or the maximum of each feature.
    exclude_special_tokens : bool, default=False
        Whether tokens that the features mark in "special_tokens_mask" are left out.
    token_weights : tensor of shape (n_vocabulary,), default=None
        Factor of each token in the mean (smooth inverse frequency).

    Raises
    ------
    ValueError
        If `pooling` is unknown.

    Examples
    --------
    >>> import torch
    >>> from skflow.modules import TokenPooling
    >>> features = {
    ...     "token_embeddings": torch.tensor([[[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]]),
    ...     "attention_mask": torch.tensor([[1, 1, 0]]),
    ... }
    >>> TokenPooling(2, "mean")(features)["sentence_embedding"]
    tensor([[2., 3.]])
    """

    config_keys = ["n_features", "pooling", "exclude_special_tokens"]  # noqa: RUF012

    def __init__(
        self,
        n_features: int,
        pooling: Literal["mean", "cls", "max"],
        *,
        exclude_special_tokens: bool = False,
        token_weights: torch.Tensor | None = None,
    ) -> None:
        super().__init__()
        if pooling not in POOLINGS:
            raise ValueError(f"pooling={pooling!r} is unknown; expected one of {POOLINGS}.")
        self.n_features = n_features
        self.pooling = pooling
        self.exclude_special_tokens = exclude_special_tokens
        self.register_buffer("token_weights", token_weights)

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Add the entry "sentence_embedding"."""
        mask, weights = features["attention_mask"], None
        if self.exclude_special_tokens:
            mask = mask * (1 - features["special_tokens_mask"])
        if self.token_weights is not None:
            weights = self.token_weights[features["input_ids"]]
        tokens = features["token_embeddings"].float()
        features["sentence_embedding"] = pool_tokens(tokens, mask, self.pooling, weights)
        return features

    def get_embedding_dimension(self) -> int:
        """Return the length of the vectors."""
        return self.n_features

    # The name of this method in sentence-transformers before 5.4.
    get_sentence_embedding_dimension = get_embedding_dimension

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Save settings as JSON and weights as safetensors, whatever `safe_serialization` says."""
        self.save_config(output_path)
        if self.token_weights is not None:
            data = save({"token_weights": self.token_weights.cpu()})
            write_atomically(Path(output_path) / WEIGHTS_NAME, data)

    @classmethod
    def load(cls, model_name_or_path: str, **kwargs: Any) -> Self:
        """Load the module from a directory or from a model on the Hugging Face hub."""
        source = location(kwargs)
        config = cls.load_config(model_name_or_path, **source)
        path = cls.load_file_path(model_name_or_path, WEIGHTS_NAME, **source)
        weights = None if path is None else load_file(path)["token_weights"]
        return cls(**config, token_weights=weights)


# The import path that a saved model names.
TokenPooling.__module__ = "skflow.modules"
