"""Frequency bias on encoders whose word embeddings are set by hand, and on the real one."""

import sys

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from skflow.inspection import frequency_bias
from skflow.inspection._vocabulary import load_transformer, vocabulary_frequencies, word_embeddings

WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "mat"]
COUNTS = {word: 100 - i for i, word in enumerate(WORDS)}


def ids(encoder, words):
    return encoder.tokenizer.convert_tokens_to_ids(words)


def test_figures_are_those_of_the_table_of_embeddings(tiny_embedder):
    embedder = tiny_embedder("bert")
    encoder = load_transformer(embedder)
    table = encoder.model.get_input_embeddings().weight.detach().numpy().astype(np.float64)
    result = frequency_bias(embedder, COUNTS, bins=(3, 8), neighbors=(2, 4))
    assert result.words.tolist() == WORDS
    np.testing.assert_array_equal(result.frequencies, list(COUNTS.values()))
    np.testing.assert_array_equal(result.n_words, [3, 5])
    rows = ids(encoder, WORDS)
    norms = np.linalg.norm(table[rows], axis=1)
    np.testing.assert_allclose(result.norms, norms, rtol=1e-6)
    np.testing.assert_allclose(result.mean_norm, [norms[:3].mean(), norms[3:].mean()], rtol=1e-6)
    for k, distances, dots, largest in zip(
        (2, 4), result.mean_distance, result.mean_dot, result.mean_largest_dot, strict=True
    ):
        expected = []
        for row in rows:
            others = np.delete(np.arange(len(table)), row)
            away = np.linalg.norm(table[others] - table[row], axis=1)
            products = table[others] @ table[row]
            near = np.argsort(away)[:k]
            expected.append([away[near].mean(), products[near].mean(), np.sort(products)[-k:].mean()])
        expected = np.array([np.mean(expected[:3], axis=0), np.mean(expected[3:], axis=0)])
        np.testing.assert_allclose(np.column_stack([distances, dots, largest]), expected, rtol=1e-5)


def test_neighbors_among_words_only(tiny_embedder):
    embedder = tiny_embedder("bert")
    encoder = load_transformer(embedder)
    table = word_embeddings(encoder)[ids(encoder, WORDS)].astype(np.float64)
    result = frequency_bias(embedder, COUNTS, bins=(8,), neighbors=(1,), among="words")
    distances = np.linalg.norm(table[:, None] - table, axis=2) + np.diag([np.inf] * len(WORDS))
    np.testing.assert_allclose(result.mean_distance, [[distances.min(axis=1).mean()]], rtol=1e-5)


def test_words_that_the_tokenizer_does_not_tell_apart_are_added_up(tiny_embedder):
    result = frequency_bias(tiny_embedder("bert"), {"the": 5, "cat": 7, "The": 5}, bins=(2,), neighbors=(1,))
    assert result.words.tolist() == ["the", "cat"]
    np.testing.assert_array_equal(result.frequencies, [10, 7])


def test_words_of_several_tokens_unknown_ones_and_those_of_frequency_zero_take_no_part(tiny_embedder):
    counts = {"the": 5, "zebra": 9, "[UNK]": 3, "dog": 0, "cat": 1}
    result = frequency_bias(tiny_embedder("bert"), counts, bins=(2,), neighbors=(1,))
    assert result.words.tolist() == ["the", "cat"]


def test_byte_level_vocabulary_takes_the_form_within_a_text(tiny_embedder):
    # " sings" is a token; at the start of a text the word is spelled otherwise.
    encoder = load_transformer(tiny_embedder("gpt2"))
    tokens = encoder.tokenizer.get_vocab()
    word = next(t[1:] for t in tokens if t.startswith("Ġ") and len(t) > 4 and t[1:] not in tokens)
    frequency = vocabulary_frequencies(encoder, {word: 2.0})
    assert np.flatnonzero(frequency).tolist() == [tokens["Ġ" + word]]
    bare = next(t for t in tokens if t.isalpha() and t.isascii() and len(t) > 1 and "Ġ" + t not in tokens)
    frequency = vocabulary_frequencies(encoder, {bare: 2.0})
    assert np.flatnonzero(frequency).tolist() == [tokens[bare]]


def test_counting_texts(tiny_embedder):
    result = frequency_bias(
        tiny_embedder("bert"), ["the cat sat", "the dog", "the cat [SEP]"], bins=(4,), neighbors=(1,)
    )
    assert result.words[:2].tolist() == ["the", "cat"]
    assert set(result.words[2:]) == {"sat", "dog"}  # the special token does not count
    np.testing.assert_array_equal(result.frequencies, [3, 2, 1, 1])


def test_contextual_averages(tiny_embedder):
    import torch

    texts = ["the cat sat on the mat", "a dog sat", "the dog ran"]
    embedder = tiny_embedder("bert", layers=(1, 3), batch_size=1)
    encoder = load_transformer(embedder)
    result = frequency_bias(embedder, COUNTS, bins=(8,), neighbors=(1,), texts=texts)
    vectors = {}
    for text in texts:
        tokens = encoder.tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            states = encoder.model(**tokens, output_hidden_states=True).hidden_states
        average = ((states[1] + states[3]) / 2)[0].numpy()
        for token, vector in zip(tokens["input_ids"][0].tolist(), average, strict=True):
            vectors.setdefault(token, []).append(vector)
    for word, norm in zip(result.words, result.norms, strict=True):
        mean = np.mean(vectors[ids(encoder, [word])[0]], axis=0)
        np.testing.assert_allclose(norm, np.linalg.norm(mean), rtol=1e-5)
    assert set(result.words) == set(WORDS)


def test_an_empty_bin_is_nan_with_a_warning(tiny_embedder):
    with pytest.warns(UndefinedMetricWarning, match=r"\[8, 20\), \[20, 30\)"):
        result = frequency_bias(tiny_embedder("bert"), COUNTS, bins=(8, 20, 30), neighbors=(1,))
    np.testing.assert_array_equal(result.n_words, [8, 0, 0])
    for figures in (result.mean_norm, result.mean_distance[0], result.mean_dot[0]):
        assert np.isnan(figures).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"embedder": "bert"}, TypeError, "embedder must be a BertEmbedder"),
        ({"frequencies": {"the": -1}}, ValueError, r"frequencies\['the'\] must be a finite number"),
        ({"frequencies": {"the": "often"}}, ValueError, r"frequencies\['the'\]"),
        ({"frequencies": {"quux": 3}}, ValueError, "no word has both"),
        ({"frequencies": 3}, TypeError, "frequencies is a int"),
        ({"bins": (5, 5)}, ValueError, "bins must be positive whole numbers that increase"),
        ({"bins": 5}, TypeError, "bins must be a sequence"),
        ({"neighbors": ()}, ValueError, "neighbors must be"),
        ({"neighbors": (1000,)}, ValueError, "only [0-9]+ vectors"),
        ({"among": "all"}, ValueError, "among must be"),
        ({"texts": "one"}, ValueError, "texts is one string"),
    ],
)
def test_errors(tiny_embedder, arguments, error, match):
    given = {
        "embedder": tiny_embedder("bert"),
        "frequencies": COUNTS,
        "bins": (8,),
        "neighbors": (1,),
        **arguments,
    }
    with pytest.raises(error, match=match):
        frequency_bias(**given)


def test_without_wordfreq_the_error_names_the_extra(tiny_embedder, monkeypatch):
    monkeypatch.setitem(sys.modules, "wordfreq", None)
    with pytest.raises(ImportError, match=r"scikit-bertflow\[inspection\]"):
        frequency_bias(tiny_embedder("bert"), "en")


def test_wordfreq(tiny_embedder):
    wordfreq = pytest.importorskip("wordfreq")
    encoder = load_transformer(tiny_embedder("bert"))
    frequency = vocabulary_frequencies(encoder, "en")
    the, cat = ids(encoder, ["the", "cat"])
    assert frequency[the] == pytest.approx(wordfreq.word_frequency("the", "en"), rel=0.01)
    assert frequency[cat] == pytest.approx(wordfreq.word_frequency("cat", "en"), rel=0.01)
    assert frequency[encoder.tokenizer.unk_token_id] == 0
    with pytest.raises(ValueError, match="no language that wordfreq knows; expected one of ar, bg"):
        vocabulary_frequencies(encoder, "klingon")


def test_the_table_shows_every_figure(tiny_embedder):
    result = frequency_bias(tiny_embedder("bert"), COUNTS, bins=(3, 8), neighbors=(2, 4))
    text = repr(result)
    assert "[0, 3)" in text
    assert "mean largest dot product, k=4" in text
    assert f"{result.mean_norm[1]:.2f}" in text
    assert "<table>" in result._repr_html_()
    pytest.importorskip("pandas")
    assert result.to_frame().loc["mean l2 norm", "[3, 8)"] == result.mean_norm[1]


def test_real_encoder_has_shorter_vectors_for_frequent_words(minilm):
    from skflow.embedders import BertEmbedder

    counts = {"the": 9, "of": 8, "and": 7, "in": 6, "granite": 4, "violin": 3, "orbit": 2, "lemon": 1}
    result = frequency_bias(BertEmbedder(minilm), counts, bins=(4, 8), neighbors=(3,))
    assert result.n_words.tolist() == [4, 4]
    assert result.mean_norm[0] < result.mean_norm[1]
