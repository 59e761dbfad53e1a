"""Models as their files declare them: plain encoders and sentence-transformers checkpoints."""

import contextlib
import warnings
from pathlib import Path

import numpy as np
import torch

# What files of vocabularies are called.
_VOCABULARIES = ("tokenizer*.json", "vocab*", "merges.txt", "*.model", "*.codes", "*.tiktoken", "tekken.json")
# Upper case, white space at the ends and two lengths: where preparation, prompts or padding could differ.
_PROBES = ["  A Probe ", "of what The checkpoint declares itself to be."]
_PROBE_TOLERANCE = {"float32": 1e-5, "float16": 1e-2, "bfloat16": 5e-2}


def load_plain(directory, device, dtype, options):
    """Load an encoder that is no sentence-transformers checkpoint.

    Parameters
    ----------
    directory : pathlib.Path
        Its files.
    device : str
        Device of torch.
    dtype : {"float32", "float16", "bfloat16"}
        Type of the weights.
    options : dict
        Passed on to transformers.

    Returns
    -------
    model : transformers.PreTrainedModel
        The encoder, in evaluation mode.
    tokenizer : transformers.PreTrainedTokenizerBase
        Its tokenizer.

    Raises
    ------
    FileNotFoundError
        If there are no files of a tokenizer.

    Warns
    -----
    UserWarning
        If the checkpoint lacks weights of the encoder.
    """
    from transformers import AutoConfig, AutoTokenizer

    config = AutoConfig.from_pretrained(str(directory), **options)
    with _clear_about_tokenizers(directory):
        tokenizer = AutoTokenizer.from_pretrained(str(directory), **options)
    check_tokenizer_files(tokenizer, directory)
    model, report = _model_class(config).from_pretrained(
        str(directory), output_loading_info=True, **_dtype_option(dtype), **options
    )
    # Poolers belong to pretraining tasks, and hidden states do without them; a decoder is not run.
    missing = sorted(
        key for key in report["missing_keys"] if "pooler" not in key and not key.startswith("decoder.")
    )
    if missing:
        warnings.warn(
            f"{directory} lacks {len(missing)} weights of the encoder, such as {missing[0]!r}: they are "
            "random, and so are the vectors.",
            UserWarning,
            stacklevel=2,
        )
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
    return model.eval().to(device), tokenizer


def _model_class(config):
    """Choose the class to load: files may hold the encoder of an encoder-decoder alone, such as T5's."""
    from transformers import MODEL_FOR_TEXT_ENCODING_MAPPING, AutoModel, AutoModelForTextEncoding

    kind = type(config)
    if config.is_encoder_decoder or kind not in MODEL_FOR_TEXT_ENCODING_MAPPING:
        return AutoModel
    is_half = MODEL_FOR_TEXT_ENCODING_MAPPING[kind].__name__.endswith("EncoderModel")
    return AutoModelForTextEncoding if is_half else AutoModel


@contextlib.contextmanager
def _clear_about_tokenizers(directory):
    """Say that there are no files of a tokenizer, where an error of transformers comes from that."""
    try:
        yield
    except Exception as error:  # which one it is depends on the class and the version
        files = (path for pattern in _VOCABULARIES for path in directory.rglob(pattern))
        if "trust_remote_code" in str(error) or any(path.name != "tokenizer_config.json" for path in files):
            raise
        raise FileNotFoundError(
            f"{directory} has no tokenizer files: it lacks tokenizer.json, and any other vocabulary."
        ) from error


def check_tokenizer_files(tokenizer, directory):
    """Check that a tokenizer had files to be loaded from; without them, some versions make up an empty one.

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerBase
        The tokenizer.
    directory : pathlib.Path
        Where it was loaded from.

    Raises
    ------
    FileNotFoundError
        If its vocabulary is in none of the files that its class reads.
    """
    names = dict(getattr(tokenizer, "vocab_files_names", {}))
    if not names:  # a tokenizer of bytes or characters
        return
    # One file may hold all, under names of several libraries.
    whole = {
        names.pop("tokenizer_file", "tokenizer.json"),
        "tokenizer.json",
        "tokenizer.model",
        "tekken.json",
    }
    needed = [names[key] for key in ("vocab_file", "merges_file") if key in names]
    if any((directory / name).is_file() for name in whole) or any(directory.glob("tokenizer.*.json")):
        return
    missing = [name for name in needed if not (directory / name).is_file()]
    if missing or not needed:
        expected = " and ".join(needed)
        raise FileNotFoundError(
            f"{directory} has no tokenizer files: it lacks tokenizer.json{' and ' if missing else ''}"
            f"{' and '.join(missing)}; expected tokenizer.json{' or ' + expected if expected else ''}."
        )


def _dtype_option(dtype):
    import transformers

    version = tuple(int(part) for part in transformers.__version__.split(".")[:2])
    return {"dtype" if version >= (4, 56) else "torch_dtype": getattr(torch, dtype)}


def _to_float32(module, args, features):
    """Hand on what a transformer of half precision returns as the modules behind it expect it."""
    for name in ("token_embeddings", "sentence_embedding"):
        if name in features:
            features[name] = features[name].float()
    return features


class Declared:
    """A sentence-transformers checkpoint.

    Its own modules do the work. Where it starts with a transformer on text, tokens and batches may come from
    outside; whether that gives what its own ``encode`` gives is checked once, after loading. Otherwise
    ``encode`` does everything.

    Parameters
    ----------
    directory, device, dtype, options
        As in :func:`load_plain`.

    Attributes
    ----------
    model, tokenizer
        The transformer and its tokenizer, None if the checkpoint has none.
    limit : int or None
        Limit in tokens that it declares.
    is_fast : bool
        Whether :meth:`run` equals :meth:`encode`.
    leaks : bool
        Whether vectors from :meth:`run` depend on padding.
    """

    def __init__(self, directory, device, dtype, options):
        from sentence_transformers import SentenceTransformer

        with _clear_about_tokenizers(directory):
            self._st = SentenceTransformer(
                str(directory), device=device, model_kwargs=_dtype_option(dtype), **options
            ).eval()
        self._tolerance = _PROBE_TOLERANCE[dtype]
        first = self._st[0]
        self.kind = type(first).__name__
        self.model = getattr(first, "auto_model", None)
        self.tokenizer = getattr(first, "tokenizer", None) if self.model is not None else None
        if not hasattr(self.tokenizer, "num_special_tokens_to_add"):
            self.model = self.tokenizer = None
        if self.tokenizer is not None:
            folder = Path(str(getattr(self.tokenizer, "name_or_path", "")))
            check_tokenizer_files(self.tokenizer, folder if folder.is_dir() else Path(directory))
            if self.tokenizer.pad_token is None:
                # Decoders have none. What it is does not matter: the attention mask hides it.
                some = self.tokenizer.eos_token or self.tokenizer.unk_token
                self.tokenizer.pad_token = some or self.tokenizer.convert_ids_to_tokens(0)
        # Half precision is for the transformer alone; the modules behind it are small.
        for module in list(self._st)[1:] if self.model is not None else self._st:
            module.float()
        if self.model is not None and dtype != "float32":
            first.register_forward_hook(_to_float32)
        limit = self._st.get_max_seq_length() if self.model is not None else None
        self.limit = int(limit) if limit is not None and limit < 10**6 else None
        self._strips = not hasattr(first, "preprocess")  # sentence-transformers before 5.4
        self._lowers = self._strips and getattr(first, "do_lower_case", False)
        name = self._st.default_prompt_name
        self._prompt = (self._st.prompts.get(name) or "") if name is not None else ""
        self._extra = {}
        if self._prompt and self.model is not None:
            owner = self._st if hasattr(self._st, "_get_prompt_length") else first
            self._extra = {"prompt_length": owner._get_prompt_length(self._prompt)}
        self.is_fast = False
        self.leaks = self._one_by_one = False

    @property
    def pooling(self):
        """Name of the declared token pooling."""
        module = self._pooling_module()
        if hasattr(module, "get_pooling_mode_str"):
            return module.get_pooling_mode_str()
        mode = module.pooling_mode
        return mode if isinstance(mode, str) else "+".join(mode)

    def _pooling_module(self):
        for module in self._st:
            if type(module).__name__ == "Pooling":
                return module
        raise ValueError(
            "pooling='auto' needs a Pooling module, and this sentence-transformers checkpoint has none; "
            "expected 'mean', 'cls' or 'max'."
        )

    def prepare(self, text, as_declared):
        """Return a text as the checkpoint hands it to its tokenizer."""
        if as_declared:
            text = self._prompt + text
            if self._strips:
                text = text.strip()
        return text.lower() if self._lowers else text

    def run(self, features):
        """Return the vectors of a batch of tokens."""
        features = self._st[0]({**features, **self._extra})
        for module in list(self._st)[1:]:
            features = module(features)
        return features["sentence_embedding"]

    def pool(self, tokens, features):
        """Pool token vectors as declared."""
        features = {"token_embeddings": tokens, "attention_mask": features["attention_mask"]}
        return self._pooling_module()(features)["sentence_embedding"]

    def encode(self, texts, batch_size, max_length=None):
        """Return what the checkpoint's own ``encode`` returns, float32."""
        before = self._st.max_seq_length if max_length is not None else None
        if max_length is not None:
            self._st.max_seq_length = max_length
        try:
            vectors = self._st.encode(
                texts, batch_size=1 if self._one_by_one else batch_size, show_progress_bar=False
            )
        finally:
            if max_length is not None:
                self._st.max_seq_length = before
        return np.asarray(vectors, dtype=np.float32)

    def check(self, embed):
        """Find out whether running the modules on tokens from outside gives the declared vectors.

        Parameters
        ----------
        embed : callable
            Returns the vectors of texts run alone, and in one batch.
        """
        try:
            expected = np.concatenate([self.encode([text], batch_size=1) for text in _PROBES])
            # Behind some modules, such as a CNN, the vector of a text depends on the padding of its batch.
            self._one_by_one = not self._agree(self.encode(_PROBES, batch_size=2), expected)
            alone, together = embed(_PROBES)
            self.is_fast = self._agree(alone, expected)
            self.leaks = not self._agree(together, alone)
        except Exception:  # whatever an unknown module may raise: its own encode is the way then
            return

    def _agree(self, a, b):
        scale = max(1.0, float(np.abs(b).max()))
        return a.shape == b.shape and np.allclose(a, b, rtol=0, atol=self._tolerance * scale)
