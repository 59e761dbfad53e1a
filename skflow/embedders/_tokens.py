"""Texts to tokens: truncated, end to end, and padded batch by batch."""

from dataclasses import dataclass

import numpy as np
import torch

from .._texts import encodable


@dataclass(frozen=True, eq=False)
class Tokens:
    """Tokens of several texts, end to end.

    Parameters
    ----------
    ids, types, special : ndarray of shape (n_tokens,) of int32
        Entries of the vocabulary, token types, and whether a token was added by the tokenizer; the latter two
        None where nobody asks for them.
    starts, lengths : ndarray of shape (n_texts,) of int64
        Where the tokens of each text are.
    truncated : ndarray of shape (n_texts,) of bool
        Which texts had more tokens than the limit.
    """

    ids: np.ndarray
    types: np.ndarray | None
    special: np.ndarray | None
    starts: np.ndarray
    lengths: np.ndarray
    truncated: np.ndarray

    def features(self, rows, pad, device):
        """Return a batch, padded on the right: no real token of any architecture then counts the padding."""
        width = max(self.lengths[rows].max(), 1)  # models do not run on no token at all
        mask = np.arange(width) < self.lengths[rows][:, None]
        features = {
            "input_ids": self._padded(self.ids, rows, mask, pad),
            "attention_mask": torch.from_numpy(mask.astype(np.int64)),
        }
        if self.types is not None:
            features["token_type_ids"] = self._padded(self.types, rows, mask, 0)
        if self.special is not None:
            features["special_tokens_mask"] = self._padded(self.special, rows, mask, 0)
        if device.type == "cuda":
            # From pinned memory a copy does not wait for what is computed meanwhile.
            features = {name: values.pin_memory() for name, values in features.items()}
        non_blocking = device.type == "cuda"
        return {name: values.to(device, non_blocking=non_blocking) for name, values in features.items()}

    def _padded(self, values, rows, mask, fill):
        """Return the values of some texts as a matrix."""
        padded = np.full(mask.shape, fill, dtype=np.int64)
        parts = zip(self.starts[rows], self.lengths[rows], strict=True)
        padded[mask] = np.concatenate([values[start : start + n] for start, n in parts])
        return torch.from_numpy(padded)


def tokenize(tokenizer, texts, limit, *, prepare=None, n_embeddings=float("inf"), types=False, special=False):
    """Tokenize and truncate texts.

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerBase
    texts : list of str
    limit : int
        Most tokens of a text, special ones included.
    prepare : callable, default=None
        What is done to each text first.
    n_embeddings : int or float, default=inf
        Number of tokens that the model has vectors for.
    types, special : bool, default=False
        Whether the model takes token types, and whether special tokens are to be marked.

    Returns
    -------
    tokens : Tokens

    Raises
    ------
    ValueError
        If the tokenizer makes a token that the model lacks.
    """
    prepared = [_shorten(tokenizer, _prepared(text, prepare), limit) for text in texts]
    encoded = tokenizer(
        prepared,
        truncation=True,
        max_length=limit,
        padding=False,
        return_attention_mask=False,
        return_special_tokens_mask=special,
        verbose=False,
    )
    ids = encoded["input_ids"]
    lengths = np.fromiter(map(len, ids), dtype=np.int64, count=len(ids))
    joined = _join(ids)
    if len(joined) and joined.max() >= n_embeddings:
        token = tokenizer.convert_ids_to_tokens(int(joined.max()))
        raise ValueError(
            f"the tokenizer makes token {joined.max()} ({token!r}) of a text, and the model has only "
            f"{n_embeddings} tokens; was it added to the tokenizer and not to the model?"
        )
    truncated = np.zeros(len(ids), dtype=bool)
    for row in np.flatnonzero(lengths >= limit):
        if encoded.encodings is not None:
            truncated[row] = bool(encoded.encodings[row].overflowing)
        else:
            truncated[row] = _n_tokens(tokenizer, prepared[row], special=True) > limit
    return Tokens(
        joined,
        _join(encoded["token_type_ids"]) if types and "token_type_ids" in encoded else None,
        _join(encoded["special_tokens_mask"]) if special else None,
        np.cumsum(lengths) - lengths,
        lengths,
        truncated,
    )


def _prepared(text, prepare):
    """Return a text that tokenizers take, prepared as the checkpoint wants it."""
    text = encodable(text)
    return text if prepare is None else prepare(text)


def _shorten(tokenizer, text, limit):
    """Cut a long text behind a word, so far to the right that its first `limit` tokens stay the same."""
    size = max(16 * limit, 4096)
    if tokenizer.truncation_side != "right":
        return text
    while len(text) > size:
        words = text[:size].rsplit(None, 1)
        if words and _n_tokens(tokenizer, words[0]) > 2 * limit:
            return words[0]
        size *= 4
    return text


def _n_tokens(tokenizer, text, *, special=False):
    """Return the number of tokens of a text that is not truncated."""
    return len(tokenizer(text, add_special_tokens=special, truncation=False, verbose=False)["input_ids"])


def _join(lists):
    """Return lists of ints, end to end."""
    total = sum(map(len, lists))
    return np.fromiter((number for numbers in lists for number in numbers), dtype=np.int32, count=total)
