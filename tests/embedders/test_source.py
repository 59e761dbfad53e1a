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
            FileNotFoundError, match=r"model_name_or_path=.*no directory .*not the name of a model"
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
def hub_of(tmp_path):
    """Return a function that starts a hub over a copy of a model, and files that need no download."""
    import shutil

    hubs = []

    def start(model, change=lambda source: None):
        source = tmp_path / "source"
        shutil.copytree(model, source)
        for other in ("pytorch_model.bin", "tf_model.h5", "README.md"):
            (source / other).write_bytes(b"not needed")
        change(source)
        hubs.append(Hub(source))
        return hubs[-1]

    yield start
    for hub in hubs:
        hub.close()


@pytest.fixture
def hub(hub_of, tiny_bert):
    return hub_of(tiny_bert)


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


@pytest.mark.parametrize("folder", ["checkpoint-1", "onnx", ".pooling"])
def test_any_folder_of_a_module_is_downloaded(hub_of, declare, tmp_path, folder):
    model = declare(pooling="cls")

    def change(source):
        move_module(source, 1, folder)
        (source / "openvino").mkdir()
        (source / "openvino" / "weights.bin").write_bytes(b"not needed")

    hub = hub_of(model, change)
    program = """
np.save(sys.argv[1], BertEmbedder("org/tiny").fit_transform(["the cat sat", "a dog"]))
"""
    done = run(program, tmp_path / "vectors.npy", home=tmp_path / "home", endpoint=hub.endpoint)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "vectors.npy"), BertEmbedder(model).fit_transform(TEXTS))
    assert not [path for _, path, _ in hub.requests if "openvino" in path]


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
def test_remote_modules_do_not_run_unless_trusted(declare, tmp_path, place):
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


def move_module(path, number, folder, *, link=False):
    """Give the folder of a module another name, or put it elsewhere behind a link."""
    file = path / "modules.json"
    modules = json.loads(file.read_text(encoding="utf-8"))
    old = path / modules[number]["path"]
    if link:
        elsewhere = path.parent / "elsewhere"
        old.rename(elsewhere)
        (path / folder).symlink_to(elsewhere, target_is_directory=True)
    else:
        (path / folder).parent.mkdir(parents=True, exist_ok=True)
        old.rename(path / folder)
    modules[number]["path"] = folder
    file.write_text(json.dumps(modules), encoding="utf-8")
    return path / folder


FOLDERS = [".pooling", "checkpoint-9", "onnx", "openvino", "coreml", "a/.b/onnx", "linked"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_folders_of_modules_are_in_the_fingerprint(declare, tmp_path, set_json, folder):
    import shutil

    path = tmp_path / "model"
    shutil.copytree(declare(), path)
    pooling = move_module(path, 1, folder, link=folder == "linked")
    embedder = BertEmbedder(path, cache=tmp_path / "cache.sqlite")
    mean = embedder.fit_transform(TEXTS)
    # Of sentence-transformers before 5.4, and since.
    content = json.loads((pooling / "config.json").read_text(encoding="utf-8"))
    if "pooling_mode" in content:
        set_json(pooling / "config.json", pooling_mode="cls")
    else:
        set_json(pooling / "config.json", pooling_mode_mean_tokens=False, pooling_mode_cls_token=True)
    expected = BertEmbedder(declare(pooling="cls")).fit_transform(TEXTS)
    assert not np.allclose(mean, expected, atol=1e-2)
    for each in (embedder, BertEmbedder(path)):  # from disk, and from memory
        np.testing.assert_allclose(each.fit_transform(TEXTS), expected, atol=1e-6)


def test_links_in_a_circle_end(tmp_path):
    (tmp_path / "onnx" / "deep").mkdir(parents=True)
    (tmp_path / "onnx" / "deep" / "up").symlink_to(tmp_path / "onnx", target_is_directory=True)
    (tmp_path / "onnx" / "deep" / "weights.bin").write_bytes(b"1")
    (tmp_path / "modules.json").write_text('[{"path": ""}, {"path": "onnx"}]', encoding="utf-8")
    (tmp_path / "data").symlink_to(tmp_path.parent, target_is_directory=True)  # which no module names
    assert [file[0] for file in model_files(tmp_path)] == ["modules.json", "onnx/deep/weights.bin"]


@pytest.mark.parametrize(
    "content", ["{}", '[1, {}, {"path": 3}]', "[" * 100_000, '[{"path": "/absent"}]', ""]
)
def test_modules_that_cannot_be_read_name_nothing(tmp_path, content):
    (tmp_path / "modules.json").write_text(content, encoding="utf-8")
    assert [file[0] for file in model_files(tmp_path)] == ["modules.json"]


@pytest.mark.parametrize("kind", ["linked", ".dense", "onnx"])
def test_remote_code_in_any_folder_of_a_module_does_not_run(declare, tmp_path, set_json, kind):
    import shutil

    path = tmp_path / "model"
    shutil.copytree(declare(behind=["dense"]), path)
    with_code(path, "import torch\nC = torch.nn.Tanh")
    dense = move_module(path, 2, kind, link=kind == "linked")
    set_json(dense / "config.json", activation_function="own.C")
    with pytest.raises(ValueError, match=r"asks for the class 'own\.C'.*trust_remote_code=True"):
        BertEmbedder(path).fit(TEXTS)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("place", ["", "0_Router"])
def test_remote_code_behind_a_linked_route_does_not_run(declare, tmp_path, place):
    import shutil

    path, route = tmp_path / "model", tmp_path / "route"
    shutil.copytree(declare(), path)
    shutil.copytree(declare(behind=["dense"]), route)
    with_code(path, "import torch\nC = torch.nn.Tanh")
    dense = next(route.glob("*Dense*"))
    content = json.loads((dense / "config.json").read_text(encoding="utf-8"))
    (dense / "config.json").write_text(
        json.dumps({**content, "activation_function": "own.C"}), encoding="utf-8"
    )
    router = path / place
    router.mkdir(exist_ok=True)
    (router / "query_0_Dense").symlink_to(dense, target_is_directory=True)
    own = "sentence_transformers.models."
    types = {"query_0_Dense": f"{own}Dense"}
    settings = {"types": types, "structure": {"query": [*types]}, "parameters": {}}
    (router / "router_config.json").write_text(json.dumps(settings), encoding="utf-8")
    modules = [{"idx": 0, "name": "0", "path": place, "type": f"{own}Router"}]
    (path / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    inside = f"{place}/query_0_Dense/config.json".lstrip("/")
    assert inside in [file[0] for file in model_files(path)]
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
    with pytest.raises(ValueError, match="lacks 1 weights of the encoder"):
        BertEmbedder(path).fit(TEXTS)
    # Layer 2 is the input of the block that lacks one.
    expected = BertEmbedder(tiny_bert, layers=[0, 2]).fit_transform(TEXTS)
    np.testing.assert_array_equal(BertEmbedder(path, layers=[0, 2]).fit_transform(TEXTS), expected)


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
