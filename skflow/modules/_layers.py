"""Which hidden states make up the vector of a token."""


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
