"""Exported models against the pipelines that they come from."""

import copy
import json
import pickle
import threading

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skflow.calibrators import (
    NATSVCalibrator,
    NormalizingFlowCalibrator,
    StandardNormalizationCalibrator,
    WhiteningCalibrator,
)
from skflow.calibrators._base import BaseCalibrator
from skflow.embedders import BertEmbedder
from skflow.export import to_sentence_transformer

from .._encoders import BERT_TOKENS, wordpiece
from .conftest import LOADING, assert_close

FLOW = {"max_epochs": 3, "batch_size": 16, "random_state": 0}
CHAINS = {
    "none": [],
    "standard": [StandardNormalizationCalibrator()],
    "natsv": [NATSVCalibrator(n_components=2)],
    "whitening": [WhiteningCalibrator(n_components=20)],
    "zca": [WhiteningCalibrator(n_components=12, method="zca", strength=0.5)],
    "flow": [NormalizingFlowCalibrator(**FLOW)],
    "affine": [NormalizingFlowCalibrator(coupling="affine", permutation="lu", **FLOW)],
    "zuko": [NormalizingFlowCalibrator("nsf", **FLOW)],
    "standard, natsv": [StandardNormalizationCalibrator(), NATSVCalibrator(n_components=3)],
    "nested": [make_pipeline(StandardNormalizationCalibrator(), "passthrough", NATSVCalibrator()), None],
    "natsv, whitening, flow": [NATSVCalibrator(), WhiteningCalibrator(16), NormalizingFlowCalibrator(**FLOW)],
}


def reload(model, directory):
    model.save(str(directory))
    return SentenceTransformer(str(directory), device="cpu", **LOADING)


@pytest.mark.parametrize("chain", CHAINS)
def test_every_calibrator(chain, tiny_bert, texts, transform, tmp_path):
    if chain == "zuko":
        pytest.importorskip("zuko")
    pipeline = make_pipeline(BertEmbedder(tiny_bert, layers="last2"), *CHAINS[chain])
    expected = transform(pipeline, texts)
    model = to_sentence_transformer(pipeline)
    vectors = model.encode(texts)
    assert_close(vectors, expected)
    loaded = reload(model, tmp_path / "saved")
    assert_close(loaded.encode(texts), expected)
    for each in (model, loaded):
        n_features = getattr(each, "get_embedding_dimension", each.get_sentence_embedding_dimension)()
        assert n_features == expected.shape[1]
        assert not any(p.requires_grad for module in list(each)[2:] for p in module.parameters())


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"layers": 0},
        {"layers": [2, 2, -1], "pooling": "cls"},
        {"layers": "first_last", "pooling": "max"},
        {"max_length": 5},
        {"exclude_special_tokens": True},
        {"exclude_special_tokens": True, "pooling": "max"},
        {"sif": 1e-3},
        {"sif": 1e-2, "exclude_special_tokens": True, "normalize": True},
        {"normalize": True},
    ],
    ids=str,
)
def test_every_setting_of_a_plain_encoder(settings, tiny_bert, texts, transform, tmp_path):
    pipeline = make_pipeline(BertEmbedder(tiny_bert, **settings), StandardNormalizationCalibrator())
    expected = transform(pipeline, texts)
    model = to_sentence_transformer(pipeline)
    assert_close(model.encode(texts, batch_size=7), expected)
    assert_close(reload(model, tmp_path / "saved").encode(texts), expected)


# A byte-level tokenizer keeps white space and gives no token for "", GPT-2 and LLaMA have no padding token.
@pytest.mark.parametrize("architecture", ["roberta", "mpnet", "distilbert", "albert", "gpt2", "llama", "t5"])
def test_every_architecture(architecture, tiny, texts, transform, tmp_path):
    pipeline = make_pipeline(BertEmbedder(tiny(architecture), layers=[1, -1]), NATSVCalibrator())
    odd = [*texts, "[SEP] the [PAD]", "\ud800 lone"]
    expected = transform(pipeline, odd)
    model = to_sentence_transformer(pipeline)
    assert_close(model.encode(odd), expected)
    assert_close(reload(model, tmp_path / "saved").encode(odd), expected)


@pytest.mark.parametrize(
    ("modules", "settings"),
    [
        (["mean"], {}),
        (["mean", "normalize"], {}),
        (["mean", "dense", "normalize"], {}),
        (["weightedmean"], {"max_length": 6}),
        (["mean", "dense"], {"normalize": True}),
        # With layers, the modules behind the pooling do not run.
        (["mean", "dense", "normalize"], {"layers": "first_last"}),
        (["weightedmean"], {"layers": 3}),
        (["mean", "normalize"], {"sif": 1e-3, "max_length": 12}),
    ],
    ids=str,
)
def test_checkpoints(modules, settings, checkpoint, texts, transform, tmp_path):
    pipeline = make_pipeline(
        BertEmbedder(checkpoint(*modules), **settings), NormalizingFlowCalibrator(**FLOW)
    )
    expected = transform(pipeline, texts)
    model = to_sentence_transformer(pipeline)
    assert_close(model.encode(texts), expected)
    assert_close(reload(model, tmp_path / "saved").encode(texts), expected)


def test_checkpoint_with_prompt_and_similarity(checkpoint, texts, transform, tmp_path):
    options = {"prompts": {"task": "sing: ", "other": "ball: "}, "default_prompt_name": "task"}
    path = checkpoint("mean", similarity_fn_name="dot", **options)
    pipeline = make_pipeline(BertEmbedder(path), StandardNormalizationCalibrator())
    expected = transform(pipeline, texts)
    loaded = reload(to_sentence_transformer(pipeline), tmp_path / "saved")
    assert_close(loaded.encode(texts), expected)
    assert np.abs(loaded.encode(texts, prompt_name="other") - expected).max() > 0.01
    assert loaded.similarity_fn_name == "cosine"
    assert to_sentence_transformer(BertEmbedder(path)).similarity_fn_name == "dot"


def test_checkpoint_that_truncates(checkpoint, set_json, texts, transform, tmp_path):
    path = checkpoint("mean")
    set_json(tmp_path / "checkpoint" / "config_sentence_transformers.json", truncate_dim=20)
    pipeline = make_pipeline(BertEmbedder(path), StandardNormalizationCalibrator())
    expected = transform(pipeline, texts)
    # sentence-transformers 5.0 does not read the entry.
    assert expected.shape[1] == (SentenceTransformer(path, device="cpu").truncate_dim or 32)
    model = to_sentence_transformer(pipeline)
    assert_close(model.encode(texts), expected)
    assert_close(reload(model, tmp_path / "saved").encode(texts), expected)


def test_checkpoint_without_a_transformer(tiny_bert, texts, transform, tmp_path):
    from transformers import AutoTokenizer

    try:
        from sentence_transformers.sentence_transformer import modules as library
    except ImportError:  # before version 5.4
        from sentence_transformers import models as library

    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    table = np.random.RandomState(0).standard_normal((len(tokenizer), 12)).astype(np.float32)
    static = library.StaticEmbedding(tokenizer, embedding_weights=table)
    SentenceTransformer(modules=[static, library.Normalize()]).save(str(tmp_path / "static"))
    pipeline = make_pipeline(BertEmbedder(tmp_path / "static"), WhiteningCalibrator(n_components=8))
    expected = transform(pipeline, texts)
    model = to_sentence_transformer(pipeline)
    assert_close(model.encode(texts), expected)
    assert_close(reload(model, tmp_path / "saved").encode(texts), expected)


def test_the_real_encoder(minilm, tmp_path):
    from skflow.datasets import load_mini_sts

    pairs = load_mini_sts(subset="hard").pairs[::10]
    sentences = pairs.T.ravel().tolist()
    pipeline = make_pipeline(BertEmbedder(minilm), WhiteningCalibrator(n_components=32))
    expected = pipeline.fit(sentences).transform(sentences)
    model = to_sentence_transformer(pipeline)
    names = [type(module).__name__ for module in model]
    assert names == ["Transformer", "Pooling", "Normalize", "CalibrationModule"]
    vectors = reload(model, tmp_path / "saved").encode(sentences)
    assert_close(vectors, expected)
    unit = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    left, right = np.split(unit, 2)
    similarity = model.similarity_pairwise(*np.split(vectors, 2))
    np.testing.assert_allclose(similarity, (left * right).sum(axis=1), rtol=0, atol=1e-5)


@pytest.fixture
def fitted(tiny_bert, texts, transform):
    """A pipeline with weights of tokens and two kinds of calibrator, and its vectors."""
    calibrators = StandardNormalizationCalibrator(), NormalizingFlowCalibrator(**FLOW)
    pipeline = make_pipeline(BertEmbedder(tiny_bert, sif=1e-3), *calibrators)
    return pipeline, transform(pipeline, texts)


def test_files(fitted, tmp_path):
    pipeline, _ = fitted
    to_sentence_transformer(pipeline).save(str(tmp_path))
    modules = json.loads((tmp_path / "modules.json").read_text())
    assert [module["type"] for module in modules] == [
        "skflow.modules.LayeredEncoder",
        "skflow.modules.TokenPooling",
        "skflow.export.CalibrationModule",
        "skflow.export.CalibrationModule",
    ]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} <= {".json", ".safetensors", ".md", ".txt", ".jinja"}
    assert sum(path.suffix == ".safetensors" for path in files) == 4
    # A pickle would begin so, whatever its name.
    assert not any(path.read_bytes()[:2] in (b"\x80\x02", b"\x80\x04", b"\x80\x05", b"PK") for path in files)
    # Each calibrator's directory is what its own save_pretrained writes.
    calibrator = BaseCalibrator.from_pretrained(tmp_path / "2_CalibrationModule")
    np.testing.assert_array_equal(calibrator.mean_, pipeline[1].mean_)


def test_saving_without_safe_serialization_pickles_no_weights_of_ours(fitted, tmp_path):
    to_sentence_transformer(fitted[0]).save(str(tmp_path), safe_serialization=False)
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".bin", ".pt", ".pkl")]


def test_export_is_independent_of_the_pipeline(fitted, texts):
    pipeline, expected = fitted
    model = to_sentence_transformer(pipeline)
    model.half()
    model.max_seq_length = 3
    model.encode(texts)
    np.testing.assert_array_equal(pipeline.transform(texts), expected)
    before = model.encode(texts)
    pipeline.fit(texts[:40])
    np.testing.assert_array_equal(model.encode(texts), before)
    assert_close(to_sentence_transformer(pipeline).encode(texts), pipeline.transform(texts))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype, fitted, texts, tmp_path):
    pipeline, expected = fitted
    model = to_sentence_transformer(pipeline).to(dtype)
    assert model[0].auto_model.dtype == dtype
    assert {t.dtype for module in list(model)[1:] for t in module.state_dict().values()} == {torch.float32}
    vectors = model.encode(texts)
    assert vectors.dtype == np.float32
    # float16 has 11 bits, bfloat16 has 8: the encoder's error in a few layers, in standard deviations.
    error = np.sqrt(np.mean((vectors - expected) ** 2) / np.mean(expected**2))
    assert 1e-6 < error < (0.02 if dtype == torch.float16 else 0.15)
    loaded = reload(model, tmp_path / "saved")
    assert loaded[0].auto_model.dtype == dtype
    np.testing.assert_array_equal(loaded.encode(texts), vectors)
    # Nothing was lost but in the encoder.
    np.testing.assert_array_equal(loaded[3].calibrator.transform(expected), pipeline[2].transform(expected))


def test_half_precision_of_a_checkpoint(checkpoint, texts, transform):
    embedder = BertEmbedder(checkpoint("mean", "dense", "normalize"))
    pipeline = make_pipeline(embedder, StandardNormalizationCalibrator())
    expected = transform(pipeline, texts)
    vectors = to_sentence_transformer(pipeline).half().encode(texts)
    assert vectors.dtype == np.float32
    error = np.sqrt(np.mean((vectors - expected) ** 2) / np.mean(expected**2))
    assert 1e-6 < error < 0.02


@pytest.mark.parametrize("modules", [[], ["mean", "normalize"]])
def test_embedder_in_half_precision(modules, tiny_bert, checkpoint, texts, transform, tmp_path):
    path = checkpoint(*modules) if modules else tiny_bert
    pipeline = make_pipeline(BertEmbedder(path, dtype="bfloat16"), StandardNormalizationCalibrator())
    expected = transform(pipeline, texts)
    model = to_sentence_transformer(pipeline)
    assert next(model[0].parameters()).dtype == torch.bfloat16
    vectors = model.encode(texts)
    error = np.sqrt(np.mean((vectors - expected) ** 2) / np.mean(expected**2))
    assert error < 0.02


def test_moves_between_devices(fitted, texts):
    pipeline, expected = fitted
    model = to_sentence_transformer(pipeline)
    assert {t.device.type for t in model.to("meta").state_dict().values()} == {"meta"}
    if torch.cuda.is_available():
        assert_close(to_sentence_transformer(pipeline, device="cuda").encode(texts), expected)


def test_truncation_similarity_and_other_outputs(fitted, texts):
    pipeline, expected = fitted
    model = to_sentence_transformer(pipeline)
    assert_close(model.encode(texts, truncate_dim=10), expected[:, :10])
    unit = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    assert_close(model.encode(texts, normalize_embeddings=True), unit)
    np.testing.assert_allclose(model.similarity(expected, expected), unit @ unit.T, atol=1e-5)
    assert_close(model.encode(texts[0]), expected[0])
    assert_close(model.encode(texts[:3], convert_to_tensor=True).numpy(), expected[:3])
    tokens = model.encode(texts[:3], output_value="token_embeddings")
    assert [len(t) for t in tokens] == [2 + len(text.split()) for text in texts[:3]]
    everything = model.encode(texts[:3], output_value=None)
    assert_close(everything[1]["sentence_embedding"].numpy(), expected[1])
    prompted = model.encode(texts[:3], prompt="the cat ")
    assert_close(prompted, pipeline.transform(["the cat " + text for text in texts[:3]]))


def test_encode_in_another_process(fitted, texts):
    pipeline, expected = fitted
    model = to_sentence_transformer(pipeline)
    assert_close(model.encode(texts, device=["cpu"], chunk_size=50), expected)


# torch 2.4 pickles the content of tensors in its own format, and warns about that when it reads it.
@pytest.mark.filterwarnings("ignore:You are using `torch.load`:FutureWarning")
def test_copies_and_pickles(fitted, texts):
    pipeline, expected = fitted
    model = to_sentence_transformer(pipeline)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert_close(twin.encode(texts), expected)


def test_encode_from_several_threads(tiny_bert, texts, transform):
    # Different numbers of layers run, and a tokenizer that is used twice at once raises.
    pipeline = make_pipeline(BertEmbedder(tiny_bert, layers=2), StandardNormalizationCalibrator())
    expected = transform(pipeline, texts)
    model = to_sentence_transformer(pipeline)
    results = {}

    def encode(number):
        results[number] = model.encode(texts, batch_size=4, show_progress_bar=False)

    threads = [threading.Thread(target=encode, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        assert_close(results[number], expected)


def test_blocks_above_the_highest_layer_do_not_run(tiny_bert, texts, transform):
    pipeline = make_pipeline(BertEmbedder(tiny_bert, layers=[1, 2]), StandardNormalizationCalibrator())
    transform(pipeline, texts)
    model = to_sentence_transformer(pipeline)
    calls = []
    for number, block in enumerate(model[0].auto_model.encoder.layer):
        block.register_forward_hook(lambda *args, number=number: calls.append(number))
    model.encode(texts[:1])
    assert calls == [0, 1]


def test_gradients_reach_the_encoder(fitted, texts):
    pipeline, _ = fitted
    model = to_sentence_transformer(pipeline)
    features = model.tokenize(texts[:4]) if not hasattr(model, "preprocess") else model.preprocess(texts[:4])
    model(features)["sentence_embedding"].sum().backward()
    assert model[0].auto_model.embeddings.word_embeddings.weight.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("tail", "error", "message"),
    [
        ([StandardScaler()], TypeError, "step 'standardscaler' .StandardScaler. cannot be exported"),
        (
            [make_pipeline(WhiteningCalibrator(), StandardScaler())],
            TypeError,
            "step 'pipeline__standardscaler'",
        ),
        (
            [NormalizingFlowCalibrator(lambda n: None)],
            ValueError,
            "'normalizingflowcalibrator'.*flow=<function",
        ),
        (
            [WhiteningCalibrator(), NATSVCalibrator()],
            ValueError,
            "'natsvcalibrator'.*on 5 features.*returns 32",
        ),
        ([WhiteningCalibrator()], ValueError, "'whiteningcalibrator'.*on 5 features.*returns 32"),
    ],
)
def test_what_cannot_be_exported(tail, error, message, tiny_bert):
    pipeline = make_pipeline(BertEmbedder(tiny_bert), *tail)
    for number, step in enumerate(tail):
        step.__dict__["parameters_"] = {}  # looks fitted
        if not isinstance(step, NormalizingFlowCalibrator):
            width = 32 if number < len(tail) - 1 else 5
            step.fit(np.random.RandomState(0).standard_normal((50, width)))
    with pytest.raises(error, match=message):
        to_sentence_transformer(pipeline)


def test_subclasses_are_foreign(tiny_bert):
    class Squared(StandardNormalizationCalibrator):
        def transform(self, X):
            return super().transform(X) ** 2

    pipeline = make_pipeline(BertEmbedder(tiny_bert), Squared().fit(np.eye(32)))
    with pytest.raises(TypeError, match=r"step 'squared' .Squared. cannot be exported"):
        to_sentence_transformer(pipeline)


def test_unfitted_steps(tiny_bert):
    with pytest.raises(NotFittedError, match=r"step 'natsvcalibrator' .NATSVCalibrator. is not fitted"):
        to_sentence_transformer(make_pipeline(BertEmbedder(tiny_bert), NATSVCalibrator()))
    with pytest.raises(NotFittedError, match=r"step 'bertembedder' .BertEmbedder. is not fitted"):
        to_sentence_transformer(make_pipeline(BertEmbedder(tiny_bert, sif=1e-3)))


@pytest.mark.parametrize("wrong", [make_pipeline(NATSVCalibrator()), make_pipeline(None), 3])
def test_no_embedder(wrong):
    with pytest.raises(TypeError, match="must start with a BertEmbedder, found"):
        to_sentence_transformer(wrong)


def test_embedder_in_the_middle(tiny_bert):
    pipeline = make_pipeline(BertEmbedder(tiny_bert), BertEmbedder(tiny_bert))
    with pytest.raises(TypeError, match=r"step 'bertembedder-2' .BertEmbedder. takes text"):
        to_sentence_transformer(pipeline)


def test_loading_without_trust(fitted, tmp_path):
    import sentence_transformers

    if int(sentence_transformers.__version__.partition(".")[0]) < 6:
        pytest.skip("before version 6, directories are trusted")
    to_sentence_transformer(fitted[0]).save(str(tmp_path))
    with pytest.raises(ValueError, match="trust_remote_code=True"):
        SentenceTransformer(str(tmp_path))


def test_other_backends(fitted, tmp_path):
    model = to_sentence_transformer(fitted[0])
    model.save(str(tmp_path))
    with pytest.raises(ValueError, match="backend='onnx' gives no hidden states"):
        type(model[0]).load(str(tmp_path), backend="onnx")


def test_damaged_calibrator(fitted, tmp_path):
    to_sentence_transformer(fitted[0]).save(str(tmp_path))
    (file,) = (tmp_path / "3_CalibrationModule").glob("*.safetensors")
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(ValueError, match="checksum"):
        SentenceTransformer(str(tmp_path), **LOADING)


# FNet, YOSO, ConvBERT and MobileBERT let real tokens see padding, whatever the attention mask says.
@pytest.mark.parametrize("architecture", ["fnet", "convbert", "mobilebert"])
@pytest.mark.parametrize("is_checkpoint", [False, True])
def test_models_whose_tokens_attend_to_padding(architecture, is_checkpoint, tiny, texts, transform, tmp_path):
    path = tiny(architecture)
    if is_checkpoint:
        path = save_checkpoint(path, tmp_path / "checkpoint", "mean")
    assert_alone_and_together(BertEmbedder(path), texts, transform, tmp_path)


def test_yoso(texts, transform, tmp_path):
    import transformers

    tokenizer = wordpiece(BERT_TOKENS, types=False)
    config = transformers.YosoConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        transformers.AutoModel.from_config(config).save_pretrained(tmp_path / "yoso")
    tokenizer.save_pretrained(tmp_path / "yoso")
    assert_alone_and_together(BertEmbedder(tmp_path / "yoso"), texts, transform, tmp_path)


@pytest.mark.parametrize("architecture", ["bert", "convbert"])
@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_checkpoints_with_a_cnn(architecture, pooling, tiny, texts, transform, tmp_path):
    path = save_checkpoint(tiny(architecture), tmp_path / "checkpoint", pooling, behind=("cnn", "dense"))
    assert_alone_and_together(BertEmbedder(path), texts, transform, tmp_path)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "lasttoken", "weightedmean", ("mean", "max")])
def test_empty_text_of_a_decoder(pooling, tiny, texts, transform, tmp_path):
    path = save_checkpoint(tiny("gpt2"), tmp_path / "checkpoint", pooling)
    expected, vectors = assert_alone_and_together(BertEmbedder(path), texts, transform, tmp_path)
    empty = texts.index("")
    assert not expected[empty].any()
    assert not vectors[empty].any()


def test_empty_text_of_a_decoder_before_a_dense_module(tiny, texts, transform, tmp_path):
    path = save_checkpoint(tiny("gpt2"), tmp_path / "checkpoint", "max", behind=("dense",))
    assert_alone_and_together(BertEmbedder(path), texts, transform, tmp_path)


def test_half_precision_checkpoint_with_a_dense_module(tiny_bert, texts, transform, tmp_path):
    path = save_checkpoint(tiny_bert, tmp_path / "checkpoint", "mean", behind=("dense",))
    embedder = BertEmbedder(path, dtype="bfloat16")
    expected = transform(embedder, texts)
    model = to_sentence_transformer(embedder)
    for each in (model, reload(model, tmp_path / "saved")):  # 8 bits of mantissa
        np.testing.assert_allclose(each.encode(texts), expected, rtol=0, atol=0.05 * np.abs(expected).max())


def test_model_card(tiny_bert, texts, tmp_path):
    pipeline = make_pipeline(
        BertEmbedder(tiny_bert, layers="last2", pooling="max", max_length=20),
        StandardNormalizationCalibrator(),
        WhiteningCalibrator(n_components=12),
    ).fit(texts[:64])
    reload(to_sentence_transformer(pipeline), tmp_path / "saved").save(str(tmp_path / "again"))
    for name in ("saved", "again"):
        card = (tmp_path / name / "README.md").read_text(encoding="utf-8")
        for row in (
            "| layers | 3, 4 |",
            "| pooling | max |",
            "| tokens | 20 |",
            "| calibration | StandardNormalizationCalibrator, then WhiteningCalibrator |",
            "| dimensions | 12 |",
        ):
            assert row in card
        assert "trust_remote_code=True" in card
        assert "pip install scikit-bertflow" in card


def save_checkpoint(path, directory, pooling, behind=()):
    """Save a sentence-transformers checkpoint around a tiny encoder."""
    try:
        from sentence_transformers.base.modules import Dense, Transformer
        from sentence_transformers.sentence_transformer.modules import CNN, Pooling
    except ImportError:  # before version 5.4
        from sentence_transformers.models import CNN, Dense, Pooling, Transformer

    def make_pooling(mode):
        try:
            return Pooling(32, mode)
        except AttributeError:  # version 5.0 takes several one by one
            return Pooling(32, **{f"pooling_mode_{name}_tokens": True for name in mode})

    first = Transformer(path, max_seq_length=24)
    if first.tokenizer.pad_token is None:
        first.tokenizer.pad_token = first.tokenizer.eos_token
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        modules = [first, *([CNN(32, 16, [1, 3])] if "cnn" in behind else []), make_pooling(pooling)]
        if "dense" in behind:
            modules.append(Dense(32, 8))
    SentenceTransformer(modules=modules, device="cpu").save(str(directory))
    return str(directory)


def assert_alone_and_together(embedder, texts, transform, tmp_path):
    """Check that transform, the export and the saved export agree, for texts in a batch and alone."""
    expected = transform(embedder, texts)
    model = to_sentence_transformer(embedder)
    loaded = reload(model, tmp_path / "saved")
    few = [*range(0, len(texts), 9), texts.index("")]
    for each in (model, loaded):
        vectors = each.encode(texts)
        assert_close(vectors, expected)
        assert_close(np.concatenate([each.encode([texts[i]]) for i in few]), expected[few])
    return expected, vectors
