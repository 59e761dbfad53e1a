"""A frozen encoder in memory: tokens in batches, forward passes, sentence vectors."""

import inspect
import itertools
import re
import threading
from dataclasses import dataclass

import numpy as np
import torch

from ._foreign_code import check_no_foreign_code
from ._hidden_states import HiddenStates
from ._pooling import Recipe, average_layers, pool_tokens, resolve_layers

# Texts that are tokenised and sorted together: bounds the memory, whatever the number of texts.
WINDOW = 16_384
# Tokens of a batch, padding included, per unit of `batch_size`. The activations of 64 x 16 tokens fit the
# caches of a CPU, which was measured to be fastest; a GPU wants more to do at once.
TOKENS_PER_TEXT = {"cpu": 16}
TOKENS_PER_TEXT_ELSEWHERE = 128
# What one more forward pass costs beside its tokens, as a share of the tokens of a full batch. Up to this
# price, padding is saved by more batches.
COST_OF_A_PASS = 1 / 32
# Where neither the model nor its tokenizer names a limit.
FALLBACK_LIMIT = 512
# Tokenizers without a limit state a huge number.
_NO_LIMIT = 10**6

# Two lengths, to see what padding does.
_PROBES = ["a", "of what padding would do to the shorter one"]
_PROBE_TOLERANCE = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 0.1}

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, eq=False)
class Tokens:
    """Tokens of several texts, end to end."""

    ids: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    types: np.ndarray | None
    special: np.ndarray | None
    is_cut: np.ndarray


class Encoder:
    """A model with its tokenizer, on one device.

    Parameters
    ----------
    directory : pathlib.Path
        Directory of the model's files.
    device, dtype, trust_remote_code, local_files_only
        As in :func:`~skflow.embedders._loading.load_encoder`.

    Attributes
    ----------
    declared : Declared or None
        The modules of a sentence-transformers checkpoint.
    """

    def __init__(self, directory, *, device, dtype, trust_remote_code, local_files_only):
        from ._declared import Declared, load_plain

        options = {
            # Files of a directory need no network, code of other repositories may.
            "local_files_only": local_files_only or not trust_remote_code,
            # Said in so many words, since transformers would otherwise ask at the terminal.
            "trust_remote_code": bool(trust_remote_code),
        }
        self.device = torch.device(device)
        # Tokenizers and the hooks on the model are not safe to share between threads.
        self.lock = threading.RLock()
        self.declared = None
        # Loading draws random numbers for heads that the checkpoint lacks; the user's stream stays as it is.
        with torch.random.fork_rng(devices=[]):
            if (directory / "modules.json").is_file():
                if not trust_remote_code:
                    check_no_foreign_code(directory)
                self.declared = Declared(directory, device, dtype, options)
                self.model, self.tokenizer = self.declared.model, self.declared.tokenizer
            else:
                self.model, self.tokenizer = load_plain(directory, device, dtype, options)
        if self.model is None:
            return
        self.hard_limit = position_limit(self.model)
        limits = [self.hard_limit, self.tokenizer.model_max_length, self.declared and self.declared.limit]
        self.limit = min((n for n in limits if n is not None and n < _NO_LIMIT), default=FALLBACK_LIMIT)
        if dtype == "bfloat16" and self.device.type == "cpu":
            self._attend_by_matrix_products()
        self._takes_types = "token_type_ids" in inspect.signature(self.model.forward).parameters
        self._n_embeddings = n_embeddings(self.model)
        self._pad = next(
            (
                int(number)
                for number in (
                    self.tokenizer.pad_token_id,
                    getattr(self.model.config, "pad_token_id", None),
                    self.tokenizer.eos_token_id,
                )
                # A padding token that was added to the tokenizer alone has no row in the model.
                if number is not None and 0 <= number < self._n_embeddings
            ),
            0,
        )
        self.n_vocabulary = max(len(self.tokenizer), getattr(self.model.config, "vocab_size", 0))
        some_token = torch.full((1, min(16, self.limit)), int(self._pad == 0), device=self.device)
        example = {"input_ids": some_token, "attention_mask": torch.ones_like(some_token)}
        with torch.inference_mode():
            self._hidden = HiddenStates(self.model, example)
        self._leaks = self._padding_leaks(_PROBE_TOLERANCE[dtype])
        if self.declared is not None:
            self.declared.check(self._alone_and_together)
            self._leaks = self._leaks or self.declared.leaks

    def _attend_by_matrix_products(self):
        """Have attention computed as it is written, which in bfloat16 on a CPU beats torch's fused kernel.

        Its memory grows with the square of the length, so that models of long texts keep what they have.
        """
        if (
            self.hard_limit is not None
            and self.hard_limit <= FALLBACK_LIMIT
            and getattr(self.model.config, "_attn_implementation", None) == "sdpa"
            and hasattr(self.model, "set_attn_implementation")  # transformers of 2025 and later
        ):
            self.model.set_attn_implementation("eager")

    def _padding_leaks(self, tolerance):
        """Find out whether the model lets real tokens see padding, as FNet, ConvBERT and MobileBERT do."""
        tokens = self._tokenise(_PROBES, Recipe())
        short, long = tokens.lengths
        if not 0 < short < long:
            return False
        last = (self._hidden.n_layers,)
        with torch.inference_mode():
            together = self._hidden(last, self._features(tokens, np.array([1, 0])))[0][1, :short]
            alone = self._hidden(last, self._features(tokens, np.array([0])))[0][0]
        difference = (together.float() - alone.float()).abs().max()
        return bool(difference > tolerance * alone.float().abs().max().clamp(min=1))

    def _alone_and_together(self, texts):
        """Return the declared vectors of texts, run alone and in one batch."""
        tokens = self._tokenise(texts, Recipe())
        order = np.argsort(-tokens.lengths)
        with torch.inference_mode():
            vectors = [
                torch.cat([self.declared.run(self._features(tokens, rows)) for rows in batches])
                for batches in (order[:, None], [order])
            ]
        return [each.float().cpu().numpy()[np.argsort(order)] for each in vectors]

    def batches(self, rows, lengths, budget):
        """Split rows as :func:`split` does, and by length where the model cannot do with padding."""
        groups = [rows]
        if self._leaks:
            groups = np.split(rows, np.flatnonzero(np.diff(lengths[rows])) + 1)
        for group in groups:
            yield from split(group, lengths, budget)

    def probe(self, recipe):
        """Return the vector of a short text, one row; raise ValueError if the recipe does not suit."""
        with self.lock:
            self._check(recipe)
            return next(self.embed(["a"], recipe, batch_size=1))[1]

    def embed(self, texts, recipe, *, batch_size, progress=lambda n: None):
        """Embed texts, window by window.

        Parameters
        ----------
        texts : list of str
            The texts, best distinct ones.
        recipe : Recipe
            How.
        batch_size : int
            Texts of 16 tokens (on a CPU; 128 elsewhere) per forward pass.
        progress : callable, optional
            Called with the number of texts done since the last call.

        Yields
        ------
        start : int
            Position in `texts` of the window's first text.
        vectors : ndarray of shape (n_window, n_features)
            float32.
        is_cut : ndarray of shape (n_window,)
            Which texts were longer than the limit.
        """
        layers, pooling = self._check(recipe)
        if recipe.token_weights is not None and len(recipe.token_weights) != self.n_vocabulary:
            raise ValueError(
                f"the token_frequencies_ that sif learned are of {len(recipe.token_weights)} tokens, and "
                f"the model has {self.n_vocabulary}: it is another model than at fit; fit again."
            )
        for start in range(0, len(texts), WINDOW):
            window = texts[start : start + WINDOW]
            if recipe.as_declared and self.declared is not None:
                if not self.declared.is_fast:
                    is_cut = np.zeros(len(window), dtype=bool)
                    with self.lock:
                        if self.model is not None:
                            is_cut = self._tokenise(window, recipe).is_cut
                        vectors = self.declared.encode(
                            list(map(_encodable, window)), batch_size, recipe.max_length
                        )
                    progress(len(window))
                    yield start, vectors, is_cut
                    continue
                pool = self._declared_vectors
            else:

                def pool(features, tokens, rows):
                    return self._pooled(features, tokens, rows, layers, pooling, recipe)

            with self.lock:
                tokens = self._tokenise(window, recipe)
            vectors = self._run(tokens, batch_size, pool, progress)
            yield start, vectors, tokens.is_cut

    def count_tokens(self, texts, multiplicities, recipe):
        """Count how often each token takes part in the pooling of a corpus.

        Parameters
        ----------
        texts : list of str
            Distinct texts.
        multiplicities : ndarray of shape (n_texts,)
            How often each text occurs.
        recipe : Recipe
            Limit, and whether special tokens count.

        Returns
        -------
        counts : ndarray of shape (n_vocabulary,)
            float64.
        """
        self._check(recipe)
        counts = np.zeros(self.n_vocabulary)
        for start in range(0, len(texts), WINDOW):
            with self.lock:
                tokens = self._tokenise(texts[start : start + WINDOW], recipe)
            times = np.repeat(multiplicities[start : start + WINDOW], tokens.lengths).astype(np.float64)
            if tokens.special is not None:
                times *= tokens.special == 0
            counts += np.bincount(tokens.ids, weights=times, minlength=len(counts))
        return counts

    def average_tokens(self, texts, recipe, *, batch_size):
        """Average the hidden states of every entry of the vocabulary over its occurrences in texts.

        Parameters
        ----------
        texts : list of str
            Texts.
        recipe : Recipe
            Layers and limit. Special tokens do not count.
        batch_size : int
            Texts of sixteen tokens in a batch; so many fewer as they are longer.

        Returns
        -------
        vectors : ndarray of shape (n_vocabulary, n_features)
            float32; zero for entries that do not occur.
        n_occurrences : ndarray of shape (n_vocabulary,) of int
        """
        recipe = Recipe(
            layers=recipe.layers, pooling="mean", max_length=recipe.max_length, exclude_special_tokens=True
        )
        layers, _ = self._check(recipe)
        wanted = tuple(sorted(set(layers)))
        sums = torch.zeros((self.n_vocabulary, self._hidden.n_features), dtype=torch.float64)
        counts = np.zeros(self.n_vocabulary, dtype=np.int64)
        for start in range(0, len(texts), WINDOW):
            with self.lock:
                tokens = self._tokenise(texts[start : start + WINDOW], recipe)
            order = np.argsort(-tokens.lengths, kind="stable")
            order = order[tokens.lengths[order] > 0]
            for rows in self.batches(order, tokens.lengths, 16 * batch_size):
                with self.lock, torch.inference_mode():
                    features = self._features(tokens, rows)
                    states = dict(zip(wanted, self._hidden(wanted, features), strict=True))
                    average = average_layers(states, layers).double().cpu()
                    mask = features["attention_mask"].cpu().numpy() > 0
                    special = self._padded(tokens, tokens.special, rows, mask, 1).cpu()
                    ids = features["input_ids"].cpu()[special == 0]
                sums.index_add_(0, ids, average[special == 0])
                counts += np.bincount(ids.numpy(), minlength=len(counts))
        vectors = sums.numpy() / np.maximum(counts, 1)[:, None]
        return vectors.astype(np.float32), counts

    def _check(self, recipe):
        """Resolve layers and pooling, or raise ValueError."""
        if self.model is None:
            if not recipe.as_declared or recipe.max_length is not None:
                raise ValueError(
                    "layers, pooling, max_length, exclude_special_tokens and sif need a transformer, and "
                    f"this sentence-transformers checkpoint starts with {self.declared.kind}; leave them at "
                    "their defaults."
                )
            return None, None
        if recipe.max_length is not None:
            self._check_max_length(recipe.max_length)
        layers = recipe.layers
        if layers is None:
            layers = (1, -1) if self.declared is None else (-1,)
        layers = resolve_layers(layers, self._hidden.n_layers)
        pooling = recipe.pooling
        if pooling == "auto":
            pooling = "mean" if self.declared is None else self.declared.pooling
        if recipe.token_weights is not None and pooling != "mean":
            raise ValueError(f"sif weights the mean of the tokens; pooling={pooling!r} has no use for them.")
        if recipe.exclude_special_tokens and pooling not in ("mean", "max"):
            raise ValueError(
                f"exclude_special_tokens=True needs pooling='mean' or 'max'; pooling={pooling!r} takes "
                "special tokens."
            )
        return layers, pooling

    def _check_max_length(self, max_length):
        if self.hard_limit is not None and max_length > self.hard_limit:
            raise ValueError(
                f"max_length={max_length} is more than this model can take; expected at most "
                f"{self.hard_limit}."
            )
        n_special = self.tokenizer.num_special_tokens_to_add(pair=False)
        if max_length <= n_special:
            raise ValueError(
                f"max_length={max_length} leaves no room for text: the tokenizer adds {n_special} special "
                f"tokens; expected at least {n_special + 1}."
            )

    def _tokenise(self, texts, recipe):
        limit = recipe.max_length or self.limit
        prepare = None if self.declared is None else self.declared.prepare
        prepared = []
        for text in texts:
            text = _encodable(text)
            if prepare is not None:
                text = prepare(text, recipe.as_declared)
            prepared.append(self._shorten(text, limit))
        encoded = self.tokenizer(
            prepared,
            truncation=True,
            max_length=limit,
            padding=False,
            return_attention_mask=False,
            return_special_tokens_mask=recipe.exclude_special_tokens,
            verbose=False,
        )
        ids = encoded["input_ids"]
        lengths = np.fromiter(map(len, ids), dtype=np.int64, count=len(ids))
        joined = _join(ids)
        if len(joined) and joined.max() >= self._n_embeddings:
            token = self.tokenizer.convert_ids_to_tokens(int(joined.max()))
            raise ValueError(
                f"the tokenizer makes token {joined.max()} ({token!r}) of a text, and the model has only "
                f"{self._n_embeddings} tokens; was it added to the tokenizer and not to the model?"
            )
        is_cut = np.zeros(len(ids), dtype=bool)
        for row in np.flatnonzero(lengths >= limit):
            if encoded.encodings is not None:
                is_cut[row] = bool(encoded.encodings[row].overflowing)
            else:
                is_cut[row] = self._n_tokens(prepared[row], special=True) > limit
        return Tokens(
            joined,
            np.cumsum(lengths) - lengths,
            lengths,
            _join(encoded["token_type_ids"]) if self._takes_types and "token_type_ids" in encoded else None,
            _join(encoded["special_tokens_mask"]) if recipe.exclude_special_tokens else None,
            is_cut,
        )

    def _shorten(self, text, limit):
        """Cut a long text behind a word, so far to the right that its first `limit` tokens stay the same."""
        size = max(16 * limit, 4096)
        if self.tokenizer.truncation_side != "right":
            return text
        while len(text) > size:
            words = text[:size].rsplit(None, 1)
            if words and self._n_tokens(words[0]) > 2 * limit:
                return words[0]
            size *= 4
        return text

    def _n_tokens(self, text, *, special=False):
        return len(
            self.tokenizer(text, add_special_tokens=special, truncation=False, verbose=False)["input_ids"]
        )

    def _run(self, tokens, batch_size, pool, progress=lambda n: None):
        """Run the batches of a window and return the vectors in the order of the texts."""
        order = np.argsort(-tokens.lengths, kind="stable")  # the longest first: want of memory shows at once
        n_empty = int(np.count_nonzero(tokens.lengths == 0))
        filled = order[: len(order) - n_empty]
        parts = []
        budget = batch_size * TOKENS_PER_TEXT.get(self.device.type, TOKENS_PER_TEXT_ELSEWHERE)
        for rows in self.batches(filled, tokens.lengths, budget):
            with self.lock, torch.inference_mode():
                parts.append(pool(self._features(tokens, rows), tokens, rows))
            progress(len(rows))
        progress(n_empty)
        if not parts:  # no text has a token
            return np.zeros((len(order), self._n_pooled(pool)), dtype=np.float32)
        # Copied to the host once per window, so that a GPU never waits.
        joined = torch.cat(parts).float().cpu().numpy()
        vectors = np.zeros((len(order), joined.shape[1]), dtype=np.float32)
        vectors[filled] = joined
        return vectors

    def _n_pooled(self, pool):
        with self.lock, torch.inference_mode():
            tokens = self._tokenise(["a"], Recipe(exclude_special_tokens=True))
            return pool(self._features(tokens, [0]), tokens, [0]).shape[1]

    def _features(self, tokens, rows):
        """Pad some texts on the right: no real token of any architecture then sees or counts the padding."""
        mask = np.arange(tokens.lengths[rows[0]]) < tokens.lengths[rows][:, None]
        features = {
            "input_ids": self._padded(tokens, tokens.ids, rows, mask, self._pad),
            "attention_mask": torch.from_numpy(mask.astype(np.int64)).to(self.device),
        }
        if tokens.types is not None:
            features["token_type_ids"] = self._padded(tokens, tokens.types, rows, mask, 0)
        return features

    def _padded(self, tokens, values, rows, mask, fill, dtype=np.int64):
        padded = np.full(mask.shape, fill, dtype=dtype)
        padded[mask] = np.concatenate(
            [
                values[start : start + n]
                for start, n in zip(tokens.starts[rows], tokens.lengths[rows], strict=True)
            ]
        )
        return torch.from_numpy(padded).to(self.device)

    def _declared_vectors(self, features, tokens, rows):
        return self.declared.run(features)

    def _pooled(self, features, tokens, rows, layers, pooling, recipe):
        wanted = tuple(sorted(set(layers)))
        states = dict(zip(wanted, self._hidden(wanted, features), strict=True))
        average = average_layers(states, layers)
        if pooling not in ("mean", "cls", "max"):
            return self.declared.pool(average, features)
        mask, weights = features["attention_mask"], None
        if tokens.special is not None:
            mask = mask * (1 - self._padded(tokens, tokens.special, rows, mask.cpu().numpy() > 0, 0))
        if recipe.token_weights is not None:
            table = torch.from_numpy(recipe.token_weights).to(self.device)
            weights = table[features["input_ids"]]
        return pool_tokens(average, mask, pooling, weights)


def split(rows, lengths, budget):
    """Split rows sorted by length, longest first, into batches that cost least in all.

    A batch costs its tokens, padding included, and a constant for being one more forward pass. Which cuts are
    best up to a row follows from the best cuts up to the rows before it.

    Parameters
    ----------
    rows : ndarray of shape (n_rows,)
        Positions of the texts.
    lengths : ndarray of shape (n_texts,)
        Their lengths in tokens.
    budget : int
        Most tokens of a batch, padding included; a longer text is a batch of its own.

    Yields
    ------
    batch : ndarray
        Consecutive rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skflow.embedders._encoder import split
    >>> [batch.tolist() for batch in split(np.arange(5), np.array([9, 4, 4, 2, 2]), 8)]
    [[0], [1, 2], [3, 4]]
    """
    n = len(rows)
    sizes = lengths[rows].astype(np.float64)
    numbers = np.arange(n + 1)
    costs = np.zeros(n + 1)
    starts = np.zeros(n + 1, dtype=np.int64)
    first = 0  # of the longest batch that may end before `stop`
    for stop in range(1, n + 1):
        while first < stop - 1 and (stop - first) * sizes[first] > budget:
            first += 1
        choices = costs[first:stop] + (stop - numbers[first:stop]) * sizes[first:stop]
        best = int(choices.argmin())
        starts[stop], costs[stop] = first + best, choices[best] + budget * COST_OF_A_PASS
    cuts = [n]
    while cuts[-1] > 0:
        cuts.append(int(starts[cuts[-1]]))
    for start, stop in itertools.pairwise(reversed(cuts)):
        yield rows[start:stop]


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
        The model. Position tables with a padding index, as in RoBERTa and MPNet, lose the rows up to it.

    Returns
    -------
    limit : int or None
        The limit.
    """
    limits = [getattr(model.config, "max_position_embeddings", None)]
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
            reserved = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - reserved)
    # XLNet states -1 for no limit.
    return min((int(limit) for limit in limits if limit is not None and 0 < limit < _NO_LIMIT), default=None)


def _encodable(text):
    """Replace lone surrogates, which no tokenizer takes."""
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def _join(lists):
    total = sum(map(len, lists))
    return np.fromiter((number for numbers in lists for number in numbers), dtype=np.int32, count=total)
