"""A frozen encoder in memory: the modules that make sentence vectors, and running them."""

import copy
import functools
import inspect
import threading
import time
import warnings
from collections import OrderedDict

import numpy as np
import torch

from .._texts import encodable
from ..modules import LayeredEncoder, TokenPooling
from ..modules._layers import resolve_layers
from ..modules._pooling import POOLINGS
from ._architecture import (
    attend_by_matrix_products,
    check_architecture,
    depends_on,
    n_embeddings,
    padding_token,
    position_limit,
    valid_limit,
)
from ._batching import batches, timed_parts
from ._checkpoint import PROBES, Checkpoint
from ._plain import clear_about_nesting, load_plain, load_whole
from ._recipe import Recipe, check_layers
from ._remote_code import check_no_remote_code
from ._tokens import tokenize

# Texts that are tokenized and sorted together: bounds the memory, whatever the number of texts.
WINDOW = 16_384
# What was computed is handed over after so many seconds, so that a cache has it when the work is interrupted.
SECONDS_PER_WINDOW = 3.0
# Where neither the model nor its tokenizer names a limit.
FALLBACK_LIMIT = 512


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
    model, tokenizer
        The transformer and its tokenizer; None for a checkpoint that has none.
    n_vocabulary : int
        Entries of the vocabulary.
    lock : threading.RLock
        Tokenizers and models are used by one thread at a time.
    """

    def __init__(self, directory, *, device, dtype, trust_remote_code, local_files_only):
        options = {
            # Files of a directory need no network, code of other repositories may.
            "local_files_only": local_files_only or not trust_remote_code,
            # Said in so many words, since transformers would otherwise ask at the terminal.
            "trust_remote_code": bool(trust_remote_code),
        }
        self.device = torch.device(device)
        self.lock = threading.RLock()
        self._loading = (directory, device, dtype, options)
        self._checkpoint = None
        if not trust_remote_code:
            check_no_remote_code(directory)
        # Loading draws random numbers for heads that the checkpoint lacks; the user's stream stays as it is.
        with torch.random.fork_rng(devices=[]), clear_about_nesting(directory):
            if (directory / "modules.json").is_file():
                self._checkpoint = Checkpoint(*self._loading)
                self._declared = self._checkpoint.modules
                self.model, self.tokenizer = self._checkpoint.model, self._checkpoint.tokenizer
                self._missing = self._checkpoint.missing
            else:
                self.model, self.tokenizer, self._missing, self._is_part = load_plain(*self._loading)
        self._is_fast, self._sound = False, set()  # the layers that depend on no missing parameter
        if self.model is None:
            return
        self._hard_limit = position_limit(self.model)
        declared = self._checkpoint and self._checkpoint.limit
        limits = (self._hard_limit, valid_limit(self.tokenizer.model_max_length), declared)
        self._limit = min((n for n in limits if n is not None), default=FALLBACK_LIMIT)
        check_architecture(self.model)
        if dtype == "bfloat16" and self.device.type == "cpu":
            attend_by_matrix_products(self.model, self._hard_limit)
        self._takes_types = "token_type_ids" in inspect.signature(self.model.forward).parameters
        self._n_embeddings = n_embeddings(self.model)
        self.n_vocabulary = max(len(self.tokenizer), getattr(self.model.config, "vocab_size", 0))
        self._pad = padding_token(self.model, self.tokenizer)
        with torch.inference_mode():
            self._layered = LayeredEncoder(
                self.model,
                self.tokenizer,
                layers=[-1],
                max_seq_length=self._limit,
                pad_token_id=self._pad,
                strip=bool(self._checkpoint and self._checkpoint.strips),
                lower_case=bool(self._checkpoint and self._checkpoint.lowers),
            )
        self._attends_to_padding = self._layered.attends_to_padding
        if self._checkpoint is not None:
            self._probe_checkpoint()

    def _probe_checkpoint(self):
        """Find out whether running the modules on tokens from outside gives the declared vectors."""
        recipe = Recipe()
        for modules in (self._declared, self._with_layered(self._declared, recipe)):
            try:
                expected = self._checkpoint.probe()
                tokens = self._tokenize(PROBES, recipe)
                order = np.argsort(-tokens.lengths)
                with torch.inference_mode():
                    alone, together = (
                        torch.cat([self._run(modules, tokens, rows) for rows in parts])
                        for parts in (order[:, None], [order])
                    )
                alone, together = (x.float().cpu().numpy()[np.argsort(order)] for x in (alone, together))
            except Exception:  # whatever an unknown module may raise: its own encode is the way then
                continue
            if self._checkpoint.agree(alone, expected):
                self._is_fast, self._declared = True, modules
                self._attends_to_padding |= not self._checkpoint.agree(together, alone)
                return

    def modules(self, recipe):
        """Return the modules, in order, that turn tokens into sentence vectors.

        Parameters
        ----------
        recipe : Recipe
            How.

        Returns
        -------
        modules : list of torch.nn.Module
            Those of a checkpoint that runs as it declares itself, else a
            :class:`~skflow.modules.LayeredEncoder` and a pooling of its tokens. They share the model.

        Raises
        ------
        ValueError
            If the recipe does not suit the model.
        """
        layers, pooling = self._check(recipe)
        if self._runs_as_declared(recipe):
            return self._declared
        first = self._layered.with_settings(
            layers=layers,
            max_seq_length=recipe.max_length or self._limit,
            mark_special_tokens=recipe.exclude_special_tokens,
        )
        if pooling not in POOLINGS:
            return [first, self._checkpoint.pooling_module]
        weights = recipe.token_weights
        second = TokenPooling(
            first.get_embedding_dimension(),
            pooling,
            exclude_special_tokens=recipe.exclude_special_tokens,
            token_weights=None if weights is None else torch.tensor(weights),
        )
        return [first, second.to(self.device)]

    def copied_modules(self, recipe):
        """Return copies of the modules that can be saved, and prompts as options of SentenceTransformer.

        A declared transformer whose tokens attend to padding, or whose tokenizer may return no token at all,
        gives way to a LayeredEncoder of the last layer, which takes care of both.
        """
        with self.lock:
            modules = self.modules(recipe)
            if self._runs_as_declared(recipe):
                return self._copied_as_declared(modules, recipe), self._checkpoint.options
            if self._checkpoint is None and self._is_part:
                # The encoder of an encoder-decoder alone could not be loaded again.
                with torch.random.fork_rng(devices=[]):
                    whole = load_whole(*self._loading)
                first = LayeredEncoder(whole, copy.deepcopy(self.tokenizer), **modules[0].settings)
                return [first, *copy.deepcopy(modules[1:])], {}
            return copy.deepcopy(modules), {}

    def _copied_as_declared(self, modules, recipe):
        """Return copies of the modules of a checkpoint."""
        if self.model is None:
            return copy.deepcopy(modules)
        # SentenceTransformer casts other weights to the type of the transformer, which must hand that on.
        is_half = self.model.dtype != torch.float32
        is_cast = is_half and any(True for module in modules[1:] for _ in module.parameters())
        may_be_empty = self.tokenizer.num_special_tokens_to_add(pair=False) == 0
        if self._is_fast and not is_cast and (self._attends_to_padding or may_be_empty):
            return copy.deepcopy(self._with_layered(modules, recipe))
        copies = copy.deepcopy(modules)
        if is_half:
            copies[0]._forward_hooks = OrderedDict()
        if recipe.max_length is not None or self._is_fast:
            copies[0].max_seq_length = recipe.max_length or self._limit
        return copies

    def _with_layered(self, modules, recipe):
        """Return the modules of a checkpoint with a LayeredEncoder in the place of its transformer."""
        limit = recipe.max_length or self._limit
        return [self._layered.with_settings(layers=[-1], max_seq_length=limit), *modules[1:]]

    def probe(self, recipe):
        """Return the vector of a short text, one row; raise ValueError if the recipe does not suit."""
        with self.lock:
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
        rows : ndarray of shape (n_window,) of int
            Positions in `texts` of the texts done.
        vectors : ndarray of shape (n_window, n_features)
            float32.
        truncated : ndarray of shape (n_window,) of bool
            Which texts were longer than the limit.
        """
        modules = self.modules(recipe)
        weights = recipe.token_weights
        if weights is not None and len(weights) != self.n_vocabulary:
            raise ValueError(
                f"the token_frequencies_ that sif learned are of {len(weights)} tokens, and the model has "
                f"{self.n_vocabulary}: it is another model than at fit; fit again."
            )
        for start in range(0, len(texts), WINDOW):
            window = texts[start : start + WINDOW]
            if self._runs_as_declared(recipe) and not self._is_fast:
                parts = self._encode(window, recipe, batch_size)
            else:
                parts = self._embed(window, recipe, modules, batch_size)
            for rows, vectors, truncated in parts:
                progress(len(rows))
                yield start + rows, vectors, truncated

    def _encode(self, texts, recipe, batch_size):
        """Embed texts by the checkpoint's own `encode`."""
        truncated = np.zeros(len(texts), dtype=bool)
        if self.model is not None:
            with self.lock:
                truncated = self._tokenize(texts, recipe).truncated
        # The longest first, as in `encode` itself, so that the texts of a part have much the same length.
        order = np.argsort([-len(text) for text in texts], kind="stable")
        for rows in timed_parts(order, batch_size, SECONDS_PER_WINDOW):
            part = [encodable(texts[row]) for row in rows]
            with self.lock:
                vectors = self._checkpoint.encode(part, batch_size, recipe.max_length)
            yield rows, vectors, truncated[rows]

    def _embed(self, texts, recipe, modules, batch_size):
        """Embed texts by modules, the longest first, so that running out of memory shows at once."""
        with self.lock:
            tokens = self._tokenize(texts, recipe)
        order = np.argsort(-tokens.lengths, kind="stable")
        filled = order[tokens.lengths[order] > 0]
        pending, parts, began = [], [], time.monotonic()
        n_done, full_size, by_length = 0, batch_size, self._attends_to_padding
        while n_done < len(filled):
            try:
                rest = filled[n_done:]
                for rows in batches(rest, tokens.lengths, batch_size, self.device, by_length=by_length):
                    with self.lock, torch.inference_mode():
                        parts.append(self._run(modules, tokens, rows))
                    pending.append(rows)
                    n_done += len(rows)
                    if time.monotonic() - began > SECONDS_PER_WINDOW:
                        yield self._handed_over(pending, parts, tokens)
                        pending, parts, began = [], [], time.monotonic()
            except torch.cuda.OutOfMemoryError:
                if batch_size < full_size:
                    raise
            if n_done < len(filled):  # not in the handler, which keeps the failed batch in memory
                batch_size = batch_size / 2
                warnings.warn(
                    f"{self.device} has run out of memory, and batches are halved: a batch_size below "
                    f"{full_size} suits it better.",
                    RuntimeWarning,
                    stacklevel=2,
                )
                torch.cuda.empty_cache()
        if parts:
            yield self._handed_over(pending, parts, tokens)
        empty = order[len(filled) :]
        if len(empty):  # texts without a token
            if self._runs_as_declared(recipe):
                modules = self._with_layered(modules, recipe)
            with self.lock, torch.inference_mode():
                vector = self._run(modules, tokens, empty[:1]).float().cpu().numpy()
            yield empty, vector.repeat(len(empty), axis=0), tokens.truncated[empty]

    def _handed_over(self, pending, parts, tokens):
        """Return finished batches, copied to the host once, so that a GPU rarely waits."""
        rows = np.concatenate(pending)
        return rows, torch.cat(parts).float().cpu().numpy(), tokens.truncated[rows]

    def _run(self, modules, tokens, rows):
        """Return the vectors of one batch."""
        features = tokens.features(rows, self._pad, self.device)
        if self._checkpoint is not None:
            features = self._checkpoint.features(features)
        for module in modules:
            features = module(features)
        return features["sentence_embedding"]

    def token_vectors(self, texts, *, layers, max_length, batch_size):
        """Compute the vectors of the tokens of texts, batch by batch.

        Parameters
        ----------
        texts : list of str
            Texts.
        layers, max_length, batch_size
            As of a BertEmbedder.

        Yields
        ------
        ids : ndarray of shape (n_tokens,) of int
            Entries of the vocabulary, those that the tokenizer adds left out.
        vectors : ndarray of shape (n_tokens, n_features)
            float32.
        """
        recipe = Recipe(check_layers(layers), "mean", max_length, exclude_special_tokens=True)
        first, _ = self.modules(recipe)
        by_length = self._attends_to_padding
        for start in range(0, len(texts), WINDOW):
            with self.lock:
                tokens = self._tokenize(texts[start : start + WINDOW], recipe)
            order = np.argsort(-tokens.lengths, kind="stable")
            order = order[tokens.lengths[order] > 0]
            for rows in batches(order, tokens.lengths, batch_size, self.device, by_length=by_length):
                with self.lock, torch.inference_mode():
                    features = first(tokens.features(rows, self._pad, self.device))
                    own = (features["attention_mask"] > 0) & (features["special_tokens_mask"] == 0)
                    ids, vectors = features["input_ids"][own], features["token_embeddings"][own]
                    yield ids.cpu().numpy(), vectors.cpu().numpy()

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
                tokens = self._tokenize(texts[start : start + WINDOW], recipe)
            times = np.repeat(multiplicities[start : start + WINDOW], tokens.lengths).astype(np.float64)
            if tokens.special is not None:
                times *= tokens.special == 0
            counts += np.bincount(tokens.ids, weights=times, minlength=len(counts))
        return counts

    def _runs_as_declared(self, recipe):
        """Return whether a checkpoint runs exactly as it declares itself."""
        return self._checkpoint is not None and recipe.as_declared

    def _check(self, recipe):
        """Resolve layers and pooling, or raise ValueError."""
        if self.model is None:
            if not recipe.as_declared or recipe.max_length is not None:
                raise ValueError(
                    "layers, pooling, max_length, exclude_special_tokens and sif need a transformer, and "
                    f"this sentence-transformers checkpoint starts with {self._checkpoint.kind}; leave them "
                    "at their defaults."
                )
            return None, None
        if recipe.max_length is not None:
            self._check_max_length(recipe.max_length)
        layers = recipe.layers
        if layers is None:
            layers = (1, -1) if self._checkpoint is None else (-1,)
        layers = resolve_layers(layers, self._layered.n_layers)
        self._check_weights(layers)
        pooling = recipe.pooling
        if pooling == "auto" and not self._runs_as_declared(recipe):
            pooling = "mean" if self._checkpoint is None else self._checkpoint.pooling
        if recipe.token_weights is not None and pooling != "mean":
            raise ValueError(f"sif weights the mean of the tokens; pooling={pooling!r} has no use for them.")
        if recipe.exclude_special_tokens and pooling not in ("mean", "max"):
            raise ValueError(
                f"exclude_special_tokens=True needs pooling='mean' or 'max'; pooling={pooling!r} takes "
                "special tokens."
            )
        return layers, pooling

    def _check_weights(self, layers):
        """Raise ValueError where layers depend on parameters that the files lack: they would be random."""
        if not self._missing or layers in self._sound:
            return
        features = self._tokenize(PROBES[:1], Recipe()).features(np.arange(1), self._pad, self.device)
        run = functools.partial(self._layered.hidden_states, sorted(set(layers)), features)
        with self.lock:
            missing = [name for name in self._missing if depends_on(self.model, name, run)]
        if missing:
            raise ValueError(
                f"{self._loading[0]} lacks {len(missing)} weights of the encoder, such as {missing[0]!r}: "
                "they would be random, and so would the vectors. Is it the right file, and the right "
                "architecture in config.json?"
            )
        self._sound.add(layers)

    def _check_max_length(self, max_length):
        """Raise ValueError if texts cannot be truncated at so many tokens."""
        if self._hard_limit is not None and max_length > self._hard_limit:
            raise ValueError(
                f"max_length={max_length} is more than this model can take; expected at most "
                f"{self._hard_limit}."
            )
        n_special = self.tokenizer.num_special_tokens_to_add(pair=False)
        if max_length <= n_special:
            raise ValueError(
                f"max_length={max_length} leaves no room for text: the tokenizer adds {n_special} special "
                f"tokens; expected at least {n_special + 1}."
            )

    def _tokenize(self, texts, recipe):
        """Tokenize texts as the recipe and the checkpoint want it."""
        prepare = None
        if self._checkpoint is not None:

            def prepare(text):
                return self._checkpoint.prepare(text, recipe.as_declared)

        return tokenize(
            self.tokenizer,
            texts,
            recipe.max_length or self._limit,
            prepare=prepare,
            n_embeddings=self._n_embeddings,
            types=self._takes_types,
            special=recipe.exclude_special_tokens,
        )
