"""Where models come from: directories, the Hugging Face cache and the hub."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from skflow.embedders import BertEmbedder
from skflow.embedders._source import digest_files, model_files

TEXTS = ["the cat sat", "a dog"]
COMMIT = "0123456789abcdef0123456789abcdef01234567"

# No name is looked up and no connection made but to the hub that is given, if any.
GUARD = """
import os, socket, sys, warnings
allowed = os.environ.get("ALLOWED_PORT")
original = socket.socket.connect
def connect(self, address):
    if self.family in (socket.AF_INET, socket.AF_INET6) and str(address[1]) != allowed:
        raise AssertionError(f"network access to {address}")
    return original(self, address)
socket.socket.connect = connect
look_up = socket.getaddrinfo
def getaddrinfo(host, *args, **kwargs):
    assert allowed and host in ("127.0.0.1", "localhost"), f"look-up of {host}"
    return look_up(host, *args, **kwargs)
socket.getaddrinfo = getaddrinfo
import numpy as np
from skflow.embedders import BertEmbedder
"""


def run(program, *arguments, home, endpoint=None):
    """Run a program in a process that may use the network, as far as it is let."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "TRANSFORMERS_"))}
    environment.update(HF_HOME=str(home), HF_HUB_DISABLE_TELEMETRY="1", HF_HUB_DISABLE_XET="1")
    if endpoint is not None:
        environment.update(HF_ENDPOINT=endpoint, ALLOWED_PORT=endpoint.rsplit(":", 1)[1])
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", GUARD + program, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def test_missing_directory(tmp_path):
    for name in (tmp_path / "absent", "./absent/model", "a/b/c"):
        with pytest.raises(
            FileNotFoundError, match=r"model_name_or_path=.*no directory .*no name of a model"
        ):
            BertEmbedder(name).fit(TEXTS)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"neither config\.json nor modules\.json"):
        BertEmbedder(tmp_path / "empty").fit(TEXTS)
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(FileNotFoundError, match="no directory"):
        BertEmbedder(tmp_path / "file").transform(TEXTS)


@pytest.mark.parametrize("name", ["someone/absent", "absent"])
def test_missing_model_offline_says_what_and_where(name, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    for parameters, why in (
        ({}, "HF_HUB_OFFLINE is set"),
        ({"local_files_only": True}, "local_files_only=True"),
    ):
        with pytest.raises(FileNotFoundError) as caught:
            BertEmbedder(name, revision="v2", **parameters).fit(TEXTS)
        message = str(caught.value)
        for part in (repr(name), str(Path(name).absolute()), "'v2'", str(constants.HF_HUB_CACHE), why):
            assert part in message


class Hub:
    """The few addresses of a model hub that a download needs, over one directory."""

    def __init__(self, directory):
        self.requests = []
        files = {
            p.relative_to(directory).as_posix(): p.read_bytes() for p in directory.rglob("*") if p.is_file()
        }
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self):
                self.respond()

            def do_GET(self):
                self.respond()

            def respond(self):
                path = self.path.split("?")[0]
                hub.requests.append((self.command, path, self.headers.get("Authorization")))
                headers, body, status = {"X-Repo-Commit": COMMIT}, b"", 404
                if path.startswith("/api/models/org/tiny"):
                    siblings = [{"rfilename": name} for name in files]
                    body = json.dumps(
                        {"id": "org/tiny", "sha": COMMIT, "siblings": siblings, "tags": []}
                    ).encode()
                    headers["Content-Type"], status = "application/json", 200
                    if "/tree/" in path:
                        entries = [
                            {"type": "file", "path": n, "size": len(c), "oid": "0"} for n, c in files.items()
                        ]
                        body = json.dumps(entries).encode()
                elif path.startswith("/org/tiny/resolve/"):
                    name = path.split("/", 5)[5]
                    if name in files:
                        body, status = files[name], 200
                        headers["ETag"] = f'"{sha1(body).hexdigest()}"'
                    else:
                        headers["X-Error-Code"] = "EntryNotFound"
                else:
                    headers["X-Error-Code"] = "RepoNotFound"
                self.send_response(status)
                for key, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(key, value)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def hub(tiny_bert, tmp_path):
    import shutil

    source = tmp_path / "source"
    shutil.copytree(tiny_bert, source)
    for other in ("pytorch_model.bin", "tf_model.h5", "README.md"):
        (source / other).write_bytes(b"not needed")
    hub = Hub(source)
    yield hub
    hub.close()


def test_local_files_need_no_network(tiny_bert, declare, tmp_path):
    program = (
        "for path in sys.argv[1:]: print(BertEmbedder(path).fit_transform(['the cat sat', 'a dog']).sum())"
    )
    done = run(program, tiny_bert, declare(), home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # and quiet


def test_download_then_no_more_network(hub, tiny_bert, tmp_path):
    program = """
embedder = BertEmbedder("org/tiny", layers=1, token="hf_secret")
np.save(sys.argv[1], embedder.fit_transform(["the cat sat", "a dog"]))
try:
    # Another revision would be another download.
    embedder.set_params(revision="v2", local_files_only=True).fit(["a"])
except FileNotFoundError as error:
    print(error)
"""
    out, home = tmp_path / "vectors.npy", tmp_path / "home"
    expected = BertEmbedder(tiny_bert, layers=1).fit_transform(TEXTS)

    done = run(program, out, home=home, endpoint=hub.endpoint)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "no files at revision 'v2'" in done.stdout
    np.testing.assert_array_equal(np.load(out), expected)
    assert {token for _, _, token in hub.requests} == {"Bearer hf_secret"}
    assert not [path for _, path, _ in hub.requests if "v2" in path]
    fetched = {
        path.split("/")[-1] for command, path, _ in hub.requests if command == "GET" and "resolve" in path
    }
    assert {"model.safetensors", "config.json", "tokenizer.json"} <= fetched
    assert not {"pytorch_model.bin", "tf_model.h5", "README.md"} & fetched

    out.unlink()
    done = run(program, out, home=home)  # which fails on any use of the network
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(out), expected)


def test_model_that_the_hub_does_not_know(hub, tmp_path):
    done = run("BertEmbedder('org/other').fit(['a'])", home=tmp_path / "home", endpoint=hub.endpoint)
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()
    assert any(line.startswith("FileNotFoundError: model_name_or_path='org/other'") for line in last)
    assert hub.endpoint in done.stderr


def with_code(directory, code="class C: pass"):
    """Put Python code beside a model; it leaves a file when it runs."""
    (directory / "own.py").write_text(
        f"open({str(directory.parent / 'ran')!r}, 'w').close()\n{code}\n", encoding="utf-8"
    )


CLASSES = """
from transformers import BertConfig, BertModel
class C(BertConfig):
    model_type = 'own'
class M(BertModel):
    config_class = C
"""


@pytest.mark.parametrize("layers", ["auto", -1])
@pytest.mark.parametrize("is_declared", [False, True])
def test_remote_code_does_not_run_unless_trusted(
    tiny_bert, declare, tmp_path, set_json, monkeypatch, is_declared, layers
):
    import io
    import shutil

    path = tmp_path / "model"
    shutil.copytree(declare() if is_declared else tiny_bert, path)
    transformer = next(file.parent for file in path.rglob("model.safetensors"))
    set_json(
        transformer / "config.json", model_type="own", auto_map={"AutoConfig": "own.C", "AutoModel": "own.M"}
    )
    with_code(path, CLASSES)
    if transformer != path:
        shutil.copy(path / "own.py", transformer)
    # Nobody is asked, whatever the answer would be.
    answers = io.StringIO("y\n" * 9)
    monkeypatch.setattr("sys.stdin", answers)
    with pytest.raises(ValueError, match="trust_remote_code"):
        BertEmbedder(path, layers=layers).fit(TEXTS)
    assert answers.tell() == 0
    assert not (tmp_path / "ran").exists()
    if not is_declared:
        assert BertEmbedder(path, trust_remote_code=True).fit_transform(TEXTS).shape == (2, 32)
        assert (tmp_path / "ran").exists()


def test_remote_tokenizer_does_not_run_unless_trusted(tiny_bert, tmp_path, set_json, monkeypatch):
    import io
    import shutil

    path = tmp_path / "model"
    shutil.copytree(tiny_bert, path)
    set_json(
        path / "tokenizer_config.json", tokenizer_class="C", auto_map={"AutoTokenizer": ["own.C", "own.C"]}
    )
    with_code(path)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 9))
    with contextlib.suppress(ValueError):  # where transformers has a class of its own, it takes that
        BertEmbedder(path).fit(TEXTS)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("place", ["modules", "router", "dense"])
def test_foreign_modules_do_not_run_unless_trusted(declare, tmp_path, place):
    import shutil

    path = tmp_path / "model"
    shutil.copytree(declare(behind=["dense"]), path)
    with_code(path, "import torch\nC = torch.nn.Tanh")
    file = path / "modules.json"
    modules = json.loads(file.read_text(encoding="utf-8"))
    if place == "modules":
        modules[2]["type"] = "own.C"
        content = modules
    elif place == "router":
        file, content = path / "router_config.json", {"types": {"a": "own.C"}}
    else:
        file = path / modules[2]["path"] / "config.json"
        content = json.loads(file.read_text(encoding="utf-8"))
        content["activation_function"] = "own.C"
    file.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=r"asks for the class 'own\.C'.*trust_remote_code=True"):
        BertEmbedder(path).fit(TEXTS)
    assert not (tmp_path / "ran").exists()


TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt")


@pytest.mark.parametrize("layers", ["auto", -1])
@pytest.mark.parametrize("kind", ["minilm", "bert", "gpt2", "declared"])
def test_no_tokenizer_files(request, tiny, declare, tmp_path, kind, layers):
    import shutil

    source = {"minilm": lambda: request.getfixturevalue("minilm"), "declared": declare}.get(
        kind, lambda: tiny(kind)
    )()
    path = tmp_path / "model"
    shutil.copytree(source, path)
    for file in list(path.rglob("*")):
        if file.name in TOKENIZER_FILES:
            file.unlink()
    for method in ("fit", "transform"):
        with pytest.raises(FileNotFoundError, match="has no tokenizer files") as caught:
            getattr(BertEmbedder(path, layers=layers), method)(TEXTS)
        assert str(path) in str(caught.value)


def test_tokenizer_of_vocabulary_alone(minilm, tmp_path):
    import shutil

    path = tmp_path / "model"
    shutil.copytree(minilm, path)
    words = json.loads((path / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    (path / "vocab.txt").write_text("\n".join(sorted(words, key=words.get)), encoding="utf-8")
    (path / "tokenizer.json").unlink()
    np.testing.assert_allclose(
        BertEmbedder(path, layers=-1).fit_transform(TEXTS),
        BertEmbedder(minilm, layers=-1).fit_transform(TEXTS),
        atol=1e-6,
    )


@pytest.mark.parametrize("layers", ["auto", -1])
def test_weights_that_are_not_finite(tiny_bert, tmp_path, layers):
    import shutil

    from safetensors.numpy import load_file, save_file

    path = tmp_path / "model"
    shutil.copytree(tiny_bert, path)
    weights = {
        key: np.full_like(value, np.nan) for key, value in load_file(path / "model.safetensors").items()
    }
    save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    cache = tmp_path / "cache.sqlite"
    for method in ("fit", "transform"):
        with pytest.raises(ValueError, match="not finite for the text") as caught:
            getattr(BertEmbedder(path, layers=layers, cache=cache), method)(TEXTS)
        assert repr(str(path)) in str(caught.value)


@pytest.mark.parametrize("layers", [-1, "first_last"])
def test_encoder_of_an_encoder_decoder_alone(tiny, tmp_path, layers, recwarn):
    import shutil

    import transformers

    path = tmp_path / "model"
    shutil.copytree(tiny("t5"), path)
    model = transformers.T5EncoderModel.from_pretrained(path)
    (path / "model.safetensors").unlink()
    model.save_pretrained(path)
    # The whole model is a tokenizer and an encoder, too.
    expected = BertEmbedder(tiny("t5"), layers=layers).fit_transform(TEXTS)
    recwarn.clear()
    np.testing.assert_allclose(BertEmbedder(path, layers=layers).fit_transform(TEXTS), expected, atol=1e-6)
    assert not recwarn.list


def test_missing_weights_are_reported(tiny_bert, tmp_path):
    import shutil

    from safetensors.numpy import load_file, save_file

    path = tmp_path / "model"
    shutil.copytree(tiny_bert, path)
    weights = load_file(path / "model.safetensors")
    lost = next(key for key in weights if "layer.2" in key)
    del weights[lost]
    save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    with pytest.warns(UserWarning, match="lacks 1 weights of the encoder"):
        BertEmbedder(path).fit(TEXTS)


def test_digest_depends_on_content_and_names_alone(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    for directory in (a, b):
        (directory / "sub").mkdir(parents=True)
        (directory / "config.json").write_text("{}", encoding="utf-8")
        (directory / "sub" / "weights.bin").write_bytes(b"123")
    (b / "README.md").write_text("for human eyes", encoding="utf-8")
    (b / "checkpoint-5").mkdir()
    (b / "checkpoint-5" / "optimizer.pt").write_bytes(b"1")
    assert digest_files(model_files(a)) == digest_files(model_files(b))
    (b / "sub" / "weights.bin").rename(b / "sub" / "other.bin")
    assert digest_files(model_files(a)) != digest_files(model_files(b))
