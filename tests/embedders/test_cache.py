"""The cache: same vectors, no work twice, and never a wrong vector."""

import contextlib
import functools
import multiprocessing
import os
import pickle
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skflow.embedders import BertEmbedder
from skflow.embedders._cache import VectorCache
from skflow.embedders._sqlite_file import FILE_NAME

from .._encoders import BERT_TOKENS, SENTENCES, wordpiece
from .._sts_files import write_senteval

TEXTS = [text for text in SENTENCES if len(text) < 60]
PRINT = b"f" * 16


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache.sqlite"


def rows(path):
    with sqlite3.connect(path) as connection:
        (count,) = connection.execute("SELECT count(*) FROM vectors").fetchone()
    connection.close()
    return count


def change(path, statement, *values):
    with sqlite3.connect(path) as connection:
        connection.execute(statement, values)
    connection.close()


def test_second_run_does_not_load_the_model(tiny_bert, path, n_embedded):
    from skflow.embedders._loading import loaded_models

    plain = BertEmbedder(tiny_bert).fit_transform(TEXTS)
    n_embedded.clear()
    first = BertEmbedder(tiny_bert, cache=path).fit_transform(TEXTS)
    np.testing.assert_array_equal(first, plain)
    assert n_embedded == [len(set(TEXTS))] == [rows(path)]
    loaded_models.clear()
    embedder = BertEmbedder(tiny_bert, cache=str(path)).set_output(transform="pandas").fit(TEXTS)
    np.testing.assert_array_equal(embedder.transform(TEXTS).to_numpy(), plain)
    assert len(n_embedded) == 1
    assert not loaded_models._models


def test_new_texts_alone_are_embedded(tiny_bert, path, n_embedded):
    embedder = BertEmbedder(tiny_bert, cache=path)
    embedder.fit_transform(TEXTS[:3])
    np.testing.assert_allclose(
        embedder.transform(TEXTS), BertEmbedder(tiny_bert).transform(TEXTS), rtol=0, atol=1e-5
    )
    assert n_embedded[:2] == [3, len(set(TEXTS)) - 3]


def test_directory_and_missing_parents(tiny_bert, tmp_path):
    BertEmbedder(tiny_bert, cache=tmp_path).transform(TEXTS)
    assert rows(tmp_path / FILE_NAME) == len(set(TEXTS))
    BertEmbedder(tiny_bert, cache=tmp_path / "a" / "b" / "c.sqlite").transform(TEXTS)
    assert rows(tmp_path / "a" / "b" / "c.sqlite") == len(set(TEXTS))


def test_home_directory(tiny_bert, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    shutil.copytree(tiny_bert, tmp_path / "model")
    BertEmbedder("~/model", cache="~/cache.sqlite").transform(TEXTS)
    assert rows(tmp_path / "cache.sqlite") == len(set(TEXTS))


@pytest.mark.parametrize(
    ("parameters", "is_shared"),
    [
        ({}, True),
        ({"batch_size": 2}, True),
        ({"normalize": True}, True),  # applied afterwards
        ({"verbose": 0, "token": "hf_x"}, True),
        ({"layers": [1, -1]}, True),  # another way to say first_last
        ({"layers": [4]}, False),
        ({"pooling": "max"}, False),
        ({"max_length": 10}, False),
        ({"dtype": "bfloat16"}, False),
        ({"exclude_special_tokens": True}, False),
        ({"sif": 1e-3}, False),
    ],
)
def test_what_determines_a_vector_is_in_the_key(tiny_bert, path, n_embedded, parameters, is_shared):
    texts = ["the cat sat", "a dog"]
    common = {"layers": "first_last", "pooling": "mean"}
    BertEmbedder(tiny_bert, cache=path, **common).fit_transform(texts)
    n_embedded.clear()
    other = BertEmbedder(tiny_bert, cache=path, **{**common, **parameters}).fit(texts)
    vectors = other.transform(texts)
    assert n_embedded == ([] if is_shared else [2])
    expected = BertEmbedder(tiny_bert, **{**common, **parameters}).fit_transform(texts)
    np.testing.assert_array_equal(vectors, expected)


def test_frequencies_are_in_the_key(tiny_bert, path, n_embedded):
    embedder = BertEmbedder(tiny_bert, cache=path, sif=1e-3, pooling="mean")
    a = embedder.fit(["the cat", "the dog"]).transform(["the cat"])
    b = embedder.fit(["a cat", "a dog"]).transform(["the cat"])
    assert not np.allclose(a, b)
    np.testing.assert_array_equal(embedder.fit(["the cat", "the dog"]).transform(["the cat"]), a)
    assert len(n_embedded) == 2


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_files_of_the_model_are_in_the_key(tiny_bert, tmp_path, path, n_embedded, name):
    model = tmp_path / "model"
    shutil.copytree(tiny_bert, model)
    BertEmbedder(model, cache=path).transform(["the cat"])
    moved = tmp_path / "moved"
    model.rename(moved)
    BertEmbedder(moved, cache=path).transform(["the cat"])
    assert len(n_embedded) == 1  # the content counts, not the place
    content = (moved / name).read_bytes()
    (moved / name).write_bytes(content + b" " if name.endswith("json") else content[:-1] + b"?")
    BertEmbedder(moved, cache=path).transform(["the cat"])
    assert len(n_embedded) == 2


def test_cut_texts_are_reported_from_the_cache_too(tiny_bert, path):
    embedder = BertEmbedder(tiny_bert, cache=path, max_length=5)
    for _ in range(2):
        with pytest.warns(UserWarning, match="2 of 3 texts were truncated"):
            embedder.transform(["the cat sat on the mat", "a dog", "the cat sat on the mat"])


def test_round_trip_of_any_text(path):
    texts = [
        "",
        " ",
        "a",
        "A",
        "\x00",
        "\ud800",
        "é",
        "e\u0301",
        "x" * 100_000,
        *(str(i) for i in range(1200)),
    ]
    vectors = np.random.RandomState(0).standard_normal((len(texts), 7)).astype(np.float32)
    vectors[0] = [np.nan, np.inf, -np.inf, -0.0, 1e-45, 3.4e38, 0]
    truncated = np.arange(len(texts)) % 3 == 0
    cache = VectorCache(path, PRINT)
    assert cache.n_features() is None
    cache.write(texts, vectors, truncated)
    back, cut, missing = cache.read(texts[::-1])
    np.testing.assert_array_equal(back[::-1], vectors)
    np.testing.assert_array_equal(cut[::-1], truncated)
    assert len(missing) == 0
    assert cache.n_features() == 7
    for other in (b"e" * 16, b"g" * 16, b"\xff" * 16):
        assert VectorCache(path, other).n_features() is None
        assert len(VectorCache(path, other).read(texts)[2]) == len(texts)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE vectors SET vector = zeroblob(length(vector))",
        "UPDATE vectors SET vector = substr(vector, 1, length(vector) - 4)",
        "UPDATE vectors SET vector = 'text'",
        "UPDATE vectors SET truncated = 1 - truncated",
        "UPDATE vectors SET checksum = zeroblob(8)",
        "UPDATE vectors SET (vector, checksum) = (SELECT vector, checksum FROM vectors LIMIT 1 OFFSET 1)",
    ],
)
def test_damaged_rows_are_computed_anew(tiny_bert, path, statement, n_embedded):
    expected = BertEmbedder(tiny_bert, cache=path).fit_transform(TEXTS)
    change(path, statement)
    n_embedded.clear()
    with pytest.warns(UserWarning, match="damaged rows"):
        np.testing.assert_allclose(
            BertEmbedder(tiny_bert, cache=path).fit_transform(TEXTS), expected, atol=1e-5
        )
    assert len(n_embedded) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # and the cache is whole again
        BertEmbedder(tiny_bert, cache=path).fit_transform(TEXTS)
    assert len(n_embedded) == 1


def test_damaged_bytes_anywhere(tiny_bert, path):
    expected = BertEmbedder(tiny_bert, cache=path).fit_transform(TEXTS)
    content = path.read_bytes()
    random = np.random.RandomState(0)
    for trial in range(30):
        broken = bytearray(content)
        start = random.randint(len(content))
        noise = random.bytes(random.choice([1, 64, 4096]))
        broken[start : start + len(noise)] = noise
        path.write_bytes(broken[: len(content) - (trial % 3) * 700])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            vectors = BertEmbedder(tiny_bert, cache=path).fit_transform(TEXTS)
        np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "kind", ["text", "other database", "damaged other database", "newer layout", "directory without rights"]
)
def test_unusable_file_costs_one_warning(tiny_bert, path, kind):
    expected = BertEmbedder(tiny_bert).fit_transform(TEXTS)
    if kind == "text":
        path = path.with_name("notes.txt")
        path.write_text("my notes, not a database " * 100, encoding="utf-8")
    elif kind == "other database":
        change(path, "CREATE TABLE mine (x)")
    elif kind == "damaged other database":
        change(path, "CREATE TABLE mine (x)")
        content = bytearray(path.read_bytes())
        content[100:110] = b"\xff" * 10
        path.write_bytes(content)
    elif kind == "newer layout":
        BertEmbedder(tiny_bert, cache=path).transform(TEXTS)
        change(path, "PRAGMA user_version = 99")
    else:
        path.parent.joinpath("file").write_text("", encoding="utf-8")
        path = path.parent / "file" / "cache.sqlite"
    before = path.read_bytes() if path.exists() else None
    embedder = BertEmbedder(tiny_bert, cache=path)
    with pytest.warns(UserWarning, match="cannot be used .*vectors are computed") as seen:
        np.testing.assert_array_equal(embedder.transform(TEXTS), expected)
    assert len(seen) == 1
    assert seen[0].filename == __file__  # not a line of the package, nor of scikit-learn
    with pytest.warns(UserWarning, match="cannot be used") as seen:
        embedder.fit(TEXTS)
    assert seen[0].filename == __file__
    assert before is None or path.read_bytes() == before
    assert not path.with_name(path.name + ".damaged").exists()


@pytest.mark.parametrize("kind", ["too long", "with a zero byte"])
def test_impossible_name_costs_one_warning(tiny_bert, tmp_path, kind):
    path = tmp_path / ("x" * 300 if kind == "too long" else "x\0y")
    embedder = BertEmbedder(tiny_bert, cache=path)
    with pytest.warns(UserWarning, match="cannot be used") as seen:
        vectors = embedder.transform(TEXTS)
    assert len(seen) == 1
    np.testing.assert_array_equal(vectors, BertEmbedder(tiny_bert).transform(TEXTS))


def damage_schema(content):
    at = content.index(b"CREATE TABLE vectors")
    content[at + 15] = 0x90  # quoted in SQLite's own error, and no UTF-8


def damage_first_page(content):
    content[:4096] = bytes(4096)


def damage_root_of_table(content):
    content[4096:4106] = b"\xff" * 10


def rename_table(content):
    at = content.index(b"CREATE TABLE vectors")
    content[at : at + 20] = b"CREATE TABLE victors"


def lose_layout(content):
    content[60:64] = b"\xff" * 4


def cut(content):
    del content[5000:]


DAMAGES = [damage_schema, damage_first_page, damage_root_of_table, rename_table, lose_layout, cut]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_file_is_put_aside_once(tiny_bert, path, n_embedded, damage):
    expected = BertEmbedder(tiny_bert, cache=path).fit_transform(TEXTS)
    content = bytearray(path.read_bytes())
    damage(content)
    path.write_bytes(content)
    n_embedded.clear()
    with pytest.warns(UserWarning, match=r"is damaged .* it is now '.*\.damaged', and a new one") as seen:
        np.testing.assert_array_equal(BertEmbedder(tiny_bert, cache=path).transform(TEXTS), expected)
    assert len(seen) == 1
    assert n_embedded == [len(set(TEXTS))]
    assert path.with_name(path.name + ".damaged").read_bytes() == content
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(BertEmbedder(tiny_bert, cache=path).fit_transform(TEXTS), expected)
    assert len(n_embedded) == 1
    assert rows(path) == len(set(TEXTS))


def test_lost_mark_is_set_again(tiny_bert, path, n_embedded):
    BertEmbedder(tiny_bert, cache=path).transform(TEXTS)
    change(path, "PRAGMA application_id = 0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BertEmbedder(tiny_bert, cache=path).transform(TEXTS)
    assert len(n_embedded) == 1


def test_any_single_damage_is_healed(path):
    texts = [str(i) for i in range(60)]
    vectors = np.random.RandomState(0).standard_normal((60, 32)).astype(np.float32)
    truncated = np.zeros(60, dtype=bool)

    def use():
        """Read, write what is missing, and return the number of missing rows and of warnings."""
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            cache = VectorCache(path, PRINT)
            cache.n_features()
            kept, _, missing = cache.read(texts)
            there = np.setdiff1d(np.arange(60), missing)
            if len(there):
                np.testing.assert_array_equal(kept[there], vectors[there])
            if len(missing):
                cache.write([texts[i] for i in missing], vectors[missing], truncated[missing])
        return len(missing), len(seen)

    assert use() == (60, 0)
    content = path.read_bytes()
    random = np.random.RandomState(0)
    for trial in range(60):
        broken = bytearray(content)
        start, size = random.randint(100, len(content)), random.choice([1, 64, 4096])
        if trial % 3:
            broken[start : start + size] = random.bytes(size)
            broken = broken[: len(content)]
        else:
            del broken[start:]
        path.write_bytes(broken)
        assert use()[1] <= 1
        assert use() == (0, 0)


def put_aside(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_share(path, 0)
    return len(VectorCache(path, PRINT).read([f"text {i}" for i in range(300)])[2])


def test_processes_that_see_the_same_damage_keep_one_new_file(path):
    write_share(path, 0)
    content = bytearray(path.read_bytes())
    damage_schema(content)
    path.write_bytes(content)
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(put_aside, [path] * 3)) == [0, 0, 0]
    assert rows(path) == 300
    assert path.with_name(path.name + ".damaged").read_bytes() == content


def test_a_lock_does_not_hold_up_work_for_long(tiny_bert, path):
    expected = BertEmbedder(tiny_bert, cache=path).fit_transform(TEXTS)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    other.execute("DELETE FROM vectors")
    start = time.monotonic()
    with pytest.warns(UserWarning, match="locked"):
        np.testing.assert_array_equal(BertEmbedder(tiny_bert, cache=path).transform(TEXTS), expected)
    assert time.monotonic() - start < 15  # with room for a busy machine; it was 30 seconds and more
    other.close()
    assert rows(path) == len(set(TEXTS))
    assert not path.with_name(path.name + ".damaged").exists()


def test_read_only_directory(tiny_bert, path, monkeypatch, n_embedded):
    import stat

    from skflow.embedders import _sqlite_file

    expected = BertEmbedder(tiny_bert, cache=path).fit_transform(TEXTS)
    before = path.read_bytes()
    path.chmod(stat.S_IREAD)
    path.parent.chmod(stat.S_IREAD | stat.S_IEXEC)
    # An administrator may write everywhere.
    monkeypatch.setattr(_sqlite_file.os, "access", lambda *_: False)
    n_embedded.clear()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(BertEmbedder(tiny_bert, cache=path).transform(TEXTS), expected)
        assert n_embedded == []
        with pytest.warns(UserWarning, match="cannot be used"):
            BertEmbedder(tiny_bert, cache=path).transform([*TEXTS, "a new dog"])
        assert n_embedded == [1]
        assert [file.name for file in path.parent.iterdir()] == [path.name]
    finally:
        path.parent.chmod(stat.S_IRWXU)
    assert path.read_bytes() == before


def test_locked_by_another_process(tiny_bert, path, monkeypatch):
    from skflow.embedders import _sqlite_file

    monkeypatch.setattr(_sqlite_file, "_SECONDS_TO_WAIT", 0.1)
    expected = BertEmbedder(tiny_bert, cache=path).fit_transform(TEXTS)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    embedder = BertEmbedder(tiny_bert, cache=path)
    np.testing.assert_array_equal(embedder.transform(TEXTS), expected)  # reading goes on
    with pytest.warns(UserWarning, match="locked"):
        assert embedder.transform(["a new dog"]).shape == (1, 32)
    other.close()
    assert rows(path) == len(set(TEXTS))


def test_full_disk(path):
    # A limit on the size of files stands for a full disk.
    program = """
import resource, signal, sys, warnings
import numpy as np
from skflow.embedders._cache import VectorCache
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
texts = [str(i) for i in range(1000)]
vectors = np.arange(256_000, dtype=np.float32).reshape(1000, 256)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    cache = VectorCache(sys.argv[1], b"f" * 16)
    cache.write(texts[:10], vectors[:10], np.zeros(10, dtype=bool))
    assert not seen, seen
    cache.write(texts[10:], vectors[10:], np.zeros(990, dtype=bool))
    cache.write(texts[10:], vectors[10:], np.zeros(990, dtype=bool))
assert len(seen) == 1 and "cannot be used" in str(seen[0].message), seen
back, _, missing = VectorCache(sys.argv[1], b"f" * 16).read(texts)
assert len(missing) == 990
np.testing.assert_array_equal(back[:10], vectors[:10])
"""
    subprocess.run([sys.executable, "-c", program, str(path)], check=True)


def write_for_ever(path):
    vectors = np.ones((50, 256), dtype=np.float32)
    number = 0
    while True:
        texts = [f"{number} {i}" for i in range(50)]
        VectorCache(path, PRINT).write(texts, vectors * number, np.zeros(50, dtype=bool))
        number += 1


def test_killed_process(path):
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=write_for_ever, args=(path,))
    process.start()
    cache = VectorCache(path, PRINT)
    for _ in range(1200):
        if path.exists() and len(cache.read(["20 0"])[2]) == 0:
            break
        process.join(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    cache = VectorCache(path, PRINT)
    whole = 0
    for number in range(2000):
        texts = [f"{number} {i}" for i in range(50)]
        vectors, _, missing = cache.read(texts)
        assert len(missing) in (0, 50)  # a write is kept whole or not at all
        if len(missing):
            break
        np.testing.assert_array_equal(vectors, number)
        whole += 1
    assert whole > 20


def write_share(path, worker):
    texts = [f"text {i}" for i in range(300)]  # the same for all
    vectors = np.arange(300 * 16, dtype=np.float32).reshape(300, 16)
    cache = VectorCache(path, PRINT)
    for start in range(0, 300, 10):
        cache.write(texts[start : start + 10], vectors[start : start + 10], np.zeros(10, dtype=bool))
        back, _, missing = cache.read(texts[: start + 10])
        assert len(missing) == 0
        np.testing.assert_array_equal(back, vectors[: start + 10])
    return worker


@pytest.mark.filterwarnings("error")
def test_processes_share_the_file(path):
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert sorted(pool.map(write_share, [path] * 3, range(3))) == [0, 1, 2]
    assert rows(path) == 300


def test_nothing_is_pickled(tiny_bert, path):
    BertEmbedder(tiny_bert, cache=path).transform(TEXTS)
    with sqlite3.connect(path) as connection:
        kept = connection.execute(
            "SELECT length(key), length(vector), truncated, length(checksum) FROM vectors"
        ).fetchall()
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
    assert set(kept) == {(32, 32 * 4, 0, 8)}


def test_setting_up_waits_for_a_reader(path):
    from skflow.embedders import _sqlite_file

    VectorCache(path, PRINT).write(["a"], np.ones((1, 4), dtype=np.float32), np.zeros(1, dtype=bool))
    change(path, "PRAGMA journal_mode = DELETE")
    reader = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM vectors").fetchone()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        with pytest.raises(sqlite3.OperationalError, match="locked"):  # SQLite itself does not wait
            connection.execute("PRAGMA journal_mode = WAL")
        timer = threading.Timer(0.3, reader.close)
        timer.start()
        _sqlite_file._let_readers_in(connection)
        timer.join()
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def open_together(directory, barrier, worker):
    for number in range(30):
        barrier.wait()
        cache = VectorCache(directory / f"{number}.sqlite", PRINT)
        cache.write([str(worker)], np.full((1, 4), worker, dtype=np.float32), np.zeros(1, dtype=bool))


@pytest.mark.filterwarnings("error")
def test_processes_set_up_one_new_file(tmp_path):
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(4, mp_context=context) as pool:
        barrier = manager.Barrier(4)
        for done in [pool.submit(open_together, tmp_path, barrier, worker) for worker in range(4)]:
            done.result()
    assert [rows(tmp_path / f"{number}.sqlite") for number in range(30)] == [4] * 30


def test_cache_that_is_not_where_the_embedder_is_unpickled(tiny_bert, tmp_path, monkeypatch):
    import joblib

    for place in ("here", "there"):
        (tmp_path / place).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    embedder = BertEmbedder(tiny_bert, cache="cache.sqlite")
    expected = embedder.fit_transform(TEXTS)
    assert embedder.cache == "cache.sqlite"  # stays relative
    joblib.dump(Pipeline([("embed", embedder), ("scale", FunctionTransformer())]), tmp_path / "p.joblib")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        joblib.load(tmp_path / "p.joblib")
    monkeypatch.chdir(tmp_path / "there")
    with pytest.warns(UserWarning, match=r"'cache\.sqlite' is not there .*works without a cache") as seen:
        pipeline = joblib.load(tmp_path / "p.joblib")
    assert [warning.filename for warning in seen] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(pipeline.transform(TEXTS), expected)
    assert not os.listdir()
    content = pickle.dumps(pipeline)
    # Whoever fits here, asks for a cache here.
    pipeline.fit_transform(TEXTS)
    assert rows(tmp_path / "there" / "cache.sqlite") == len(set(TEXTS))
    monkeypatch.chdir(tmp_path / "here")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(content).transform(TEXTS)
        # As the workers of a search get it.
        monkeypatch.chdir(tmp_path)
        pickle.loads(pickle.dumps(BertEmbedder(tiny_bert, cache="cache.sqlite"))).transform(TEXTS)
    assert rows(tmp_path / "cache.sqlite") == len(set(TEXTS))


def interrupted(function, after):
    """Return a function that does what `function` does, and is interrupted the time after so many."""
    times = iter(range(after))

    @functools.wraps(function)
    def work(*args, **kwargs):
        if next(times, None) is None:
            raise KeyboardInterrupt
        return function(*args, **kwargs)

    return work


def test_interrupted_work_is_kept(tiny_bert, path, n_embedded, monkeypatch):
    import transformers

    from skflow.embedders import _encoder

    monkeypatch.setattr(_encoder, "SECONDS_PER_WINDOW", 0)
    texts = [f"the {a} {b}" for a in ("cat", "dog", "man") for b in ("sat", "ran", "is", "was")]
    expected = BertEmbedder(tiny_bert).transform(texts)
    embedder = BertEmbedder(tiny_bert, cache=path, batch_size=1).fit(texts)
    # A batch has 16 tokens on a CPU: three texts of five.
    with monkeypatch.context() as patch:
        patch.setattr(transformers.BertModel, "forward", interrupted(transformers.BertModel.forward, 2))
        with pytest.raises(KeyboardInterrupt):
            embedder.transform(texts)
    assert rows(path) == 6
    n_embedded.clear()
    np.testing.assert_allclose(embedder.transform(texts), expected, rtol=0, atol=1e-6)
    assert n_embedded == [6]


def test_interrupted_work_of_a_checkpoint_of_its_own_kind_is_kept(tmp_path, path, n_embedded, monkeypatch):
    from sentence_transformers import SentenceTransformer

    try:
        from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    except ImportError:  # before 5.4
        from sentence_transformers.models import StaticEmbedding

    from skflow.embedders import _encoder

    monkeypatch.setattr(_encoder, "SECONDS_PER_WINDOW", 0)
    model = SentenceTransformer(modules=[StaticEmbedding(wordpiece(BERT_TOKENS), embedding_dim=16)])
    model.save(str(tmp_path / "static"))
    texts = [f"the {a} {b}" for a in ("cat", "dog", "man") for b in ("sat", "ran", "is", "was")]
    embedder = BertEmbedder(tmp_path / "static", cache=path, batch_size=5).fit(texts)
    with monkeypatch.context() as patch:
        patch.setattr(SentenceTransformer, "encode", interrupted(SentenceTransformer.encode, 3))
        with pytest.raises(KeyboardInterrupt):
            embedder.transform(texts)
    assert rows(path) == 5 + 1 + 1  # after the first five, the time that is left is for one
    n_embedded.clear()
    np.testing.assert_allclose(embedder.transform(texts), model.encode(texts), rtol=0, atol=1e-6)
    assert n_embedded == [5]


def run_search(encoder, home):
    from skflow.datasets import load_sts
    from skflow.similarity import CosineSimilarityRegressor

    data = load_sts("stsb", data_home=home)
    grid = {"encoder__calibrate": ["passthrough", StandardScaler()]}
    GridSearchCV(CosineSimilarityRegressor(encoder), grid, cv=3).fit(data.pairs, data.score)


def run_evaluation(encoder, home):
    from skflow.evaluation import evaluate_sts

    evaluate_sts(encoder, ["stsb", "sts12"], data_home=home, n_resamples=0)


def run_comparison(encoder, home):
    from skflow.evaluation import compare_calibrators

    calibrators = {"raw": "passthrough", "scaled": StandardScaler()}
    compare_calibrators(encoder[0], calibrators, ["stsb"], data_home=home, n_resamples=0, verbose=0)


@pytest.mark.parametrize("work", [run_search, run_evaluation, run_comparison])
def test_interrupted_work_goes_on_where_it_stopped(tiny, tmp_path, path, n_embedded, monkeypatch, work):
    import transformers

    from skflow.embedders import _encoder

    monkeypatch.setattr(_encoder, "SECONDS_PER_WINDOW", 0)
    home = write_senteval(tmp_path / "data")
    embedder = BertEmbedder(tiny("bert"), batch_size=4, cache=path)
    encoder = Pipeline([("embed", embedder), ("calibrate", "passthrough")])
    n_kept = [0]
    for after in (5, 9):
        with monkeypatch.context() as patch:
            forward = interrupted(transformers.BertModel.forward, after)
            patch.setattr(transformers.BertModel, "forward", forward)
            with pytest.raises(KeyboardInterrupt):
                work(encoder, home)
        n_kept.append(rows(path))
    assert n_kept[0] < n_kept[1] < n_kept[2]
    n_embedded.clear()
    work(encoder, home)
    assert sum(n_embedded) == rows(path) - n_kept[2] > 0  # each of what was missing once
    n_embedded.clear()
    work(encoder, home)
    assert n_embedded == []


@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_search_runs_the_encoder_once_per_sentence(tiny_bert, path, n_embedded, n_jobs):
    from skflow.calibrators import NATSVCalibrator, StandardNormalizationCalibrator, WhiteningCalibrator
    from skflow.similarity import CosineSimilarityRegressor

    random = np.random.RandomState(0)
    sentences = [
        f"the {a} {b} on the {c}" for a in ("cat", "dog", "man") for b in ("sat", "ran") for c in "abcdefgh"
    ]
    pairs = np.array(sentences, dtype=object)[random.randint(len(sentences), size=(60, 2))]
    gold = random.rand(60)
    calibrators = [
        "passthrough",
        StandardScaler(),
        FunctionTransformer(),
        StandardNormalizationCalibrator(),
        NATSVCalibrator(n_components=1),
        NATSVCalibrator(n_components=2),
        WhiteningCalibrator(),
        WhiteningCalibrator(n_components=8),
    ]

    def search(cache):
        encoder = Pipeline([("embed", BertEmbedder(tiny_bert, cache=cache)), ("calibrate", "passthrough")])
        regressor = CosineSimilarityRegressor(encoder)
        grid = {"encoder__calibrate": calibrators}
        return (
            GridSearchCV(regressor, grid, cv=5, n_jobs=n_jobs).fit(pairs, gold).cv_results_["mean_test_score"]
        )

    scores = search(path)
    if n_jobs is None:
        assert sum(n_embedded) == len(set(pairs.ravel())) == rows(path)
    n_embedded.clear()
    np.testing.assert_allclose(search(path), scores)
    assert n_embedded == []
    if n_jobs is None:
        np.testing.assert_allclose(search(None), scores, atol=1e-3)
        assert sum(n_embedded) > 20 * rows(path)
