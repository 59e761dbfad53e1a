"""What a transformer can take, and what its vectors depend on."""

import torch

# What tables of positions are called, and configurations' words for their length.
_POSITION_TABLES = ("position_embeddings", "embed_positions", "position_embedding")
_POSITION_KEYS = ("max_position_embeddings", "max_encoder_position_embeddings")
# Tokenizers and models without a limit state a huge number.
NO_LIMIT = 10**6
# Whose attention fits the memory whatever its implementation.
_FEW_TOKENS = 512


def check_architecture(model):
    """Raise ValueError for an architecture whose vectors depend on what it embedded before."""
    if getattr(model.config, "attention_type", None) == "block_sparse":
        raise ValueError(
            f"{type(model).__name__} with attention_type='block_sparse' is not supported: after a short text "
            "it attends fully to long ones, too. Set attention_type to 'original_full' in its config.json."
        )


def attend_by_matrix_products(model, limit):
    """Have attention computed as it is written, which in bfloat16 on a CPU beats torch's fused kernel.

    Its memory grows with the square of the length, so that models of long texts keep what they have.
    """
    if (
        limit is not None
        and limit <= _FEW_TOKENS
        and getattr(model.config, "_attn_implementation", None) == "sdpa"
        and hasattr(model, "set_attn_implementation")  # transformers of 2025 and later
    ):
        model.set_attn_implementation("eager")


def padding_token(model, tokenizer):
    """Return the token that fills up short texts."""
    stated = (tokenizer.pad_token_id, getattr(model.config, "pad_token_id", None), tokenizer.eos_token_id)
    # A padding token that was added to the tokenizer alone has no row in the model.
    return next((int(n) for n in stated if n is not None and 0 <= n < n_embeddings(model)), 0)


def depends_on(model, name, run):
    """Return whether what `run` returns depends on a parameter of the model: whether it changes with it."""
    if name in dict(model.named_buffers()):
        return False  # computed, not random
    parameter = dict(model.named_parameters(remove_duplicate=False)).get(name)
    if parameter is None:
        return True
    kept = parameter.detach().clone()
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        before = run()
        parameter.copy_(torch.randn(kept.shape))
        try:
            after = run()
        finally:
            parameter.copy_(kept)
    return not all(map(torch.allclose, before, after))


def n_embeddings(model):
    """Return the number of tokens that a model has vectors for, infinite where it does not say.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        The model.

    Returns
    -------
    number : int or float
        The number.
    """
    try:
        table = model.get_input_embeddings()
    except (AttributeError, NotImplementedError):
        return float("inf")
    return table.num_embeddings if isinstance(table, torch.nn.Embedding) else float("inf")


def position_limit(model):
    """Return the largest number of tokens that a model has positions for, or None where any number will do.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        The model. Position tables with a padding index, as in RoBERTa and MPNet, lose the rows up to it;
        those with an offset, as in BART and OPT, the rows below it.

    Returns
    -------
    limit : int or None
        The limit.
    """
    limits = [getattr(model.config, key, None) for key in _POSITION_KEYS]
    for name, module in model.named_modules():
        table = getattr(module, "weight", None)
        if name.endswith(_POSITION_TABLES) and isinstance(table, torch.Tensor) and table.ndim == 2:
            padding = getattr(module, "padding_idx", None)
            reserved = getattr(module, "offset", 0 if padding is None else padding + 1)
            limits.append(len(table) - reserved)
    # XLNet states -1 for no limit.
    return min((limit for limit in map(valid_limit, limits) if limit is not None), default=None)


def valid_limit(limit):
    """Return a stated limit as an int, or None where it states none, such as 0, -1 or "64"."""
    is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
    return int(limit) if is_number and 0 < limit < NO_LIMIT else None
