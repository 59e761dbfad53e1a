"""Tiny random encoders of several architectures, made on the spot, and one that looks vectors up."""

from sklearn.base import BaseEstimator, TransformerMixin

WORDS = (  # noqa: SIM905 - a list of words is best read as words
    "the a cat dog sat ran on mat in park man woman is was playing guitar with big small red blue he she "
    "they not no two three people child ball bird sings song of and to"
).split()
SENTENCES = [
    "the cat sat on the mat",
    "a dog ran in the park",
    "",
    "two people playing guitar",
    "a big red ball and a small blue ball",
    "the cat sat on the mat",
    "zebra",
    "  the   child is not   playing with the dog ",
    "he sings a song of two birds to the man and the woman in the park " * 3,
]
BERT_LIKE = ("bert", "distilbert", "electra", "albert", "mpnet", "roberta")
DECODERS = ("gpt2", "llama")
ARCHITECTURES = (*BERT_LIKE, *DECODERS, "t5")
# Their real tokens see padding, whatever the attention mask says.
LEAKY = ("fnet", "convbert", "mobilebert")


def wordpiece(specials, *, types=True, single="{cls} $A {sep}"):
    """A lower-casing WordPiece tokenizer over WORDS and single letters."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    order = [specials[name] for name in ("cls", "pad", "sep", "unk", "mask")]
    tokens = list(dict.fromkeys(order + WORDS + letters + ["##" + letter for letter in letters]))
    vocabulary = {token: i for i, token in enumerate(tokens)}
    core = Tokenizer(models.WordPiece(vocabulary, unk_token=specials["unk"]))
    core.normalizer = normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.post_processor = processors.TemplateProcessing(
        single=single.format(**specials),
        special_tokens=[(specials[name], vocabulary[specials[name]]) for name in ("cls", "sep")],
    )
    inputs = ["input_ids", "token_type_ids", "attention_mask"] if types else ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        model_input_names=inputs,
        **{f"{name}_token": token for name, token in specials.items()},
    )


def byte_bpe():
    """A byte-level BPE tokenizer with an end token and without a padding token, as GPT-2 has."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator([" ".join(WORDS)], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<|endoftext|>", model_input_names=["input_ids", "attention_mask"]
    )


BERT_TOKENS = {"cls": "[CLS]", "pad": "[PAD]", "sep": "[SEP]", "unk": "[UNK]", "mask": "[MASK]"}
ROBERTA_TOKENS = {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"}


def make_encoder(name, directory, *, seed=0):
    """Save a random encoder of 4 layers and 32 features, and its tokenizer."""
    import torch
    import transformers as hf

    roberta_like = name in ("roberta", "mpnet")
    if name in DECODERS:
        tokenizer = byte_bpe()
    else:
        tokenizer = wordpiece(
            ROBERTA_TOKENS if roberta_like else BERT_TOKENS, types=name in ("bert", "electra", "albert")
        )
        if name == "fnet":  # has no attention mask at all
            tokenizer.model_input_names = ["input_ids"]
    common = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 66 if roberta_like else 64,
    }
    if roberta_like:
        common["pad_token_id"] = tokenizer.pad_token_id
    config = {
        "bert": lambda: hf.BertConfig(**common),
        "distilbert": lambda: hf.DistilBertConfig(
            vocab_size=len(tokenizer),
            dim=32,
            n_layers=4,
            n_heads=4,
            hidden_dim=64,
            max_position_embeddings=64,
        ),
        # The embeddings are narrower than the blocks, and projected.
        "electra": lambda: hf.ElectraConfig(**common, embedding_size=16),
        # One set of weights stands for all layers.
        "albert": lambda: hf.AlbertConfig(**common, embedding_size=16),
        "mpnet": lambda: hf.MPNetConfig(**common),
        "roberta": lambda: hf.RobertaConfig(**common),
        "gpt2": lambda: hf.GPT2Config(
            vocab_size=len(tokenizer),
            n_embd=32,
            n_layer=4,
            n_head=4,
            n_positions=64,
            bos_token_id=0,
            eos_token_id=0,
        ),
        "llama": lambda: hf.LlamaConfig(
            **common, num_key_value_heads=2, pad_token_id=None, bos_token_id=0, eos_token_id=0
        ),
        "fnet": lambda: hf.FNetConfig(**{k: v for k, v in common.items() if k != "num_attention_heads"}),
        "convbert": lambda: hf.ConvBertConfig(**common, embedding_size=32, conv_kernel_size=3),
        "mobilebert": lambda: hf.MobileBertConfig(
            **common, embedding_size=16, intra_bottleneck_size=16, num_feedforward_networks=2
        ),
        "t5": lambda: hf.T5Config(
            vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=64, num_layers=4, num_heads=4, pad_token_id=1
        ),
    }[name]()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = (hf.T5Model if name == "t5" else hf.AutoModel.from_config)(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():  # the usual initialization is too flat to tell layers apart
                parameter.add_(torch.randn_like(parameter) * 0.1)
        model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return str(directory)


class Lookup(TransformerMixin, BaseEstimator):
    """Maps a text that starts with the number i to row i of a matrix."""

    def __init__(self, vectors):
        self.vectors = vectors

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return self.vectors[[int(text.split()[0]) for text in X]]
