"""Vectors against a straightforward computation with transformers, and against SentenceTransformer.encode."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from skflow.embedders import BertEmbedder

from .._encoders import ARCHITECTURES, BERT_LIKE, DECODERS, LEAKY, SENTENCES

pytestmark = pytest.mark.filterwarnings("ignore:.*texts were truncated:UserWarning")

LONG = " ".join(["the big dog and a small cat ran in the park"] * 30)


def load(path):
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(path)
    model = AutoModel.from_pretrained(path).eval()
    return tokenizer, model.get_encoder() if model.config.is_encoder_decoder else model


def hidden_states(path, text, max_length=64):
    """Hidden states of one text alone (n_layers + 1, n_tokens, n_features), its special tokens, its ids."""
    import torch

    tokenizer, model = load(path)
    encoded = tokenizer(
        text, truncation=True, max_length=max_length, return_special_tokens_mask=True, return_tensors="pt"
    )
    special = encoded.pop("special_tokens_mask")[0].numpy().astype(bool)
    with torch.no_grad():
        states = model(**encoded, output_hidden_states=True).hidden_states
    return torch.stack(states)[:, 0].numpy(), special, encoded["input_ids"][0].numpy()


def pooled(tokens, pooling):
    return {"mean": tokens.mean(axis=0), "cls": tokens[0], "max": tokens.max(axis=0)}[pooling]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_layers_and_pooling(tiny, architecture):
    path = tiny(architecture)
    texts = [text for text in SENTENCES if text.strip()]
    states = [hidden_states(path, text)[0] for text in texts]
    choices = [(0, (0,)), (1, (1,)), (-5, (0,)), ([3, 1], (3, 1)), ("last", (4,)), ("last2", (3, 4))]
    for layers, resolved in [*choices, ("first_last", (1, 4)), (np.int64(2), (2,)), ((4, 4, 1), (4, 4, 1))]:
        for pooling in ("mean", "cls", "max"):
            vectors = BertEmbedder(path, layers=layers, pooling=pooling).fit_transform(texts)
            expected = [pooled(s[list(resolved)].mean(axis=0), pooling) for s in states]
            np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)
            assert vectors.dtype == np.float32
    plain = BertEmbedder(path).fit_transform(texts)
    np.testing.assert_array_equal(
        plain, BertEmbedder(path, layers="first_last", pooling="mean").transform(texts)
    )


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_blocks_above_the_highest_layer_do_not_run(tiny, architecture):
    from skflow.embedders._loading import loaded_models

    path = tiny(architecture)
    embedder = BertEmbedder(path, layers=[0, 2], pooling="mean").fit(["a"])
    (encoder,) = loaded_models._models.values()
    kind = type(encoder._layered.hidden_states._blocks[0])
    calls = []
    for module in encoder.model.modules():
        if isinstance(module, kind):
            module.register_forward_hook(lambda *_: calls.append(1))
    embedder.transform(["the cat sat", "a dog"])
    assert len(calls) == 2  # blocks 1 and 2, one batch
    calls.clear()
    BertEmbedder(path, layers=-1, pooling="mean").transform(["the cat sat"])
    assert len(calls) % 4 == 0  # the model still runs through, also after it was left halfway


def test_where_the_blocks_are_unknown_the_whole_model_runs(tiny_bert):
    from skflow.embedders._loading import loaded_models

    embedder = BertEmbedder(tiny_bert, layers=[1, -1], pooling="mean")
    expected = embedder.fit_transform(SENTENCES)
    (encoder,) = loaded_models._models.values()
    encoder._layered.hidden_states._blocks = None
    np.testing.assert_allclose(embedder.transform(SENTENCES), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_alone_and_in_any_batch(tiny, architecture, pooling):
    embedder = BertEmbedder(tiny(architecture), layers=[2, -1], pooling=pooling)
    together = embedder.fit_transform([*SENTENCES, LONG])
    alone = [embedder.transform([text])[0] for text in [*SENTENCES, LONG]]
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-5)
    small = embedder.set_params(batch_size=1).transform([*SENTENCES, LONG])
    np.testing.assert_allclose(small, together, rtol=0, atol=1e-5)
    backwards = embedder.transform([LONG, *SENTENCES[::-1]])[::-1]
    np.testing.assert_allclose(backwards, together, rtol=0, atol=1e-5)


@pytest.mark.parametrize("architecture", LEAKY)
def test_models_that_cannot_do_with_padding_get_none(tiny, architecture):
    path = tiny(architecture)
    texts = [text for text in SENTENCES if text.strip()]
    for layers in (1, -1):
        expected = [hidden_states(path, text)[0][layers].mean(axis=0) for text in texts]
        vectors = BertEmbedder(path, layers=layers, pooling="mean").fit_transform(texts)
        np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)


def test_declared_modules_that_cannot_do_with_padding_get_none(declare):
    from skflow.embedders._loading import loaded_models

    path = declare("bert", behind=["cnn"])
    texts = [text for text in SENTENCES if text.strip()]
    expected = np.concatenate([encode(path, [text]) for text in texts])
    assert not np.allclose(encode(path, texts), expected, rtol=0, atol=1e-3)  # its own batches leak
    np.testing.assert_allclose(BertEmbedder(path).fit_transform(texts), expected, rtol=0, atol=1e-5)
    (encoder,) = loaded_models._models.values()
    assert encoder._is_fast
    encoder._is_fast = False
    np.testing.assert_allclose(BertEmbedder(path).transform(texts), expected, rtol=0, atol=1e-5)


def test_tokens_that_the_model_lacks(tiny, tmp_path):
    import shutil

    from transformers import AutoTokenizer

    path = tmp_path / "model"
    shutil.copytree(tiny("gpt2"), path)
    tokenizer = AutoTokenizer.from_pretrained(path)
    tokenizer.add_special_tokens({"pad_token": "<pad>"})  # with no row in the model, as people often do
    tokenizer.add_tokens(["wombat"])
    tokenizer.save_pretrained(path)
    texts = ["the cat sat", "a dog"]
    vectors = BertEmbedder(path, layers=-1).fit_transform(texts)
    np.testing.assert_allclose(
        vectors, BertEmbedder(tiny("gpt2"), layers=-1).fit_transform(texts), rtol=0, atol=1e-5
    )
    with pytest.raises(ValueError, match=r"makes token \d+ \('wombat'\).*the model has only"):
        BertEmbedder(path).transform(["the wombat sat"])


def test_tokenizer_that_pads_on_the_left(tiny, tmp_path):
    import shutil

    from transformers import AutoTokenizer

    path = tmp_path / "left"
    shutil.copytree(tiny("gpt2"), path)
    tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left")
    tokenizer.save_pretrained(path)
    texts = [text for text in SENTENCES if text]
    expected = [hidden_states(path, text)[0][-1].mean(axis=0) for text in texts]
    vectors = BertEmbedder(path, layers=-1, pooling="mean").fit_transform(texts)
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)


@settings(max_examples=50)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=10), st.integers(8, 40))
def test_no_other_batches_cost_less(lengths, budget):
    from skflow.embedders._batching import COST_OF_A_PASS, split

    lengths = np.array(lengths)
    rows = np.argsort(-lengths, kind="stable")

    def cost(batches):
        return sum(len(b) * lengths[b[0]] + budget * COST_OF_A_PASS for b in batches)

    def fits(batch):
        return len(batch) == 1 or len(batch) * lengths[batch[0]] <= budget

    batches = list(split(rows, lengths, budget))
    np.testing.assert_array_equal(np.concatenate(batches), rows)
    assert all(map(fits, batches))
    places = range(1, len(rows))
    others = (np.split(rows, cuts) for n in range(len(rows)) for cuts in itertools.combinations(places, n))
    assert cost(batches) <= min(cost(o) for o in others if all(map(fits, o))) + 1e-9


def test_same_input_same_bits(tiny_bert):
    from skflow.embedders._loading import loaded_models

    texts = SENTENCES * 3
    first = BertEmbedder(tiny_bert).fit_transform(texts)
    loaded_models.clear()
    np.testing.assert_array_equal(BertEmbedder(tiny_bert).fit_transform(texts), first)


def test_loading_leaves_the_random_stream_alone(tiny_bert):
    import torch

    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    BertEmbedder(tiny_bert).fit(["a"])
    assert torch.rand(1) == expected


@pytest.mark.parametrize("pooling", ["mean", "max"])
@pytest.mark.parametrize("architecture", BERT_LIKE)
def test_exclude_special_tokens(tiny, architecture, pooling):
    path = tiny(architecture)
    texts = ["the cat sat on the mat", "zebra", "a dog"]
    expected = []
    for text in texts:
        states, special, _ = hidden_states(path, text)
        assert special.sum() == 2
        expected.append(pooled(states[-1][~special], pooling))
    embedder = BertEmbedder(path, layers=-1, pooling=pooling, exclude_special_tokens=True)
    np.testing.assert_allclose(embedder.fit_transform(texts), expected, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(embedder.transform(["", "a"])[0], np.zeros(32))


@pytest.mark.parametrize("exclude", [False, True])
def test_sif_weights(tiny_bert, exclude):
    corpus = ["the cat sat", "the dog ran", "the the the", "the cat sat"]
    embedder = BertEmbedder(tiny_bert, layers=2, pooling="mean", sif=1e-3, exclude_special_tokens=exclude)
    with pytest.raises(NotFittedError):
        embedder.transform(corpus)
    embedder.fit(corpus)
    taken = []
    for text in corpus:  # a text that comes twice counts twice
        _, special, ids = hidden_states(tiny_bert, text)
        taken += list(ids[~special] if exclude else ids)
    frequency = np.bincount(taken, minlength=len(embedder.token_frequencies_)) / len(taken)
    np.testing.assert_allclose(embedder.token_frequencies_, frequency, rtol=1e-12)
    for text in ("the cat sang", "zebra"):  # unseen tokens weigh 1
        states, special, ids = hidden_states(tiny_bert, text)
        weights = 1e-3 / (1e-3 + frequency[ids])
        tokens = weights[:, None] * states[2]
        expected = (tokens[~special] if exclude else tokens).mean(axis=0)
        np.testing.assert_allclose(embedder.transform([text, "a"])[0], expected, rtol=0, atol=1e-5)


def test_normalize(tiny_bert):
    raw = BertEmbedder(tiny_bert, exclude_special_tokens=True).fit_transform(SENTENCES)
    unit = BertEmbedder(tiny_bert, exclude_special_tokens=True, normalize=True).fit_transform(SENTENCES)
    empty = SENTENCES.index("")
    np.testing.assert_array_equal(unit[empty], 0)
    norms = np.linalg.norm(raw, axis=1, keepdims=True)
    rest = np.arange(len(SENTENCES)) != empty
    np.testing.assert_allclose(unit[rest], (raw / np.where(norms == 0, 1, norms))[rest], atol=1e-6)


def test_max_length_cuts_and_says_so_once(tiny_bert):
    texts = ["the cat sat on the mat", "a dog", LONG, LONG]
    embedder = BertEmbedder(tiny_bert, layers=-1, pooling="mean", max_length=6).fit(texts)
    with pytest.warns(
        UserWarning, match="3 of 4 texts were truncated: they have more tokens than max_length=6"
    ) as seen:
        vectors = embedder.transform(texts)
    assert len(seen) == 1
    expected = [hidden_states(tiny_bert, text, max_length=6)[0][-1].mean(axis=0) for text in texts]
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)
    with pytest.warns(
        UserWarning, match="1 of 1 texts were truncated: they have more tokens than the model's own limit"
    ):
        embedder.set_params(max_length=None).transform([LONG])


@pytest.mark.filterwarnings("error")
def test_text_at_the_limit_is_not_cut(tiny_bert):
    # [CLS] the cat [SEP]
    BertEmbedder(tiny_bert, max_length=4).fit_transform(["the cat"])


@pytest.mark.parametrize("architecture", ["bert", "roberta", "gpt2"])
def test_very_long_text_is_cut_like_any_other(tiny, architecture):
    # 10 MB, of which tokenizing a prefix must be enough; and one word without end.
    path = tiny(architecture)
    embedder = BertEmbedder(path, layers=-1, pooling="mean", max_length=16)
    start = "the cat sat on the mat and the dog ran in the park with a big red ball " * 2
    huge = start + "a bird sings " * 800_000
    np.testing.assert_array_equal(*embedder.fit_transform([huge, start + "a bird"]))
    assert np.isfinite(embedder.transform(["x" * 200_000, " " * 200_000, "\n" * 9])).all()


def test_model_limits(tiny):
    for architecture in ("bert", "roberta", "mpnet", "gpt2"):
        path = tiny(architecture)  # 64 positions; RoBERTa and MPNet hold two more rows, which they reserve
        embedder = BertEmbedder(path, layers=-1, pooling="mean")
        expected = hidden_states(path, LONG, max_length=64)[0][-1].mean(axis=0)
        np.testing.assert_allclose(embedder.fit_transform([LONG])[0], expected, rtol=0, atol=1e-5)
        with pytest.raises(ValueError, match=r"max_length=65 is more than this model can take.* at most 64"):
            embedder.set_params(max_length=65).fit(["a"])
    with pytest.raises(ValueError, match=r"max_length=2 leaves no room .* at least 3"):
        BertEmbedder(tiny("bert"), max_length=2).fit(["a"])
    # A model of relative positions can take any number.
    assert BertEmbedder(tiny("t5"), max_length=600).fit_transform([LONG]).shape == (1, 32)


@pytest.mark.parametrize("layers", [5, -6, (1, 9)])
def test_layers_out_of_range(tiny_bert, layers):
    with pytest.raises(ValueError, match=r"encoder of 4 blocks; expected 0 .* to 4"):
        BertEmbedder(tiny_bert, layers=layers).fit(["a"])


def test_half_precision(tiny_bert):
    full = BertEmbedder(tiny_bert).fit_transform(SENTENCES)
    half = BertEmbedder(tiny_bert, dtype="bfloat16").fit_transform(SENTENCES)
    assert half.dtype == np.float32
    assert not np.array_equal(half, full)
    np.testing.assert_allclose(half, full, rtol=0, atol=0.05 * np.abs(full).max())  # 8 bits of mantissa


def encode(path, texts, **options):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(path, device="cpu", **options).encode(texts)


@pytest.mark.parametrize(
    ("architecture", "declared"),
    [
        ("bert", {"pooling": "mean"}),
        ("bert", {"pooling": "cls", "behind": ["normalize"]}),
        ("bert", {"pooling": "max", "lower": True}),
        ("bert", {"pooling": "mean_sqrt_len_tokens"}),
        ("bert", {"pooling": "mean", "behind": ["dense", "normalize"]}),
        ("bert", {"prompts": {"q": "the cat: "}, "default_prompt_name": "q"}),
        ("bert", {"prompts": {"q": "the cat: "}, "default_prompt_name": "q", "include_prompt": False}),
        ("roberta", {"pooling": "mean"}),
        ("gpt2", {"pooling": "lasttoken"}),
        ("gpt2", {"pooling": "weightedmean"}),
    ],
)
def test_declared_checkpoint(declare, architecture, declared):
    from skflow.embedders._loading import loaded_models

    path = declare(architecture, **declared)
    texts = [text for text in [*SENTENCES, LONG, " The CAT\n"] if text or architecture != "gpt2"]
    vectors = BertEmbedder(path).fit_transform(texts)
    np.testing.assert_allclose(vectors, encode(path, texts), rtol=0, atol=1e-5)
    (encoder,) = loaded_models._models.values()
    assert encoder._is_fast
    # Its own encode, which runs where the fast way would differ, gives the same.
    encoder._is_fast = False
    np.testing.assert_allclose(BertEmbedder(path).transform(texts), vectors, rtol=0, atol=1e-5)


@pytest.mark.parametrize("fast", [True, False])
def test_declared_checkpoint_in_half_precision(declare, fast):
    # The modules behind the transformer stay in float32 and take its vectors as such.
    from skflow.embedders._loading import loaded_models

    path = declare("bert", "mean", behind=["dense", "normalize"])
    embedder = BertEmbedder(path, dtype="bfloat16").fit(SENTENCES)
    (encoder,) = loaded_models._models.values()
    encoder._is_fast = fast
    # 8 bits of mantissa
    np.testing.assert_allclose(embedder.transform(SENTENCES), encode(path, SENTENCES), rtol=0, atol=0.05)


def test_declared_limit(declare):
    path = declare()  # declares 24 tokens of the 64 that its transformer can take
    for max_length in (10, 50):
        vectors = BertEmbedder(path, max_length=max_length).fit_transform([LONG])
        expected = hidden_states(path, LONG, max_length=max_length)[0][-1].mean(axis=0)
        np.testing.assert_allclose(vectors[0], expected, rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match="at most 64"):
        BertEmbedder(path, max_length=65).fit(["a"])


def test_layers_or_pooling_of_a_declared_checkpoint(declare):
    path = declare("bert", "cls", behind=["dense", "normalize"], prompts={"q": "a "}, default_prompt_name="q")
    texts = [text for text in SENTENCES if text.strip()]
    states = [hidden_states(path, text, max_length=24)[0] for text in texts]
    # Neither the prompt nor what follows the pooling runs; "auto" is the declared pooling and the last layer.
    by_layers = BertEmbedder(path, layers=[1, 3]).fit_transform(texts)
    np.testing.assert_allclose(by_layers, [s[[1, 3]].mean(axis=0)[0] for s in states], rtol=0, atol=1e-5)
    by_pooling = BertEmbedder(path, pooling="max").fit_transform(texts)
    np.testing.assert_allclose(by_pooling, [s[-1].max(axis=0) for s in states], rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match=r"sif weights the mean of the tokens; pooling='cls'"):
        BertEmbedder(path, sif=1e-3).fit(texts)
    with pytest.raises(ValueError, match=r"exclude_special_tokens=True needs .*pooling='cls'"):
        BertEmbedder(path, exclude_special_tokens=True).fit(texts)


@pytest.mark.filterwarnings("default:.*texts were truncated:UserWarning")
def test_what_its_own_encode_cuts_is_reported_too(declare):
    from skflow.embedders._loading import loaded_models

    embedder = BertEmbedder(declare()).fit(["a"])
    (encoder,) = loaded_models._models.values()
    encoder._is_fast = False
    with pytest.warns(UserWarning, match="1 of 3 texts were truncated"):
        embedder.transform(["the cat", LONG, "a \ud800 dog"])


def test_other_declared_pooling_takes_other_layers(declare):
    path = declare("gpt2", "lasttoken")
    texts = [text for text in SENTENCES if text]
    vectors = BertEmbedder(path, layers=2).fit_transform(texts)
    expected = [hidden_states(path, text, max_length=24)[0][2][-1] for text in texts]
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)


def test_checkpoint_without_transformer(tmp_path):
    from sentence_transformers import SentenceTransformer

    try:
        from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    except ImportError:  # before 5.4
        from sentence_transformers.models import StaticEmbedding

    from .._encoders import BERT_TOKENS, wordpiece

    static = StaticEmbedding(wordpiece(BERT_TOKENS), embedding_dim=16)
    SentenceTransformer(modules=[static], device="cpu").save(str(tmp_path))
    vectors = BertEmbedder(tmp_path).fit_transform(SENTENCES)
    np.testing.assert_allclose(vectors, encode(str(tmp_path), SENTENCES), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(*BertEmbedder(tmp_path).transform(["a \ud800 cat", "a \ufffd cat"]))
    for parameters in ({"layers": 1}, {"pooling": "cls"}, {"max_length": 4}, {"sif": 1e-3}):
        with pytest.raises(ValueError, match=r"need a transformer.* starts with StaticEmbedding"):
            BertEmbedder(tmp_path, **parameters).fit(SENTENCES)


def test_real_encoder(minilm):
    texts = [*SENTENCES, LONG, "Zwei Hunde", "emoji \U0001f600", "tab\tand\x00control\x07"]
    vectors = BertEmbedder(minilm).fit_transform(texts)
    np.testing.assert_allclose(vectors, encode(minilm, texts), rtol=0, atol=1e-5)
    states = [hidden_states(minilm, text, max_length=256)[0] for text in texts]
    layer = BertEmbedder(minilm, layers="first_last", pooling="mean").fit_transform(texts)
    np.testing.assert_allclose(layer, [s[[1, -1]].mean(axis=(0, 1)) for s in states], rtol=0, atol=1e-5)


def test_decoders_have_no_padding_token(tiny):
    for name in DECODERS:
        assert load(tiny(name))[0].pad_token is None


@pytest.mark.parametrize("architecture", DECODERS)
@pytest.mark.parametrize("pooling", ["lasttoken", "mean"])
def test_declared_decoder_without_padding_token(declare, set_json, architecture, pooling):
    from pathlib import Path

    from sentence_transformers import SentenceTransformer

    path = declare(architecture, pooling)
    theirs = SentenceTransformer(path, device="cpu")
    theirs.tokenizer.pad_token = theirs.tokenizer.eos_token
    # Versions differ in whether white space at the ends counts.
    texts = [text.strip() for text in SENTENCES if text]
    expected = np.concatenate([theirs.encode([text]) for text in texts])
    for file in Path(path).rglob("tokenizer_config.json"):
        set_json(file, pad_token=None)
    for file in Path(path).rglob("special_tokens_map.json"):
        set_json(file, pad_token=None)
    assert SentenceTransformer(path, device="cpu").tokenizer.pad_token is None
    vectors = BertEmbedder(path).fit(texts).transform(texts)
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=2e-5)
    np.testing.assert_allclose(BertEmbedder(path, layers=-1).transform(texts), expected, rtol=0, atol=2e-5)
