"""Modules of sentence-transformers that both :class:`~skflow.embedders.BertEmbedder` and its exports run.

A saved model names them by their import paths, which therefore stay as they are.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._layered_encoder import LayeredEncoder
    from ._token_pooling import TokenPooling
    from ._truncation import Truncation

__all__ = ["LayeredEncoder", "TokenPooling", "Truncation"]


def __getattr__(name: str) -> Any:
    """Import a module, and with it torch and sentence-transformers, when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._layered_encoder import LayeredEncoder
    from ._token_pooling import TokenPooling
    from ._truncation import Truncation

    return {"LayeredEncoder": LayeredEncoder, "TokenPooling": TokenPooling, "Truncation": Truncation}[name]
