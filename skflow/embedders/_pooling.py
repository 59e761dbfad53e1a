"""Which layers and tokens of an encoder make up a sentence vector."""

from dataclasses import dataclass
from numbers import Integral

import numpy as np

# The paper says that it averages the last two layers; its released code averages the first block and the
# last.
NAMED_LAYERS = {"last": (-1,), "last2": (-2, -1), "first_last": (1, -1)}
POOLINGS = ("mean", "cls", "max")


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
    >>> from skflow.embedders._pooling import check_layers
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
        numbers = list(layers)
    except TypeError:
        numbers = [None]
    if not all(map(_is_integer, numbers)):
        raise TypeError(f"layers={layers!r}; expected a name, an int or a sequence of ints.")
    if not numbers:
        raise ValueError(f"layers={layers!r} names no layer; expected at least one.")
    return tuple(map(int, numbers))


def _is_integer(value):
    return isinstance(value, Integral) and not isinstance(value, bool)


def resolve_layers(layers, n_layers):
    """Count negative layers from the end.

    Parameters
    ----------
    layers : tuple of int
        Layers from :func:`check_layers`.
    n_layers : int
        Number L of blocks; layers 0 to L exist.

    Returns
    -------
    layers : tuple of int
        The same layers, none of them negative.

    Raises
    ------
    ValueError
        If a layer does not exist.
    """
    for layer in layers:
        if not -n_layers - 1 <= layer <= n_layers:
            raise ValueError(
                f"layers: there is no layer {layer} in an encoder of {n_layers} blocks; expected 0 (the "
                f"embedding layer) to {n_layers}, or -1 to {-n_layers - 1} from the end."
            )
    return tuple(layer % (n_layers + 1) for layer in layers)


def average_layers(states, layers):
    """Average the hidden states of `layers` in float32.

    Parameters
    ----------
    states : dict of int to torch.Tensor of shape (n_texts, n_tokens, n_features)
        Hidden states by layer.
    layers : tuple of int
        The layers to average; one named twice counts twice.

    Returns
    -------
    average : torch.Tensor of shape (n_texts, n_tokens, n_features)
        float32.
    """
    average = states[layers[0]].float()
    if len(layers) > 1:
        average = average.clone()
        for layer in layers[1:]:
            average += states[layer]
        average /= len(layers)
    return average


def pool_tokens(tokens, mask, pooling, weights=None):
    """Pool token vectors to sentence vectors.

    Parameters
    ----------
    tokens : torch.Tensor of shape (n_texts, n_tokens, n_features)
        Token vectors, float32, padded on the right.
    mask : torch.Tensor of shape (n_texts, n_tokens)
        1 where a token takes part, 0 for padding and for tokens left out.
    pooling : {"mean", "cls", "max"}
        Average of the tokens, the first token, or the maximum of each feature.
    weights : torch.Tensor of shape (n_texts, n_tokens), optional
        Factor of each token in the mean. The divisor stays the number of tokens, as in Arora et al. (2017).

    Returns
    -------
    vectors : torch.Tensor of shape (n_texts, n_features)
        A text without tokens has the zero vector.
    """
    if pooling == "cls":
        return tokens[:, 0] * mask[:, :1]
    if pooling == "max":
        present = mask.bool()
        maximum = tokens.masked_fill(~present.unsqueeze(-1), float("-inf")).amax(dim=1)
        return maximum.masked_fill(~present.any(dim=1, keepdim=True), 0.0)
    mask = mask.to(tokens.dtype)
    share = mask / mask.sum(dim=1, keepdim=True).clamp(min=1)
    if weights is not None:
        share = share * weights
    return (share.unsqueeze(1) @ tokens).squeeze(1)
