"""BertEmbedder as a scikit-learn estimator."""

import io
import pickle
import pickletools
import subprocess
import sys
import threading

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks as checks
from sklearn.utils import get_tags
from sklearn.utils._testing import ignore_warnings

from skflow.embedders import BertEmbedder

from .._encoders import SENTENCES

TEXTS = [text for text in SENTENCES if len(text) < 60]


# The checks of scikit-learn that feed an estimator numbers do not apply; these do.
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
        checks.check_parameters_default_constructible,
        checks.check_mixin_order,
        checks.check_do_not_raise_errors_in_init_or_set_params,
        checks.check_param_validation,
        checks.check_fit_score_takes_y,
    ],
    ids=lambda check: check.__name__,
)
def test_general_api_checks(tiny_bert, check):
    embedder = BertEmbedder(tiny_bert)
    if check is checks.check_parameters_default_constructible:
        check("BertEmbedder", BertEmbedder())
    elif check is checks.check_fit_score_takes_y:
        embedder.fit(TEXTS, [0] * len(TEXTS))
        embedder.fit_transform(TEXTS, [0] * len(TEXTS))
    else:
        with ignore_warnings(category=FutureWarning):
            check("BertEmbedder", embedder)


def test_tags(tiny_bert):
    tags = get_tags(BertEmbedder(tiny_bert))
    assert tags.input_tags.string
    assert tags.input_tags.one_d_array
    assert not tags.input_tags.two_d_array
    assert not tags.requires_fit
    assert get_tags(BertEmbedder(tiny_bert, sif=1e-3)).requires_fit


def test_fit_returns_self_and_keeps_parameters(tiny_bert):
    embedder = BertEmbedder(tiny_bert, layers=[1, 2])
    before = dict(embedder.get_params())
    assert embedder.fit(TEXTS) is embedder
    assert embedder.get_params() == before
    given = list(TEXTS)
    embedder.transform(given)
    assert given == TEXTS


def test_stateless_unless_sif(tiny_bert):
    embedder = BertEmbedder(tiny_bert)
    np.testing.assert_array_equal(embedder.transform(TEXTS), clone(embedder).fit_transform(TEXTS))
    assert len(BertEmbedder(tiny_bert).get_feature_names_out()) == 32
    with pytest.raises(NotFittedError):
        BertEmbedder(tiny_bert, sif=1e-3).get_feature_names_out()


def test_refit_forgets(tiny_bert):
    embedder = BertEmbedder(tiny_bert, sif=1e-3, pooling="mean")
    first = embedder.fit(["the cat"]).token_frequencies_
    embedder.fit(["a dog ran"])
    assert not np.array_equal(first, embedder.token_frequencies_)
    np.testing.assert_array_equal(embedder.fit(["the cat"]).token_frequencies_, first)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"layers": "second"}, "layers"),
        ({"layers": []}, "layers"),
        ({"layers": [1.5]}, "layers"),
        ({"layers": True}, "layers"),
        ({"pooling": "median"}, "pooling"),
        ({"max_length": 0}, "max_length"),
        ({"batch_size": 0}, "batch_size"),
        ({"dtype": "float64"}, "dtype"),
        ({"device": "toaster"}, "device"),
        ({"device": []}, "device"),
        ({"device": ["cpu", 0]}, "device"),
        ({"device": ["cpu", "foo"]}, "device='foo' is not a device"),
        ({"device": "meta"}, "device='meta' computes nothing"),
        ({"device": ["cpu", "meta"]}, "device='meta' computes nothing"),
        ({"sif": 0.0}, "sif"),
        ({"sif": 1e-3, "pooling": "max"}, "sif"),
        ({"exclude_special_tokens": True, "pooling": "cls"}, "exclude_special_tokens"),
        ({"cache": 3}, "cache"),
        ({"cache": ""}, "cache='' is not a file; expected the path"),
        ({"cache": ":memory:"}, "cache=':memory:' is not a file; expected the path"),
        ({"verbose": -1}, "verbose"),
    ],
)
def test_invalid_parameters_are_named(tiny_bert, parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        BertEmbedder(tiny_bert, **parameters).fit(TEXTS)
    with pytest.raises((ValueError, TypeError), match=message):
        BertEmbedder(tiny_bert, **parameters).transform(TEXTS)


@pytest.mark.parametrize("method", ["fit", "transform", "fit_transform"])
@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("one text", "X is one string"),
        ([], r"0 sample\(s\)"),
        (["a", None], r"X\[1\] is missing"),
        (["a", float("nan")], r"X\[1\] is missing"),
        (["a", b"b"], r"X\[1\] is of type bytes"),
        ([["a"]], r"X\[0\] is of type list"),
        ([1.0, 2.0], r"X\[0\] is of type float"),
    ],
)
def test_what_is_no_text(tiny_bert, method, X, message):
    with pytest.raises((ValueError, TypeError), match=message):
        getattr(BertEmbedder(tiny_bert), method)(X)


def test_unusual_text(tiny_bert):
    texts = ["", " ", "\t\n", "\x00\x07", "a\ud800b", "\udfff", "\U0001f600", "e\u0301", "\u202e", "ﬁ"]
    vectors = BertEmbedder(tiny_bert).fit_transform(texts)
    assert np.isfinite(vectors).all()
    only_special = BertEmbedder(tiny_bert, exclude_special_tokens=True, pooling="max")
    np.testing.assert_array_equal(only_special.fit_transform(["", " "]), np.zeros((2, 32)))


def test_text_without_tokens(tiny):
    # GPT-2 adds no special token: of an empty text nothing is left.
    embedder = BertEmbedder(tiny("gpt2"), layers=[0, 1])
    np.testing.assert_array_equal(embedder.fit_transform([""]), np.zeros((1, 32)))
    mixed = embedder.transform(["", "a dog", ""])
    np.testing.assert_array_equal(mixed[[0, 2]], 0)
    np.testing.assert_array_equal(mixed[1], embedder.transform(["a dog"])[0])


def test_distinct_texts_run_once(tiny_bert, n_embedded):
    embedder = BertEmbedder(tiny_bert)
    vectors = embedder.transform(["a dog", "the cat", "a dog"] * 10)
    assert n_embedded == [2]
    np.testing.assert_array_equal(vectors[0], vectors[2])
    np.testing.assert_array_equal(vectors[:2], vectors[-3:-1])


def test_windows_join(tiny_bert, monkeypatch):
    from skflow.embedders import _encoder

    texts = [f"the cat {'sat ' * (i % 7)} {i}" for i in range(50)]
    expected = BertEmbedder(tiny_bert).fit_transform(texts)
    monkeypatch.setattr(_encoder, "WINDOW", 8)
    np.testing.assert_allclose(BertEmbedder(tiny_bert).transform(texts), expected, rtol=0, atol=1e-5)


def test_pandas(tiny_bert):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": TEXTS, "n": range(len(TEXTS))}, index=list("abcdefgh")[: len(TEXTS)])
    expected = BertEmbedder(tiny_bert).fit_transform(TEXTS)
    embedder = BertEmbedder(tiny_bert).set_output(transform="pandas")
    for fitted in (embedder, embedder.fit(TEXTS)):
        out = fitted.transform(frame["text"])
        np.testing.assert_array_equal(out.to_numpy(), expected)
        # scikit-learn before 1.7 takes the index from a DataFrame alone
        assert list(fitted.transform(frame[["text"]]).index) == list(frame.index)
        assert list(out.columns[:2]) == ["bertembedder0", "bertembedder1"]
    frame = frame.reset_index(drop=True)
    for column in ("text", ["text"]):
        columns = ColumnTransformer([("t", BertEmbedder(tiny_bert), column), ("n", StandardScaler(), ["n"])])
        both = columns.set_output(transform="pandas").fit_transform(frame)
        np.testing.assert_allclose(both.iloc[:, :32].to_numpy(), expected)
        assert both.columns[0] == "t__bertembedder0"
    union = FeatureUnion(
        [("low", BertEmbedder(tiny_bert, layers=0)), ("high", BertEmbedder(tiny_bert, layers=4))]
    )
    assert union.set_output(transform="pandas").fit_transform(frame["text"]).shape == (len(TEXTS), 64)


def test_pickle_carries_names_not_weights(tiny_bert, tmp_path):
    embedder = BertEmbedder(tiny_bert, layers=[1, -1], pooling="mean", sif=1e-3)
    unfitted = pickle.dumps(embedder)
    vectors = embedder.fit_transform(TEXTS)
    content = pickle.dumps(embedder)
    assert len(content) < len(unfitted) + embedder.token_frequencies_.nbytes + 1000
    looked_up = [str(arg) for _, arg, _ in pickletools.genops(content) if isinstance(arg, str)]
    assert not [name for name in looked_up if name.split(".")[0] in ("torch", "transformers", "tokenizers")]
    assert vars(pickle.loads(unfitted)) == vars(clone(embedder))
    joblib.dump(make_pipeline(embedder, StandardScaler()).fit(TEXTS), tmp_path / "pipeline.joblib")
    np.save(tmp_path / "expected.npy", vectors)
    program = """
import sys, joblib, numpy as np
pipeline = joblib.load(sys.argv[1] + "/pipeline.joblib")
assert not {"torch", "transformers", "sentence_transformers"} & set(sys.modules)
vectors = pipeline[0].transform(sys.argv[2:])
np.testing.assert_array_equal(vectors, np.load(sys.argv[1] + "/expected.npy"))
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path), *TEXTS], check=True)


def test_clone_is_equal_and_unloaded(tiny_bert):
    from skflow.embedders._loading import loaded_models

    embedder = BertEmbedder(tiny_bert, layers=(0, 1), sif=0.1).fit(TEXTS)
    loaded_models.clear()
    copy = clone(embedder)
    assert copy.get_params() == embedder.get_params()
    assert not hasattr(copy, "token_frequencies_")
    assert not loaded_models._models
    assert not [value for value in vars(embedder).values() if type(value).__module__.startswith("torch")]


def test_models_are_shared_and_few(tiny, monkeypatch):
    from skflow.embedders import _encoder
    from skflow.embedders._loading import MAX_LOADED, loaded_models

    loads, original = [], _encoder.Encoder.__init__

    def load(self, directory, **options):
        loads.append(directory.name)
        original(self, directory, **options)

    monkeypatch.setattr(_encoder.Encoder, "__init__", load)
    embedder = BertEmbedder(tiny("bert"))
    for copy in (embedder, clone(embedder), pickle.loads(pickle.dumps(embedder))):
        copy.set_params(layers=1).transform(TEXTS)
    assert len(loads) == 1
    for name in ("electra", "distilbert", "bert"):
        BertEmbedder(tiny(name)).transform(TEXTS)
        assert len(loaded_models._models) <= MAX_LOADED
    assert len(loads) == 4


def test_changed_files_are_loaded_anew(tiny, tmp_path):
    import shutil

    path = tmp_path / "model"
    shutil.copytree(tiny("bert"), path)
    embedder = BertEmbedder(path, layers=0)
    before = embedder.fit_transform(TEXTS)
    shutil.copy(f"{tiny('electra')}/tokenizer.json", path)
    from .._encoders import make_encoder

    make_encoder("bert", path, seed=1)
    assert not np.allclose(embedder.transform(TEXTS), before)


def test_threads(tiny_bert):
    embedder = BertEmbedder(tiny_bert, max_length=32)
    expected = [embedder.fit_transform(TEXTS[i:] + TEXTS[:i]) for i in range(4)]
    results = {}

    def work(number):
        results[number] = [embedder.transform(TEXTS[i:] + TEXTS[:i]) for i in range(4)]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results.values():
        np.testing.assert_array_equal(result, expected)
    assert len(results) == 4


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib(tiny_bert, backend):
    embedder = BertEmbedder(tiny_bert)
    expected = embedder.fit_transform(TEXTS)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        results = joblib.Parallel()(joblib.delayed(embedder.transform)(TEXTS) for _ in range(2))
    np.testing.assert_allclose(results, [expected] * 2, atol=1e-6)


def test_in_searches_and_pipelines_with_memory(tiny_bert, tmp_path):
    X, y = [f"{a} {b}" for a in ("the cat", "a dog") for b in "abcdefgh"], [0] * 8 + [1] * 8
    pipeline = Pipeline(
        [("embed", BertEmbedder(tiny_bert, layers=0)), ("classify", LogisticRegression())],
        memory=str(tmp_path),
    )
    search = GridSearchCV(pipeline, {"embed__layers": [0, 1], "classify__C": [0.1, 1.0]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.9
    assert cross_val_score(pipeline, X, y, cv=2, n_jobs=2).mean() > 0.9


def test_token_in_a_pipeline_with_memory(tiny_bert, tmp_path):
    pipeline = Pipeline(
        [("embed", BertEmbedder(tiny_bert, token="hf_verysecret")), ("classify", LogisticRegression())],
        memory=str(tmp_path),
    )
    assert pipeline.fit(TEXTS[:2], [0, 1]).score(TEXTS[:2], [0, 1]) == 1.0
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"hf_very" in path.read_bytes()]
    # What the token is does not change a vector.
    embedders = [BertEmbedder(tiny_bert, token=token) for token in ("hf_a", "hf_b")]
    assert len({joblib.hash(embedder) for embedder in embedders}) == 1
    assert pickle._loads(pickle._dumps(embedders[0])).token is None


def test_frequencies_of_another_model(tiny, tiny_bert):
    embedder = BertEmbedder(tiny_bert, sif=1e-3).fit(TEXTS)
    expected = BertEmbedder(tiny("gpt2"), sif=1e-3).fit_transform(TEXTS)
    embedder.set_params(model_name_or_path=tiny("gpt2"))
    with pytest.raises(ValueError, match=r"token_frequencies_ .* fit again"):
        embedder.transform(TEXTS)
    np.testing.assert_array_equal(embedder.fit(TEXTS).transform(TEXTS), expected)


def test_several_devices_without_guard(tiny_bert, tmp_path):
    program = """
import sys
from skflow.embedders import BertEmbedder
BertEmbedder(sys.argv[1], device=["cpu", "cpu"]).transform(["a cat", "a dog"])
"""
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py", tiny_bert],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode != 0
    assert "worker processes of BertEmbedder died" in done.stderr
    assert "under if __name__ == '__main__':" in done.stderr


def test_several_devices(tiny_bert, tmp_path):
    texts = [f"the cat {i} sat" for i in range(40)]
    program = """
import sys, numpy as np
from skflow.embedders import BertEmbedder
if __name__ == "__main__":
    embedder = BertEmbedder(sys.argv[1], device=["cpu", "cpu"])
    np.save(sys.argv[2], embedder.fit_transform([f"the cat {i} sat" for i in range(40)]))
"""
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py", tiny_bert, tmp_path / "vectors.npy"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""  # such as semaphores that killed workers leave behind
    expected = BertEmbedder(tiny_bert).fit_transform(texts)
    np.testing.assert_allclose(np.load(tmp_path / "vectors.npy"), expected, rtol=0, atol=1e-5)


def test_missing_device_becomes_the_cpu(tiny_bert):
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has the device")
    with pytest.warns(UserWarning, match="device='cuda' is not available here; the cpu is used") as seen:
        vectors = BertEmbedder(tiny_bert, device="cuda").fit_transform(TEXTS)
    assert len(seen) == 1
    np.testing.assert_array_equal(vectors, BertEmbedder(tiny_bert).transform(TEXTS))


def test_device_that_torch_was_not_built_for(tiny_bert):
    with pytest.warns(UserWarning, match="device='hpu' is not available here; the cpu is used"):
        vectors = BertEmbedder(tiny_bert, device="hpu").transform(TEXTS)
    np.testing.assert_array_equal(vectors, BertEmbedder(tiny_bert).transform(TEXTS))


def test_quiet_about_a_default_prompt(declare):
    path = declare(prompts={"query": "find: "}, default_prompt_name="query")
    program = "import sys, skflow; skflow.BertEmbedder(sys.argv[1]).fit_transform(['a cat'])"
    done = subprocess.run(
        [sys.executable, "-c", program, path], check=True, capture_output=True, text=True, encoding="utf-8"
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_quiet_by_default_and_a_bar_on_request(tiny_bert, capfd):
    BertEmbedder(tiny_bert).fit_transform(TEXTS)
    assert capfd.readouterr() == ("", "")
    BertEmbedder(tiny_bert, verbose=1).transform(TEXTS)
    assert f"{len(set(TEXTS))}/{len(set(TEXTS))}" in capfd.readouterr().err


def test_import_is_light():
    program = "import sys, skflow.embedders; assert not {'torch', 'transformers', 'tqdm'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_token_never_leaks(tiny_bert):
    secret = "hf_verysecret"
    embedder = BertEmbedder(tiny_bert, token=secret)
    pipeline = make_pipeline(embedder, StandardScaler())
    for estimator in (embedder, clone(embedder), pipeline):
        stream = io.StringIO()
        print(estimator, repr(estimator), str(estimator.get_params()), estimator._repr_html_(), file=stream)
        assert secret not in stream.getvalue()
        assert secret.encode() not in pickle.dumps(estimator)
    assert clone(embedder).token == secret
    assert embedder.set_params(token="hf_other").token == "hf_other"
    assert "hf_other" not in repr(embedder)
    assert pickle.loads(pickle.dumps(embedder)).token is None
    assert pickle.loads(pickle.dumps(BertEmbedder(token=True))).token is True
    assert f"{embedder.token} {embedder.token!s}" == "*** ***"
    assert embedder._find().name  # a local directory needs no token


def test_model_in_memory_in_place_of_a_name(declare, tiny_bert):
    import transformers
    from sentence_transformers import SentenceTransformer

    for model in (SentenceTransformer(declare()), transformers.BertModel.from_pretrained(tiny_bert)):
        message = f"is a {type(model).__name__} in memory; expected the name or the directory"
        for method in ("fit", "transform"):
            with pytest.raises(TypeError, match=message):
                getattr(BertEmbedder(model), method)(["a cat"])


def test_no_state_carries_the_token(tiny_bert):
    import copy

    secret = "hf_verysecret"
    embedder = BertEmbedder(tiny_bert, token=secret).fit(TEXTS)
    assert embedder.__getstate__()["token"] is None
    assert BertEmbedder(token=True).__getstate__()["token"] is True
    pipeline = make_pipeline(embedder, StandardScaler())
    for estimator in (embedder, pipeline):
        for twin in (copy.copy(estimator), copy.deepcopy(estimator)):
            kept = twin if estimator is embedder else twin[0]
            assert (kept.token, repr(kept.token)) == (secret, "'***'")
            assert vars(kept) == vars(embedder)
            assert secret.encode() not in pickle.dumps(twin)
    twin = copy.deepcopy(embedder)
    twin.layers = [1]
    assert (type(twin), embedder.layers) == (BertEmbedder, "auto")
    assert copy.deepcopy([embedder, embedder])[0].token == secret


def test_skops_file_does_not_carry_the_token(tiny_bert):
    import zipfile

    io_ = pytest.importorskip("skops.io")
    embedder = BertEmbedder(tiny_bert, token="hf_verysecret").fit(TEXTS)
    for estimator in (embedder, make_pipeline(embedder, StandardScaler())):
        content = io_.dumps(estimator)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            assert not any(b"hf_verysecret" in archive.read(name) for name in archive.namelist())
        trusted = io_.get_untrusted_types(data=content)
        loaded = io_.loads(content, trusted=trusted)
        loaded = loaded if estimator is embedder else loaded[0]
        assert loaded.token is None
        np.testing.assert_array_equal(loaded.transform(TEXTS), embedder.transform(TEXTS))


def test_warnings_point_at_the_line_of_the_user(tiny_bert):
    embedder = BertEmbedder(tiny_bert, max_length=4)
    pipeline = make_pipeline(embedder, StandardScaler())
    for call in (
        embedder.fit_transform,
        pipeline.fit,
        clone(embedder).set_output(transform="pandas").transform,
    ):
        with pytest.warns(UserWarning, match="were truncated") as seen:
            call(["the cat sat on the mat", "a dog"])
        assert [warning.filename for warning in seen] == [__file__]


@pytest.mark.slow
def test_memory_stays_bounded(tiny_bert):
    # 300,000 short texts, and one of 10 MB: far less is added than tokenizing everything at once would take.
    program = """
import sys, warnings
from skflow.embedders import BertEmbedder
warnings.simplefilter("ignore")
def anonymous():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024
embedder = BertEmbedder(sys.argv[1], layers=0).fit(["a"])
before = anonymous()
embedder.transform(["the cat " * 1_250_000])
assert anonymous() - before < 60, anonymous() - before
texts = [f"cat {i}" for i in range(300_000)]
before = anonymous()
vectors = embedder.transform(texts)
assert anonymous() - before < vectors.nbytes / 2**20 + 150, anonymous() - before
"""
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")
    subprocess.run([sys.executable, "-c", program, tiny_bert], check=True)
