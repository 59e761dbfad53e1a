"""How the vectors of tokens become that of a sentence."""

POOLINGS = ("mean", "cls", "max")


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
