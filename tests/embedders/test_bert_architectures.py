"""Architectures with tables, windows and shapes of their own, against transformers itself."""

import json
import shutil

import numpy as np
import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

from skflow.embedders import BertEmbedder

from .._encoders import BERT_TOKENS, SENTENCES, WORDS, wordpiece

pytestmark = pytest.mark.filterwarnings("ignore:.*texts were truncated:UserWarning")

N_TOKENS = len(wordpiece(BERT_TOKENS))
LONG = " ".join(WORDS * 6)
TEXTS = [*(text for text in SENTENCES if text.strip()), LONG]

BASE = {
    "vocab_size": N_TOKENS,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
}
ENCODER_DECODER = {
    "vocab_size": N_TOKENS,
    "d_model": 32,
    "encoder_layers": 3,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 0,
}
OPT = {
    "vocab_size": N_TOKENS,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "ffn_dim": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
}
# RoBERTa's kin reserve the rows up to the padding index: of 66 rows, 64 are positions.
ROBERTA = {**BASE, "max_position_embeddings": 66}
SUPPORTED = {
    "led": lambda: hf.LEDConfig(
        **ENCODER_DECODER,
        max_encoder_position_embeddings=64,
        max_decoder_position_embeddings=32,
        attention_window=8,
    ),
    "bart": lambda: hf.BartConfig(**ENCODER_DECODER, max_position_embeddings=64),
    "pegasus": lambda: hf.PegasusConfig(**ENCODER_DECODER, max_position_embeddings=64),
    "ibert": lambda: hf.IBertConfig(**ROBERTA),
    "longformer": lambda: hf.LongformerConfig(**ROBERTA, attention_window=4),
    "longformer, longer window": lambda: hf.LongformerConfig(**ROBERTA, attention_window=16),
    "opt": lambda: hf.OPTConfig(**OPT),
    "opt, projected": lambda: hf.OPTConfig(**OPT, word_embed_proj_dim=16),
    "bigbird, full": lambda: hf.BigBirdConfig(**BASE, attention_type="original_full"),
    "yoso": lambda: hf.YosoConfig(**BASE, use_expectation=True),
    "xlm": lambda: hf.XLMConfig(vocab_size=N_TOKENS, emb_dim=32, n_layers=3, n_heads=4, pad_index=1,
                                max_position_embeddings=64),
    "deberta": lambda: hf.DebertaV2Config(**BASE, relative_attention=True, pos_att_type=["c2p", "p2c"]),
    "longt5": lambda: hf.LongT5Config(vocab_size=N_TOKENS, d_model=32, d_kv=8, d_ff=64, num_layers=3,
                                      num_heads=4, local_radius=4),
}  # fmt: skip
UNSUPPORTED = {
    "bigbird": (lambda: hf.BigBirdConfig(**BASE, block_size=8, num_random_blocks=1), "BigBird.*block_sparse"),
    "bigbird_pegasus": (
        lambda: hf.BigBirdPegasusConfig(**ENCODER_DECODER, max_position_embeddings=64, block_size=8),
        "BigBirdPegasus.*block_sparse",
    ),
    "reformer": (
        lambda: hf.ReformerConfig(
            vocab_size=N_TOKENS,
            hidden_size=32,
            attention_head_size=8,
            num_attention_heads=4,
            axial_pos_embds=False,
            max_position_embeddings=64,
            attn_layers=["local", "local"],
            local_attn_chunk_length=8,
        ),
        "Reformer.*not supported",
    ),
    "funnel": (
        lambda: hf.FunnelConfig(
            vocab_size=N_TOKENS,
            block_sizes=[1, 1],
            d_model=32,
            n_head=4,
            d_head=8,
            d_inner=64,
            architectures=["FunnelModel"],
        ),
        "Funnel.*not supported",
    ),
}


def save(config, directory, tokenizer=None):
    """Save a random model; return it and its tokenizer."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = hf.AutoModel.from_config(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(directory)
    tokenizer = tokenizer or wordpiece(BERT_TOKENS, types=False)
    tokenizer.save_pretrained(directory)
    return model, tokenizer


def expected_vectors(model, tokenizer, layer, limit):
    """Run transformers on one text at a time, and average its tokens."""
    model = model.get_encoder() if model.config.is_encoder_decoder else model
    vectors = []
    for text in TEXTS:
        encoded = tokenizer(text, truncation=True, max_length=limit, return_tensors="pt")
        with torch.no_grad():
            states = model(
                encoded["input_ids"], attention_mask=encoded["attention_mask"], output_hidden_states=True
            )
        # A window pads inside some models.
        vectors.append(states.hidden_states[layer][0, : encoded["input_ids"].shape[1]].mean(dim=0).numpy())
    return np.array(vectors)


@pytest.mark.parametrize("architecture", SUPPORTED)
def test_vectors_are_those_of_transformers(architecture, tmp_path):
    model, tokenizer = save(SUPPORTED[architecture](), tmp_path)
    limit = None if architecture == "longt5" else 64
    for layer in (1, -1):
        embedder = BertEmbedder(tmp_path, layers=layer, pooling="mean").fit(["a"])
        together = embedder.transform(TEXTS)
        expected = expected_vectors(model, tokenizer, layer, limit or 512)
        np.testing.assert_allclose(together, expected, rtol=0, atol=1e-5)
        alone = np.concatenate([embedder.transform([text]) for text in TEXTS])
        np.testing.assert_allclose(alone, together, rtol=0, atol=1e-5)
    if limit:
        with pytest.raises(ValueError, match=r"max_length=65 .* at most 64"):
            embedder.set_params(max_length=65).fit(["a"])


@pytest.mark.parametrize("architecture", UNSUPPORTED)
def test_what_is_not_supported_is_said(architecture, tmp_path):
    make, message = UNSUPPORTED[architecture]
    save(make(), tmp_path)
    with pytest.raises(ValueError, match=message):
        BertEmbedder(tmp_path).fit(["a"])


def test_canine_is_not_supported(tmp_path):
    config = hf.CanineConfig(
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=128,
        num_hash_functions=4,
        num_hash_buckets=64,
    )
    save(config, tmp_path, hf.CanineTokenizer(model_max_length=128))
    with pytest.raises(ValueError, match=r"Canine.*not supported"):
        BertEmbedder(tmp_path).fit(["a"])


def test_layers_of_several_widths_are_not_averaged(tmp_path):
    save(hf.OPTConfig(**OPT, word_embed_proj_dim=16), tmp_path)
    widths = [BertEmbedder(tmp_path, layers=layer).fit_transform(["a"]).shape[1] for layer in (1, -1)]
    assert widths == [32, 16]
    with pytest.raises(ValueError, match=r"OPT.* have \[16, 32\] features, which cannot be averaged"):
        BertEmbedder(tmp_path, layers=[1, -1]).fit(["a"])


@pytest.fixture
def without(tmp_path):
    """Return a function that copies a model without the parameters that a predicate names."""

    def copy(path, leaves_out):
        target = tmp_path / "lacking"
        shutil.copytree(path, target)
        (file,) = target.rglob("model.safetensors")
        weights = load_file(file)
        kept = {name: value for name, value in weights.items() if not leaves_out(name)}
        assert len(kept) < len(weights)
        save_file(kept, file, metadata={"format": "pt"})
        return target

    return copy


@pytest.mark.parametrize("is_checkpoint", [False, True])
def test_weights_that_are_missing_from_a_pooled_layer(is_checkpoint, tiny_bert, declare, without, tmp_path):
    path = without(declare() if is_checkpoint else tiny_bert, lambda name: ".layer.2." in name)
    with pytest.raises(ValueError, match=r"lacks \d+ weights of the encoder, such as '.*layer\.2\."):
        BertEmbedder(path, cache=tmp_path / "c.sqlite").fit_transform(["a"])
    # The input of block 2 does not depend on it.
    vectors = BertEmbedder(path, layers=2, pooling="mean").fit_transform(SENTENCES)
    expected = BertEmbedder(tiny_bert, layers=2, pooling="mean", max_length=24 if is_checkpoint else None)
    np.testing.assert_allclose(vectors, expected.fit_transform(SENTENCES), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("architecture", "name", "layer", "is_used"),
    [
        ("bert", "self.query", -1, True),
        ("bert", "pooler", -1, False),
        ("mpnet", "relative_attention_bias", 1, True),  # defined behind the blocks, used in the first
        ("mpnet", "relative_attention_bias", 0, False),
        ("gpt2", "ln_f", 3, False),
        ("gpt2", "ln_f", -1, True),
        ("t5", "decoder.block", -1, False),
        ("t5", "encoder.final_layer_norm", -1, True),
        ("t5", "shared", 1, True),
    ],
)
def test_missing_weights_matter_where_they_are_used(architecture, name, layer, is_used, tiny, without):
    path = without(tiny(architecture), lambda each: name in each)
    embedder = BertEmbedder(path, layers=layer, pooling="mean")
    if is_used:
        with pytest.raises(ValueError, match="they would be random"):
            embedder.fit(["a"])
    else:
        expected = BertEmbedder(tiny(architecture), layers=layer, pooling="mean").fit_transform(SENTENCES)
        np.testing.assert_allclose(embedder.fit_transform(SENTENCES), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("is_checkpoint", [False, True])
def test_a_known_type_with_a_class_of_its_own(is_checkpoint, tiny_bert, declare, set_json, tmp_path):
    path = tmp_path / "model"
    shutil.copytree(declare() if is_checkpoint else tiny_bert, path)
    for file in path.rglob("config.json"):
        if "model_type" in json.loads(file.read_text()):
            set_json(file, auto_map={"AutoModel": "other/code--modeling_bert.JinaBertModel"})
    with pytest.raises(ValueError, match=r"JinaBertModel.*trust_remote_code=True"):
        BertEmbedder(path).fit(["a"])


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "modules.json"])
def test_json_that_is_nested_too_deeply(name, declare, tmp_path):
    path = tmp_path / "model"
    shutil.copytree(declare(), path)
    (path / name).write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(ValueError, match=rf"{name} is nested too deeply"):
        BertEmbedder(path).fit(["a"])


@pytest.mark.parametrize(("stated", "limit"), [(0, 64), (-1, 64), ("64", 64), (None, 64), (8, 8)])
def test_limits_that_a_tokenizer_states(stated, limit, tiny_bert, set_json, tmp_path):
    path = tmp_path / "model"
    shutil.copytree(tiny_bert, path)
    set_json(path / "tokenizer_config.json", model_max_length=stated)
    expected = BertEmbedder(tiny_bert, max_length=limit).fit_transform([LONG])
    np.testing.assert_array_equal(BertEmbedder(path).fit_transform([LONG]), expected)


@pytest.mark.parametrize("layers", [{1, 2}, frozenset({1}), {1: 2}])
def test_layers_without_an_order(layers, tiny_bert):
    with pytest.raises((TypeError, ValueError), match="layers"):
        BertEmbedder(tiny_bert, layers=layers).fit(["a"])


def test_frequencies_are_of_the_last_fit(tiny_bert):
    embedder = BertEmbedder(tiny_bert, sif=1e-3).fit(SENTENCES)
    assert embedder.token_frequencies_.sum() == pytest.approx(1)
    assert not hasattr(embedder.set_params(sif=None).fit(SENTENCES), "token_frequencies_")
