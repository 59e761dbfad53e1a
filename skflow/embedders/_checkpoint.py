"""A sentence-transformers checkpoint as it declares itself."""

from pathlib import Path

import numpy as np

from ._architecture import valid_limit
from ._plain import check_tokenizer_files, clear_about_tokenizers, dtype_option, missing_weights

# Upper case, white space at the ends and two lengths: where preparation, prompts or padding could differ.
PROBES = ["  A Probe ", "of what The checkpoint declares itself to be."]
_TOLERANCE = {"float32": 1e-5, "float16": 1e-2, "bfloat16": 5e-2}


class Checkpoint:
    """A sentence-transformers checkpoint.

    Its own modules do the work. Where it starts with a transformer on text, tokens and batches may come from
    outside; whether that gives what its own ``encode`` gives is for the caller to try, by `PROBES`, after
    loading.

    Parameters
    ----------
    directory, device, dtype, options
        As in :func:`~skflow.embedders._plain.load_plain`.

    Attributes
    ----------
    model, tokenizer
        The transformer and its tokenizer, None if the checkpoint has none.
    kind : str
        Class of the first module.
    limit : int or None
        Limit in tokens that it declares.
    missing : list of str
        Parameters of the transformer that the files lack.
    strips, lowers : bool
        Whether texts lose white space at their ends, and capitals.
    options : dict
        Prompts and similarity, as keyword arguments of SentenceTransformer.
    """

    def __init__(self, directory, device, dtype, options):
        from sentence_transformers import SentenceTransformer

        with clear_about_tokenizers(directory), missing_weights() as missing:
            self._st = SentenceTransformer(
                str(directory), device=device, model_kwargs=dtype_option(dtype), **options
            ).eval()
        self.missing = sorted(missing)
        self._tolerance = _TOLERANCE[dtype]
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
        self.limit = valid_limit(self._st.get_max_seq_length()) if self.model is not None else None
        self.strips = not hasattr(first, "preprocess")  # sentence-transformers before 5.4
        self.lowers = self.strips and getattr(first, "do_lower_case", False)
        name = self._st.default_prompt_name
        self._prompt = (self._st.prompts.get(name) or "") if name is not None else ""
        self.options = {
            "prompts": dict(self._st.prompts),
            "default_prompt_name": name,
            "similarity_fn_name": self._st.similarity_fn_name,
        }
        self._extra = {}
        if self._prompt and self.model is not None:
            owner = self._st if hasattr(self._st, "_get_prompt_length") else first
            self._extra = {"prompt_length": owner._get_prompt_length(self._prompt)}
        self._one_by_one = False

    @property
    def modules(self):
        """The declared modules, in order, and the truncation of the vectors if there is one."""
        modules = list(self._st)
        if self._st.truncate_dim is not None:
            from ..modules import Truncation

            modules.append(Truncation(self._st.truncate_dim))
        return modules

    @property
    def pooling_module(self):
        """The declared module that pools tokens; ValueError if there is none."""
        for module in self._st:
            if type(module).__name__ == "Pooling":
                return module
        raise ValueError(
            "pooling='auto' needs a Pooling module, and this sentence-transformers checkpoint has none; "
            "expected 'mean', 'cls' or 'max'."
        )

    @property
    def pooling(self):
        """Name of the declared token pooling."""
        module = self.pooling_module
        if hasattr(module, "get_pooling_mode_str"):
            return module.get_pooling_mode_str()
        mode = module.pooling_mode
        return mode if isinstance(mode, str) else "+".join(mode)

    def prepare(self, text, as_declared):
        """Return a text as the checkpoint hands it to its tokenizer."""
        if as_declared:
            text = self._prompt + text
            if self.strips:
                text = text.strip()
        return text.lower() if self.lowers else text

    def features(self, features):
        """Return a batch with what the modules want to know beside its tokens."""
        return {**features, **self._extra}

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

    def probe(self):
        """Return the vectors of the probes, each encoded alone."""
        expected = np.concatenate([self.encode([text], batch_size=1) for text in PROBES])
        # Behind some modules, such as a CNN, the vector of a text depends on the padding of its batch.
        self._one_by_one = not self.agree(self.encode(PROBES, batch_size=2), expected)
        return expected

    def agree(self, a, b):
        """Return whether two computations of the same vectors agree, up to rounding."""
        scale = max(1.0, float(np.abs(b).max()))
        return a.shape == b.shape and np.allclose(a, b, rtol=0, atol=self._tolerance * scale)


def _to_float32(module, args, features):
    """Hand on what a transformer of half precision returns as the modules behind it expect it."""
    for name in ("token_embeddings", "sentence_embedding"):
        if name in features:
            features[name] = features[name].float()
    return features
