"""Which layers and tokens of an encoder make up a sentence vector."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from numbers import Integral

import numpy as np

# The paper says that it averages the last two layers; its released code averages the first block and the
# last.
NAMED_LAYERS = {"last": (-1,), "last2": (-2, -1), "first_last": (1, -1)}


@dataclass(frozen=True, eq=False)
class Recipe:
    """How an encoder makes a sentence vector, as :class:`BertEmbedder` is told.

    Parameters
    ----------
    layers : tuple of int or None
        Layers to average, None for "auto".
    pooling : {"auto", "mean", "cls", "max"}
        Token pooling.
    max_length : int or None
        Limit in tokens, None for the model's own.
    exclude_special_tokens : bool
        Whether the tokens that the tokenizer adds are left out of the pooling.
    token_weights : ndarray of shape (n_vocabulary,) or None
        Factor of each token in the mean.
    """

    layers: tuple | None = None
    pooling: str = "auto"
    max_length: int | None = None
    exclude_special_tokens: bool = False
    token_weights: np.ndarray | None = None

    @property
    def as_declared(self):
        """Whether a sentence-transformers checkpoint may run exactly as it declares itself."""
        plain = not self.exclude_special_tokens and self.token_weights is None
        return plain and self.layers is None and self.pooling == "auto"


def check_layers(layers):
    """Return the parameter `layers` as a tuple of ints, or None for "auto".

    Parameters
    ----------
    layers : int, sequence of int, "last", "last2", "first_last" or "auto"
        Layers as Hugging Face counts ``hidden_states``.

    Returns
    -------
    layers : tuple of int or None
        The layers to average, negatives not yet resolved.

    Raises
    ------
    ValueError
        If `layers` is an unknown name or an empty sequence.
    TypeError
        If `layers` is anything else.

    Examples
    --------
    >>> from skflow.embedders._recipe import check_layers
    >>> check_layers("first_last"), check_layers(4), check_layers([-1, -2])
    ((1, -1), (4,), (-1, -2))
    """
    if isinstance(layers, str):
        if layers == "auto":
            return None
        if layers in NAMED_LAYERS:
            return NAMED_LAYERS[layers]
        names = ", ".join(map(repr, ("auto", *NAMED_LAYERS)))
        raise ValueError(f"layers={layers!r} is unknown; expected {names}, an int or a sequence of ints.")
    if _is_integer(layers):
        return (int(layers),)
    try:
        numbers = [None] if isinstance(layers, Set | Mapping) else list(layers)  # they have no order
    except TypeError:
        numbers = [None]
    if not all(map(_is_integer, numbers)):
        raise TypeError(f"layers={layers!r}; expected a name, an int or a sequence of ints.")
    if not numbers:
        raise ValueError(f"layers={layers!r} names no layer; expected at least one.")
    return tuple(map(int, numbers))


def _is_integer(value):
    return isinstance(value, Integral) and not isinstance(value, bool)
