"""Where the files of a model are, and what they contain."""

import contextlib
import functools
import hashlib
import json
import os
from pathlib import Path, PurePosixPath

from ._silence import quiet

# Files of other frameworks and for human eyes: they do not change a vector, and are not downloaded.
_OTHER_SUFFIXES = (".h5", ".msgpack", ".ot", ".onnx", ".onnx_data", ".tflite", ".gguf", ".mlmodel", ".md")
_OTHER_FOLDERS = ("onnx", "openvino", "coreml")
_TORCH_WEIGHTS = (".bin", ".pt", ".pth", ".ckpt")


def find_model(name, *, revision=None, token=None, local_files_only=False, verbose=False):
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
    verbose : bool, default=False
        Whether to show the progress of downloads.

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
        raise FileNotFoundError(f"{looked_for}, and it is not the name of a model on the Hugging Face hub.")

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
            with quiet(not verbose):
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
    files = [sibling.rfilename for sibling in info.siblings]

    def fetch(name):
        if name not in files and name != "modules.json":
            return None
        with contextlib.suppress(EntryNotFoundError):  # which the cache then remembers
            return hf_hub_download(repository, name, revision=revision, token=token)

    folders = _module_folders(fetch)
    files = [file for file in files if _matters(PurePosixPath(file), folders)]
    if any(file.endswith(".safetensors") for file in files):
        files = [file for file in files if not file.endswith(_TORCH_WEIGHTS)]
    return Path(snapshot_download(repository, revision=revision, token=token, allow_patterns=files))


def _module_folders(fetch):
    """List the folders of modules, beside the model's own, that a checkpoint names; `fetch` gives its files.

    They are named in modules.json, and those of the routes of a Router (in older files an Asym) in its
    configuration.
    """
    modules = read_json(fetch("modules.json"))
    if not isinstance(modules, list):
        return []
    found = [module.get("path") for module in modules if isinstance(module, dict)]
    found = [PurePosixPath(path) for path in found if isinstance(path, str)]
    for folder in found:  # which grows
        for name in ("router_config.json", "config.json"):
            content = read_json(fetch((folder / name).as_posix()))
            routes = content.get("types") if isinstance(content, dict) else None
            routes = [folder / route for route in routes] if isinstance(routes, dict) else []
            found += [route for route in routes if route not in found]
    return [folder for folder in found if folder != PurePosixPath()]


def read_json(path):
    """Return what a JSON file contains, None where there is none: whoever loads it says what is wrong."""
    try:
        return None if path is None else json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def _matters(inside, folders):
    """Tell whether a file can change a vector; in the folders of modules, whatever their names, all can."""
    return inside.suffix not in _OTHER_SUFFIXES and (
        any(inside.is_relative_to(folder) for folder in folders)
        or not any(part.startswith((".", "checkpoint-")) or part in _OTHER_FOLDERS for part in inside.parts)
    )


def find_files(directory):
    """List the files of a model, and in the folders of its modules those behind symbolic links, too.

    Parameters
    ----------
    directory : pathlib.Path
        Directory of the model.

    Returns
    -------
    files : dict of str to pathlib.Path
        Path inside the directory, with slashes, to path, sorted.
    folders : list of pathlib.PurePath
        Folders of modules, inside the directory.
    """
    folders = _module_folders(lambda name: directory / name)
    paths = [*directory.rglob("*")]
    for folder in folders:
        paths += _walk(directory / folder)
    files = {}
    for path in filter(Path.is_file, paths):
        inside = path.relative_to(directory) if path.is_relative_to(directory) else path
        files[inside.as_posix()] = path
    return dict(sorted(files.items())), folders


def _walk(folder):
    """Yield all paths in a folder, following links, but none in a circle."""
    above = {}
    for place, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        above[place] = {*above.get(os.path.dirname(place), ()), real}
        folders[:] = [
            name for name in folders if os.path.realpath(os.path.join(place, name)) not in above[place]
        ]
        yield from (Path(place, name) for name in names)


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
    listed = []
    files, folders = find_files(directory)
    for inside, path in files.items():
        if _matters(PurePosixPath(inside), folders):
            real = path.resolve()
            stat = real.stat()
            listed.append((inside, str(real), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino))
    return tuple(listed)


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
