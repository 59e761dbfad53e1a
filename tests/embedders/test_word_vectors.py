import bz2
import gzip
import lzma
import pickle
import tarfile
import unicodedata
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks as checks
from sklearn.utils import get_tags

from skflow.embedders import WordVectorEmbedder
from skflow.embedders._word_file import WordFile
from skflow.embedders._word_vectors import split_words

VECTORS = {
    "the": [0.5, -1.0, 2.0],
    "The": [9.0, 9.0, 9.0],
    "cat": [1.0, 0.0, 0.25],
    "dog": [0.0, 1.0, -3.5],
    "n't": [0.125, 0.25, 0.0],
    ".": [1.0, 1.0, 1.0],
    "naïve": [2.0, 0.0, 0.0],
    ". . .": [7.0, 7.0, 7.0],
}


def glove(path, vectors=VECTORS):
    lines = [f"{word} {' '.join(map(str, vector))}\n" for word, vector in vectors.items()]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def word2vec_text(path):
    content = (
        glove(path).read_text(encoding="utf-8").replace("\n", " \n")
    )  # its writer leaves a space at the end
    path.write_text(f"{len(VECTORS)} 3\n{content}", encoding="utf-8")
    return path


def word2vec_binary(path, feed=b""):
    rows = [
        w.encode() + b" " + np.array(v, dtype="<f4").tobytes() + feed
        for w, v in VECTORS.items()
        if " " not in w
    ]
    path.write_bytes(f"{len(rows)} 3\n".encode() + b"".join(rows))
    return path


def word2vec_binary_with_feeds(path):
    return word2vec_binary(path, b"\n")


@pytest.fixture
def file(tmp_path):
    return glove(tmp_path / "vectors.txt")


@pytest.mark.parametrize("write", [glove, word2vec_text, word2vec_binary, word2vec_binary_with_feeds])
def test_formats(tmp_path, write):
    words = WordFile(write(tmp_path / "vectors"))
    assert words.n_features == 3
    known = [word for word in VECTORS if " " not in word or write in (glove, word2vec_text)]
    assert len(words) == len(known)
    np.testing.assert_array_equal(words.vectors(known), [VECTORS[word] for word in known])
    assert "bird" not in words


def test_average(file):
    embedder = WordVectorEmbedder(file)
    texts = ["the cat", "THE Dog", "The bird", "cat cat dog.", "a don't-cat"]
    expected = [
        np.mean([VECTORS["the"], VECTORS["cat"]], axis=0),
        np.mean([VECTORS["the"], VECTORS["dog"]], axis=0),  # found in lower case
        VECTORS["The"],  # found as written; the bird is unknown and does not count
        np.mean([VECTORS[word] for word in ("cat", "cat", "dog", ".")], axis=0),
        np.mean([VECTORS["n't"], VECTORS["cat"]], axis=0),
    ]
    vectors = embedder.fit_transform(texts)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, rtol=1e-6)
    np.testing.assert_array_equal(vectors, [embedder.transform([text])[0] for text in texts])
    unit = WordVectorEmbedder(file, normalize=True).transform(texts)
    np.testing.assert_allclose(unit, expected / np.linalg.norm(expected, axis=1, keepdims=True), rtol=1e-6)


def test_texts_without_known_words(file):
    for normalize in (False, True):
        embedder = WordVectorEmbedder(file, normalize=normalize)
        with pytest.warns(UserWarning, match="3 of 4 texts have no known word") as seen:
            vectors = embedder.fit_transform(["", "zebra", "cat", ""])
        assert len(seen) == 1
        np.testing.assert_array_equal(vectors[[0, 1, 3]], 0)
    with pytest.warns(UserWarning, match="1 of 1 texts"):
        np.testing.assert_array_equal(WordVectorEmbedder(file).transform(["\ud800 \x00"]), np.zeros((1, 3)))


def test_sif(file):
    corpus = ["the cat", "the dog", "the the bird", "the cat"]
    embedder = WordVectorEmbedder(file, sif=0.1)
    with pytest.raises(NotFittedError):
        embedder.transform(corpus)
    embedder.fit(corpus)
    assert embedder.word_frequencies_ == {"the": 5 / 8, "cat": 2 / 8, "dog": 1 / 8}
    weight = {word: 0.1 / (0.1 + p) for word, p in embedder.word_frequencies_.items()}
    expected = (
        weight["the"] * np.array(VECTORS["the"]) + weight["cat"] * np.array(VECTORS["cat"]) + VECTORS["n't"]
    ) / 3
    np.testing.assert_allclose(embedder.transform(["the cat n't"])[0], expected, rtol=1e-6)


def test_own_tokenizer(file):
    vectors = WordVectorEmbedder(file, tokenizer=lambda text: text.split("_")).fit_transform(["cat_. . ."])
    np.testing.assert_allclose(vectors[0], np.mean([VECTORS["cat"], VECTORS[". . ."]], axis=0))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I can't, won't.", ["I", "ca", "n't", ",", "wo", "n't", "."]),
        ("She's the dogs' friend", ["She", "'s", "the", "dogs", "'", "friend"]),
        ("well-known  3.5", ["well", "-", "known", "3", ".", "5"]),
        ("It\u2019s naïve", ["It", "'s", "naïve"]),
        ("", []),
    ],
)
def test_split_words(text, words):
    assert split_words(text) == words


@given(st.text())
def test_splitting_loses_white_space_alone(text):
    assert "".join(split_words(text)) == "".join(c for c in text.replace("\u2019", "'") if not c.isspace())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"cat 1 2 3\ndog 1 2\n", "line 2: expected a word and 3 numbers, got 3 fields"),
        (b"3 2\ncat 1 2\ndog 1 2\n", "promises 3 words and ends after 2"),
        (b"2 2\ncat " + b"\x01\x00\xff\x02" * 2 + b"dog \x01", "promises 2 words and ends after 1"),
        (
            b"2 2\ncat " + bytes(8) + b"dog " + bytes(8) + b"zzz 123",
            "promises 2 words and goes on behind them",
        ),
        (b"1 2\ncat " + bytes(8) + b"dog " + bytes(8), "promises 1 words and goes on behind them"),
        (b"1 2\ncat 1 2\ndog 1 2\n", "promises 1 words and ends after 2"),
        (b"2 3\ncat 1 2\ndog 1 2\n", "line 2: line 1 promises 3 numbers for each word, got 2"),
        (b"cat\n", "line 1: expected a word and its vector"),
        (b"cat x y\n", "line 1: expected a word and its vector"),
        (b"cat x y\ndog 1 2\n", "line 1: expected a word and its vector"),
        (b"cat x 2\ndog 1 2\n", "line 1: expected a word and its vector"),
        (b"cat 1,5 2\ndog 1,5 2\n", "line 1: expected a word and its vector"),
        (
            b"cat 1 2\nbird 1 2\ndog 1 2 3\n",
            "line 3: expected a word and 2 numbers, got one more: 'dog 1 2 3'",
        ),
        (b"cat\t1\t2\ndog\t1\n", "line 2: expected a word and 2 numbers, got 2 fields"),
        (b" \n\n", "line 1: expected a word and its vector"),
    ],
)
def test_damaged_files(tmp_path, content, message):
    path = tmp_path / "vectors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        WordVectorEmbedder(path).fit(["cat"])


@pytest.mark.parametrize("number", ["x", "nan", "inf"])
def test_damaged_numbers_name_the_line(tmp_path, number):
    path = tmp_path / "vectors"
    path.write_text(f"cat 1 2\ndog 1 {number}\n", encoding="utf-8")
    embedder = WordVectorEmbedder(path)
    np.testing.assert_array_equal(embedder.fit_transform(["cat"]), [[1, 2]])
    with pytest.raises(ValueError, match="line 2"):
        embedder.transform(["dog"])


@pytest.mark.parametrize("n_features", [20, 50, 300])
@pytest.mark.parametrize("word", ["new york", "a b", "Los Angeles", "the cat sat", "in a"])
@pytest.mark.parametrize("position", range(10))
def test_space_in_a_word_of_a_binary_file(tmp_path, n_features, word, position):
    words = [f"word{i}" for i in range(10)]
    words[position] = word
    numbers = np.random.RandomState(n_features).standard_normal((10, n_features)).astype("<f4")
    rows = [w.encode() + b" " + row.tobytes() for w, row in zip(words, numbers, strict=True)]
    path = tmp_path / "vectors"
    path.write_bytes(f"10 {n_features}\n".encode() + b"".join(rows))
    with pytest.raises(ValueError, match=r"hold a space|ends after") as caught:
        WordVectorEmbedder(path).fit(["cat"])
    assert str(path) in str(caught.value)


def test_word_cut_within_a_letter_of_a_binary_file(tmp_path):
    path = tmp_path / "vectors"
    rows = [
        w + b" " + np.array([1, 0], dtype="<f4").tobytes() for w in (b"cat", "naïve".encode()[:3], b"dog")
    ]
    path.write_bytes(b"3 2\n" + b"".join(rows) + b"\n")
    with pytest.warns(
        UserWarning, match="1 of 3 words of .* do not decode as utf-8 and are left out"
    ) as seen:
        np.testing.assert_array_equal(WordVectorEmbedder(path).fit_transform(["dog"]), [[1, 0]])
    assert len(seen) == 1
    assert len(WordFile(path, "latin-1")) == 3


@pytest.mark.parametrize("write", [glove, word2vec_text, word2vec_binary])
def test_byte_order_mark(tmp_path, write):
    path = write(tmp_path / "vectors")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    words = WordFile(path)
    np.testing.assert_array_equal(words.vectors(["the", "dog"]), [VECTORS["the"], VECTORS["dog"]])


@pytest.mark.parametrize("first", ["at name@domain.com", ". . .", "nan", "", "cat", "7"])
def test_first_word_with_spaces_or_numbers(tmp_path, first):
    path = glove(
        tmp_path / "vectors", {first: [9.0, 8.0, 7.0], "bird": [1.0, 2.0, 3.0], "dog": [3.0, 4.0, 5.0]}
    )
    words = WordFile(path)
    assert words.n_features == 3
    np.testing.assert_array_equal(words.vectors([first, "dog"]), [[9, 8, 7], [3, 4, 5]])


@pytest.mark.parametrize("word", ["at 5", "1 1", "the cat 1 2 3"])
def test_words_that_end_in_a_number(tmp_path, word):
    """A line with a number too many is damaged, unless the file has words with spaces or says its length."""
    vectors = {"bird": [1.0, 2.0, 3.0], word: [9.0, 8.0, 7.0], "dog": [3.0, 4.0, 5.0]}
    path = glove(tmp_path / "vectors", vectors)
    with pytest.raises(ValueError, match="line 2: expected a word and 3 numbers, got one more"):
        WordFile(path)
    glove(path, {**vectors, "new york": [0.0, 0.0, 1.0]})
    np.testing.assert_array_equal(WordFile(path).vectors([word, "new york"]), [[9, 8, 7], [0, 0, 1]])
    path.write_text("3 3\n" + glove(path, vectors).read_text(encoding="utf-8"), encoding="utf-8")
    np.testing.assert_array_equal(WordFile(path).vectors([word, "dog"]), [[9, 8, 7], [3, 4, 5]])


@pytest.mark.parametrize("header", [b"", b"3 2\n", b"3\t2\n"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b" \n", b"\t\r\n", b"\n\n"])
@pytest.mark.parametrize("between", [b" ", b"\t", b"  ", b" \t "])
def test_separators(tmp_path, between, end, header):
    path = tmp_path / "vectors"
    rows = [("cat", b"1", b"-2e1"), ("new york", b"0.5", b"3"), ("naïve", b"4", b"5")]
    path.write_bytes(header + b"".join(between.join([w.encode(), *n]) + end for w, *n in rows))
    words = WordFile(path)
    assert len(words) == 3
    np.testing.assert_array_equal(words.vectors(["naïve", "new york", "cat"]), [[4, 5], [0.5, 3], [1, -20]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("हिन्दी", ["हिन्दी"]),  # vowel signs and virama
        ("বাংলা ভাষা", ["বাংলা", "ভাষা"]),
        ("தமிழ்", ["தமிழ்"]),
        ("مُحَمَّدٌ", ["مُحَمَّدٌ"]),  # vocalized Arabic
        ("می\u200cخواهم", ["می\u200cخواهم"]),  # Persian, with a zero-width non-joiner
        ("שָׁלוֹם", ["שָׁלוֹם"]),  # Hebrew with niqqud
        ("ภาษาไทย", ["ภาษาไทย"]),  # a run is one word
        ("re\u0301sume\u0301 n'est", ["re\u0301sume\u0301", "n", "'", "est"]),
        ("\u1112\u1161\u11ab\u1100\u1173\u11af", ["\u1112\u1161\u11ab\u1100\u1173\u11af"]),  # Hangul in NFD
    ],
)
def test_marks_belong_to_their_word(text, words):
    assert split_words(text) == words


def test_words_of_other_scripts_are_themselves(tmp_path):
    path = glove(tmp_path / "vectors", {"हिन्दी": [1.0, 0.0], "ह": [0.0, 1.0]})
    np.testing.assert_array_equal(WordVectorEmbedder(path).fit_transform(["हिन्दी"]), [[1, 0]])


@pytest.mark.parametrize("word", ["résumé", "Việt", "한글", "Å"])
@pytest.mark.parametrize("of_file", ["NFC", "NFD"])
@pytest.mark.parametrize("of_text", ["NFC", "NFD"])
def test_normal_forms(tmp_path, word, of_file, of_text):
    path = glove(tmp_path / "vectors", {unicodedata.normalize(of_file, word): [1.0, 2.0], "x": [0.0, 0.0]})
    text = f"A {unicodedata.normalize(of_text, word)}!"
    np.testing.assert_array_equal(WordVectorEmbedder(path).fit_transform([text]), [[1, 2]])
    np.testing.assert_array_equal(
        WordVectorEmbedder(path).transform([text.upper()]) if word == "Å" else [[1, 2]], [[1, 2]]
    )


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "shift_jis", "utf-8-sig"])
def test_encodings(tmp_path, encoding):
    word = "日本" if encoding == "shift_jis" else "café"
    path = tmp_path / "vectors"
    path.write_text(f"cat 1 0\n{word} 2 3\n", encoding=encoding)
    embedder = WordVectorEmbedder(path, encoding=encoding)
    np.testing.assert_array_equal(embedder.fit_transform([word, "cat"]), [[2, 3], [1, 0]])


def test_bytes_that_do_not_decode_are_named(tmp_path):
    path = tmp_path / "vectors"
    path.write_bytes("cat 1 0\ncafé 2 3\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"line 2: byte 0xe9 of the word b'caf\\xe9' .*encoding='latin-1'"):
        WordVectorEmbedder(path).fit(["cat"])
    path.write_text("cat 1 0\n", encoding="utf-16")
    with pytest.raises(ValueError, match="set encoding='utf-16'"):
        WordVectorEmbedder(path).fit(["cat"])
    with pytest.raises(ValueError, match="encoding='klingon' is unknown"):
        WordVectorEmbedder(path, encoding="klingon").fit(["cat"])


def zipped(path, content, names=("vectors.txt",)):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, content)


COMPRESSED = {
    "gz": lambda path, content: path.write_bytes(gzip.compress(content)),
    "bz2": lambda path, content: path.write_bytes(bz2.compress(content)),
    "xz": lambda path, content: path.write_bytes(lzma.compress(content)),
    "zip": zipped,
}


@pytest.mark.parametrize("write", [glove, word2vec_text, word2vec_binary])
@pytest.mark.parametrize("kind", COMPRESSED)
def test_compressed_files(tmp_path, kind, write):
    path = tmp_path / f"vectors.{kind}"
    COMPRESSED[kind](path, write(tmp_path / "plain").read_bytes())
    embedder = WordVectorEmbedder(path)
    expected = WordVectorEmbedder(tmp_path / "plain").fit_transform(["the cat", "naïve dog"])
    np.testing.assert_array_equal(embedder.fit_transform(["the cat", "naïve dog"]), expected)


@pytest.mark.parametrize("kind", COMPRESSED)
def test_truncated_compressed_files(tmp_path, kind):
    path = tmp_path / f"vectors.{kind}"
    COMPRESSED[kind](path, "".join(f"word{i} {i} {i * i}\n" for i in range(5000)).encode())
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(ValueError, match=r"vectors\.\w+ is (a )?damaged"):
        WordVectorEmbedder(path).fit(["cat"])


@pytest.mark.parametrize("kind", COMPRESSED)
def test_compressed_files_with_damage_inside(tmp_path, kind):
    path = tmp_path / f"vectors.{kind}"
    COMPRESSED[kind](path, "".join(f"word{i} {i} {i * i}\n" for i in range(5000)).encode())
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 500] = bytes(500)
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"vectors\.\w+ is damaged"):
        WordVectorEmbedder(path).fit(["cat"])


def test_zip_archives_of_one_file_and_of_none(tmp_path):
    path = tmp_path / "glove.zip"
    zipped(path, "cat 1 2\n", ("glove/vectors.txt", "__MACOSX/glove/._vectors.txt"))
    np.testing.assert_array_equal(WordVectorEmbedder(path).fit_transform(["cat"]), [[1, 2]])
    zipped(path, "", ())
    with pytest.raises(ValueError, match=r"zip archive of 0 files \(none\), expected one"):
        WordVectorEmbedder(path).fit(["cat"])
    zipped(path, "cat 1 2\n")
    data = bytearray(path.read_bytes())
    for magic, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(magic) + place] |= 1  # the flag of encryption
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"zip archive that cannot be read: .*encrypted"):
        WordVectorEmbedder(path).fit(["cat"])


def test_archives_of_several_files(tmp_path):
    path = tmp_path / "glove.zip"
    zipped(path, "cat 1 2\n", ("glove.50d.txt", "glove.100d.txt"))
    with pytest.raises(ValueError, match=r"zip archive of 2 files \(glove.50d.txt, glove.100d.txt\)"):
        WordVectorEmbedder(path).fit(["cat"])
    with tarfile.open(tmp_path / "vectors.tar.gz", "w:gz") as archive:
        archive.add(glove(tmp_path / "vectors.txt"))
    with pytest.raises(ValueError, match="is a tar archive"):
        WordVectorEmbedder(tmp_path / "vectors.tar.gz").fit(["cat"])


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\xba\x16\x4f\x2f" + bytes(60), "a fastText model"),
        (pickle.dumps({"cat": [1.0]}), "a pickle, such as gensim's"),
        (b"\x93NUMPY\x01\x00" + bytes(80), "a numpy array"),
        (b"\x89HDF\r\n\x1a\n" + bytes(80), "an HDF5 file"),
        (b"PAR1\x15\x04" + bytes(80), "a Parquet file"),
        (b"<!DOCTYPE html><html>", "a page of HTML"),
        (b"\x28\xb5\x2f\xfd" + bytes(80), "compressed by Zstandard"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "a pointer of Git LFS"),
    ],
)
def test_files_of_another_kind_are_named(tmp_path, content, kind):
    path = tmp_path / "vectors.bin"
    for data in (content, gzip.compress(content)):
        path.write_bytes(data)
        with pytest.raises(
            ValueError, match=f"vectors.bin is {kind}.*which holds no readable word vectors: "
        ):
            WordVectorEmbedder(path).fit(["cat"])


def test_home_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    glove(tmp_path / "vectors.txt")
    vectors = WordVectorEmbedder("~/vectors.txt").fit_transform(["cat"])
    np.testing.assert_array_equal(vectors, [VECTORS["cat"]])


def test_vectors_of_one_number(tmp_path):
    path = glove(tmp_path / "vectors", {"cat": [1.5], "dog": [2.5]})
    np.testing.assert_array_equal(WordVectorEmbedder(path).fit_transform(["cat", "dog"]), [[1.5], [2.5]])


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        (lambda text: text, "tokenizer returned a str"),
        (lambda text: None, "tokenizer returned a NoneType"),
        (lambda text: [1], "tokenizer returned an element of type int"),
        (lambda text: [b"cat"], "tokenizer returned an element of type bytes"),
        (lambda text: [["cat"]], "tokenizer returned an element of type list"),
    ],
)
@pytest.mark.parametrize("sif", [None, 1e-3])
def test_tokenizer_that_returns_no_words(file, tokenizer, message, sif):
    with pytest.raises(TypeError, match=message):
        WordVectorEmbedder(file, tokenizer=tokenizer, sif=sif).fit(["the cat"])
    with pytest.raises(TypeError, match=message):
        WordVectorEmbedder(file, tokenizer=tokenizer).transform(["the cat"])


def test_tokenizer_that_returns_a_generator(file):
    embedder = WordVectorEmbedder(file, tokenizer=lambda text: iter(text.split("_")))
    np.testing.assert_array_equal(embedder.fit_transform(["cat_cat"]), [VECTORS["cat"]])


def test_mapping_is_no_path():
    with pytest.raises(ValueError, match="'path' parameter"):
        WordVectorEmbedder({"a": [1, 2]}).fit(["a"])


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        WordVectorEmbedder(tmp_path / "absent").fit(["a"])


def test_first_of_equal_words_counts(tmp_path):
    path = tmp_path / "vectors"
    path.write_text("cat 1 2\ncat 3 4\n", encoding="utf-8")
    np.testing.assert_array_equal(WordVectorEmbedder(path).fit_transform(["cat"]), [[1, 2]])


def test_changed_file_is_read_anew(file):
    embedder = WordVectorEmbedder(file).fit(["cat"])
    glove(file, {"cat": [5.0, 6.0]})
    np.testing.assert_array_equal(embedder.transform(["cat"]), [[5, 6]])


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ("cat", ValueError, "X is one string"),
        ([], ValueError, r"0 sample\(s\)"),
        (["cat", None], ValueError, r"X\[1\] is missing"),
        (["cat", 3], TypeError, r"X\[1\] is of type int"),
        ([["cat"]], TypeError, r"X\[0\] is of type list"),
    ],
)
def test_input_rules(file, X, error, message):
    for method in ("fit", "transform"):
        with pytest.raises(error, match=message):
            getattr(WordVectorEmbedder(file), method)(X)


def test_pickle_and_clone(file):
    embedder = WordVectorEmbedder(file, sif=1e-3).fit(["the cat"])
    expected = embedder.transform(["the dog"])
    content = pickle.dumps(embedder)
    assert b"Map" not in content
    np.testing.assert_array_equal(pickle.loads(content).transform(["the dog"]), expected)
    assert clone(embedder).get_params() == embedder.get_params()
    assert list(embedder.get_feature_names_out()) == [f"wordvectorembedder{i}" for i in range(3)]
    assert len(WordVectorEmbedder(file).get_feature_names_out()) == 3
    tags = get_tags(embedder)
    assert (tags.requires_fit, tags.input_tags.string, tags.input_tags.two_d_array) == (True, True, False)


@pytest.mark.parametrize(
    "check",
    [
        checks.check_estimator_cloneable,
        checks.check_estimator_repr,
        checks.check_estimator_tags_renamed,
        checks.check_valid_tag_types,
        checks.check_no_attributes_set_in_init,
        checks.check_get_params_invariance,
        checks.check_set_params,
        checks.check_mixin_order,
        checks.check_do_not_raise_errors_in_init_or_set_params,
        checks.check_param_validation,
    ],
    ids=lambda check: check.__name__,
)
def test_general_api_checks(file, check):
    check("WordVectorEmbedder", WordVectorEmbedder(file))
