"""Where the files of a model are, and what they contain."""

import contextlib
import functools
import hashlib
import os
from pathlib import Path

# Files of other frameworks and for human eyes: they do not change a vector, and are not downloaded.
_OTHER_SUFFIXES = (".h5", ".msgpack", ".ot", ".onnx", ".onnx_data", ".tflite", ".gguf", ".mlmodel", ".md")
_OTHER_FOLDERS = ("onnx", "openvino", "coreml")
_TORCH_WEIGHTS = (".bin", ".pt", ".pth", ".ckpt")


def find_model(name, *, revision=None, token=None, local_files_only=False):
    """Return the local directory that holds the files of a model, downloading them if need be.

    A directory is taken as it is, and files that are in the Hugging Face cache already are used without
    asking the network.

    Parameters
    ----------
    name : str or path-like
        Directory, or name of a model on the Hugging Face hub.
    revision : str or None, default=None
        Branch, tag or commit on the hub.
    token : str, bool or None, default=None
        Access token for the hub.
    local_files_only : bool, default=False
        Whether to leave the network alone.

    Returns
    -------
    directory : pathlib.Path
        The directory.

    Raises
    ------
    FileNotFoundError
        If there is no such model. The message says what was looked for, and where.
    """
    path = Path(os.path.expanduser(name))
    if path.is_dir():
        if not _is_model(path):
            raise FileNotFoundError(
                f"model_name_or_path={str(name)!r} is a directory without a model: it has neither "
                "config.json nor modules.json."
            )
        return path
    looked_for = f"model_name_or_path={str(name)!r}: no directory {path.absolute()}"
    if path.is_absolute() or path.exists() or not _is_repository_name(str(name)):
        raise FileNotFoundError(f"{looked_for}, and it is no name of a model on the Hugging Face hub.")

    from huggingface_hub import constants

    online = not (local_files_only or constants.HF_HUB_OFFLINE)
    for repository in _repositories(str(name)):
        directory = _cached(repository, revision, online=online)
        if directory is not None:
            return directory
    at_revision = "" if revision is None else f" at revision {revision!r}"
    looked_for += f", no files{at_revision} in the Hugging Face cache {constants.HF_HUB_CACHE}"
    if not online:
        why = "local_files_only=True" if local_files_only else "HF_HUB_OFFLINE is set"
        raise FileNotFoundError(f"{looked_for}, and the hub was not asked since {why}.")
    reasons = []
    for repository in _repositories(str(name)):
        try:
            return _download(repository, revision, token)
        except Exception as error:  # of huggingface_hub, its HTTP client, or the file system
            reasons.append(f"{repository}: {error}")
            cause = error
    raise FileNotFoundError(
        f"{looked_for}, and {constants.ENDPOINT} did not give them ({'; '.join(reasons)})."
    ) from cause


def _is_repository_name(name):
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True


def _is_model(directory):
    return (directory / "config.json").is_file() or (directory / "modules.json").is_file()


def _repositories(name):
    # sentence-transformers' own models go by their bare names, too.
    return [name] if "/" in name else [name, f"sentence-transformers/{name}"]


def _cached(repository, revision, *, online):
    """Directory of a snapshot in the Hugging Face cache, or None where files are missing.

    Other programs may have fetched just a few files of a model. Without modules.json, a sentence-transformers
    checkpoint would pass for a plain encoder, so that its absence must be known for sure where the hub can be
    asked.
    """
    from huggingface_hub import try_to_load_from_cache

    # A path; None where nothing is known; a marker where the hub is known to lack the file.
    modules, config = (
        try_to_load_from_cache(repository, name, revision=revision)
        for name in ("modules.json", "config.json")
    )
    found = next((path for path in (modules, config) if isinstance(path, str)), None)
    if found is None or (modules is None and online):
        return None
    directory = Path(found).parent
    weights = (".safetensors", *_TORCH_WEIGHTS)
    return directory if any(path.suffix in weights for path in directory.rglob("*")) else None


def _download(repository, revision, token):
    from huggingface_hub import HfApi, hf_hub_download, snapshot_download
    from huggingface_hub.errors import EntryNotFoundError

    info = HfApi().model_info(repository, revision=revision, token=token)
    files = [sibling.rfilename for sibling in info.siblings if _matters(Path(sibling.rfilename))]
    if any(file.endswith(".safetensors") for file in files):
        files = [file for file in files if not file.endswith(_TORCH_WEIGHTS)]
    if "modules.json" not in files:
        with contextlib.suppress(EntryNotFoundError):  # which the cache then remembers
            hf_hub_download(repository, "modules.json", revision=revision, token=token)
    return Path(snapshot_download(repository, revision=revision, token=token, allow_patterns=files))


def _matters(path):
    return not (
        path.suffix in _OTHER_SUFFIXES
        or any(part.startswith((".", "checkpoint-")) or part in _OTHER_FOLDERS for part in path.parts)
    )


def model_files(directory):
    """List what determines the vectors of a model, with what tells whether a file has changed.

    Parameters
    ----------
    directory : pathlib.Path
        Directory of the model.

    Returns
    -------
    files : tuple of tuple
        For each file, sorted: its path inside the directory, its real path, size in bytes, times of change of
        content and of inode in ns, and inode.
    """
    files = []
    for path in sorted(directory.rglob("*")):
        inside = path.relative_to(directory)
        if path.is_file() and _matters(inside):
            real = path.resolve()
            stat = real.stat()
            files.append(
                (inside.as_posix(), str(real), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
            )
    return tuple(files)


def digest_files(files):
    """Hash the content of files.

    Parameters
    ----------
    files : tuple of tuple
        Files from :func:`model_files`.

    Returns
    -------
    digest : bytes of length 32
        SHA-256 over the names and contents.
    """
    whole = hashlib.sha256()
    for inside, *status in files:
        whole.update(f"{inside}\0".encode("utf-8", "surrogateescape"))
        whole.update(_digest_file(*status))
    return whole.digest()


@functools.lru_cache(maxsize=4096)
def _digest_file(path, *status):
    # The status is part of the key alone: a changed file is read again.
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
