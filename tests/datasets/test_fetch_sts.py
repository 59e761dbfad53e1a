"""The download, against a local server that answers as the Hugging Face hub does.

The client runs in a fresh process: HF_HUB_OFFLINE, which the tests are run with, is read once, when
huggingface_hub is imported.
"""

import bz2
import gzip
import hashlib
import http.server
import io
import lzma
import os
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import pytest

import skflow

from .._sts_files import write_senteval

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPOSITORY = "princeton-nlp/datasets-for-simcse"
OTHER_FILES = [(tarfile.TarInfo(name), b"x") for name in ("MR/rt-polarity.pos", "STS/README", "SICK.txt")]


class Hub(http.server.BaseHTTPRequestHandler):
    """One data set repository with one file in each of its revisions."""

    def do_HEAD(self):
        self.answer(head=True)

    def do_GET(self):
        self.answer()

    def answer(self, head=False):
        self.server.requests.append((self.command, self.path))
        start, _, rest = self.path.partition("/resolve/")
        revision, _, name = rest.partition("/")
        data = self.server.revisions.get(revision)
        if start != f"/datasets/{REPOSITORY}" or data is None or name != "senteval.tar":
            self.send_response(404)
            self.send_header("X-Error-Code", "RevisionNotFound" if data is None else "EntryNotFound")
            self.send_header("X-Error-Message", f"Invalid rev id: {revision}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT[:-1] + str(sorted(self.server.revisions).index(revision)))
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Accept-Ranges", "bytes")
        self.end_headers()
        if not head:
            self.wfile.write(data)

    def log_message(self, *args):
        pass


@pytest.fixture
def hub():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        server.revisions, server.requests = {}, []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def run(code, hub, tmp_path, **environment):
    """Run Python code in a fresh process that takes the server for the hub; return what it printed."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))},
        "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_address[1]}",
        "HF_HOME": str(tmp_path / "hf"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "NO_PROXY": "*",
        "PYTHONPATH": str(Path(skflow.__file__).parents[1]),
        "SKFLOW_DATA": str(tmp_path / "home"),
        **environment,
    }
    code = "from skflow.datasets import fetch_sts, load_sts\n" + code
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    return done.stdout + done.stderr


def archive(directory, members=(), prefix="", leave_out=()):
    """Return a tar archive of a SentEval directory, with further members (TarInfo, bytes) before it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for info, data in members:
            info.size = len(data) if info.isreg() else 0
            tar.addfile(info, io.BytesIO(data))
        for path in sorted(directory.rglob("*")):
            name = path.relative_to(directory).as_posix()
            if path.is_file() and name not in leave_out:
                tar.add(path, prefix + name)
    return buffer.getvalue()


def files(directory):
    return {p.relative_to(directory).as_posix(): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


@pytest.fixture
def source(tmp_path):
    return write_senteval(tmp_path / "source")


def test_load_sts_downloads_what_it_needs_and_nothing_else(hub, source, tmp_path):
    hub.revisions["main"] = archive(source, OTHER_FILES)
    out = run("print(load_sts('sickr').pairs.shape, load_sts('sts16').pairs.shape)", hub, tmp_path)
    assert out == "(18, 2) (40, 2)\n"
    home = tmp_path / "home"
    written = files(home)
    assert written.pop("senteval/revision.txt") == b"main"
    assert written == {f"senteval/{name}": data for name, data in files(source).items()}
    assert [path for command, path in hub.requests if command == "GET"] == [
        f"/datasets/{REPOSITORY}/resolve/main/senteval.tar"
    ]
    # The second time nothing is asked for, even without the hub's cache.
    hub.requests.clear()
    assert run("load_sts('stsb'); fetch_sts()", hub, tmp_path, HF_HOME=str(tmp_path / "other")) == ""
    assert not hub.requests


def test_revision_and_force_download(hub, source, tmp_path):
    of_main = (source / "SICK/SICK_train.txt").read_bytes()
    of_v2 = (source / "SICK/SICK_trial.txt").read_bytes()
    hub.revisions["main"] = archive(source)
    (source / "SICK/SICK_train.txt").write_bytes(of_v2)
    hub.revisions["v2"] = archive(source)
    # Somebody's own file in the directory is left alone.
    mine = tmp_path / "home/senteval/MR/mine.txt"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"mine")
    code = """
from pathlib import Path
def fetch(**arguments):
    directory = Path(fetch_sts(**arguments))
    return directory, (directory / "SICK/SICK_train.txt")
directory, path = fetch()
print(directory)
for arguments in ({}, {"revision": "v2"}, {}, {"revision": "main"}, {"force_download": True}):
    print(b"train" in fetch(**arguments)[1].read_bytes(), end=" ")
path.write_bytes(b"spoilt")
fetch_sts()
print(path.read_bytes(), end=" ")
fetch_sts(force_download=True)
print(b"train" in path.read_bytes())
for revision in ("nowhere", 3):
    try:
        fetch_sts(revision=revision)
    except (OSError, TypeError) as error:
        print(type(error).__name__, error)
"""
    lines = run(code, hub, tmp_path).splitlines()
    home = tmp_path / "home/senteval"
    # None is content with what is there, a name is not.
    assert lines[:2] == [str(home), "True False False True True b'spoilt' True"]
    assert lines[2].startswith("OSError could not download senteval.tar (revision 'nowhere')")
    assert lines[3].startswith("TypeError revision must be")
    assert len(lines) == 4
    assert (home / "SICK/SICK_train.txt").read_bytes() == of_main
    assert mine.read_bytes() == b"mine"
    assert len(files(home)) == len(files(source)) + 2


# The hub's client tries an unreachable address several times.
@pytest.mark.parametrize("offline", ["HF_HUB_OFFLINE", pytest.param("HF_ENDPOINT", marks=pytest.mark.slow)])
def test_offline_it_says_how_to_place_the_files(hub, tmp_path, offline):
    value = {"HF_HUB_OFFLINE": "1", "HF_ENDPOINT": "http://127.0.0.1:9"}[offline]
    out = run("load_sts('stsb')", hub, tmp_path, **{offline: value})
    assert "OSError: could not download senteval.tar" in out
    assert f"https://huggingface.co/datasets/{REPOSITORY}/resolve/main/senteval.tar" in out
    assert "SKFLOW_DATA" in out
    assert not files(tmp_path / "home")


def link(name, target, kind):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info, b""


def hostile():
    needed = "STS/STS12-en-test/STS.input.MSRpar.txt"
    text = b"hostile\thostile\n"
    yield "parent", [(tarfile.TarInfo(f"../../{needed}"), text)], "unsafe path"
    yield "parent_inside", [(tarfile.TarInfo("STS/../../../evil.txt"), text)], "unsafe path"
    yield "absolute", [(tarfile.TarInfo(f"/{needed}"), text)], "unsafe path"
    yield "symlink", [link(needed, "/etc/hostname", tarfile.SYMTYPE)], "not a plain file"
    yield "hardlink", [link(needed, "../../secret.txt", tarfile.LNKTYPE)], "not a plain file"
    yield "device", [link(needed, "", tarfile.FIFOTYPE)], "not a plain file"
    yield "huge", [(tarfile.TarInfo(needed), bytes(33 * 2**20))], "refused, more than"


def damaged(source):
    name = "STS/STS14-en-test/STS.gs.images.txt"
    whole = archive(source)
    yield "truncated", whole[: len(whole) // 2], "is damaged"
    for name_of, compress in (("gzip", gzip.compress), ("bzip2", bz2.compress), ("xz", lzma.compress)):
        data = bytearray(compress(whole))
        data[len(data) // 2 : len(data) // 2 + 40] = bytes(40)
        # Where tarfile takes the damage for the end of the archive, files are missing.
        yield f"damaged_{name_of}", bytes(data), "the archive "
    yield "lacks_a_file", archive(source, leave_out=[name]), f"lacks {name}"
    yield "no_archive", b"<html>not an archive</html>", "is damaged"


def test_a_hostile_or_damaged_archive_is_refused_and_writes_nothing(hub, source, tmp_path):
    messages = {}
    for revision, members, message in hostile():
        hub.revisions[revision], messages[revision] = archive(source, members), message
    for revision, data, message in damaged(source):
        hub.revisions[revision], messages[revision] = data, message
    (tmp_path / "secret.txt").write_bytes(b"secret")
    before = files(tmp_path)
    code = f"""
import pathlib
for revision in {list(messages)}:
    try:
        fetch_sts(revision=revision)
    except ValueError as error:
        print(revision, error, *pathlib.Path({str(tmp_path / "home")!r}).iterdir())
"""
    lines = run(code, hub, tmp_path).splitlines()
    assert len(lines) == len(messages) == 13
    for line, (revision, message) in zip(lines, messages.items(), strict=True):
        assert line.startswith(revision)
        assert message in line
        assert str(tmp_path / "home") not in line  # no file, no scratch directory is left
    assert {name: data for name, data in files(tmp_path).items() if not name.startswith("hf/")} == before


def test_a_directory_of_any_name_and_a_link_in_place_of_one(hub, source, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    hub.revisions["dot"] = archive(source, prefix="./")
    hub.revisions["nested"] = archive(source, prefix="data/downstream/")
    hub.revisions["link"] = archive(source, [link("STS", str(outside), tarfile.SYMTYPE)])
    code = "for revision in ('dot', 'nested', 'link'): fetch_sts(revision, revision=revision)"
    assert run(code, hub, tmp_path) == ""
    for revision in hub.revisions:
        written = files(tmp_path / revision / "senteval")
        assert written.pop("revision.txt") == revision.encode()
        assert written == files(source)
    assert not any(outside.iterdir())
    assert not (tmp_path / "link/senteval/STS").is_symlink()
