"""Download the seven STS tasks."""

import lzma
import os
import tarfile
import tempfile
import zlib
from os import PathLike
from pathlib import Path, PurePosixPath

from ._home import get_data_home
from ._layouts import TASKS, layouts

_REPOSITORY = "princeton-nlp/datasets-for-simcse"
_ARCHIVE = "senteval.tar"
_LARGEST_FILE = 32 * 2**20  # bytes; the largest of the official files has less than one million
HOW_TO_PLACE = (
    f"Download https://huggingface.co/datasets/{_REPOSITORY}/resolve/main/{_ARCHIVE} where you can, "
    "unpack it with `tar xf`, copy its directories STS and SICK into a directory of this machine and "
    "give that directory as data_home (or name it in the environment variable SKFLOW_DATA). "
    "skflow.datasets.fetch_sts() does the same where the Hugging Face hub can be reached."
)


def _needed_files():
    """Return the paths, as in the archive, of the files of the seven tasks."""
    for task in TASKS:
        layout = layouts(task)[0]
        for names in layout.files.values():
            for name in names:
                yield PurePosixPath(layout.directories[0], name)


def fetch_sts(
    data_home: str | PathLike[str] | None = None, *, revision: str | None = None, force_download: bool = False
) -> str:
    """Download the seven STS tasks from the Hugging Face hub.

    The archive ``senteval.tar`` of the data set repository ``princeton-nlp/datasets-for-simcse`` is fetched
    with `huggingface_hub` (whose settings, such as ``HF_ENDPOINT``, ``HF_HOME`` and ``HF_TOKEN``, apply; it
    stays in the hub's cache) and the files of the seven tasks in it are written to ``senteval`` under
    `data_home`. Nothing else is unpacked. Files that are there already are not downloaded again. Some of the
    files may not be passed on: mind the licences that come with the tasks.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Where to put the files, see `get_data_home`.
    revision : str, default=None
        Branch, tag or commit of the repository. ``None`` is content with files of any revision, and
        downloads ``"main"`` where there are none.
    force_download : bool, default=False
        Download and write the files even if they are there.

    Returns
    -------
    directory : str
        The SentEval directory: it holds ``STS`` and ``SICK``.

    Raises
    ------
    OSError
        If the hub cannot be reached (or is switched off by ``HF_HUB_OFFLINE``) or does not have the
        revision; the message says how to place the files by hand.
    ValueError
        If the archive is damaged, lacks a file, or holds what such an archive never would: a path that leads
        out of it, a link or an enormous file in place of data. Nothing is written then.

    See Also
    --------
    load_sts : Load a task.

    Examples
    --------
    >>> from skflow.datasets import fetch_sts, load_sts
    >>> directory = fetch_sts()  # doctest: +SKIP
    >>> load_sts("stsb", directory).pairs.shape  # doctest: +SKIP
    (8628, 2)
    """
    if revision is not None and not isinstance(revision, str):
        raise TypeError(f"revision must be the name of a branch, tag or commit, or None, got {revision!r}")
    home = Path(get_data_home(data_home))
    directory = home / "senteval"
    stamp = directory / "revision.txt"
    # Whoever asks for one revision must not be given another; files placed by hand have none.
    fits = revision is None or (stamp.is_file() and stamp.read_text(encoding="utf-8") == revision)
    if fits and not force_download and all((directory / path).is_file() for path in _needed_files()):
        return str(directory)
    revision = "main" if revision is None else revision
    archive = _download(revision, force_download)
    # Unpacked next to where they go and moved one by one: a reader never sees half a file.
    with tempfile.TemporaryDirectory(dir=home, prefix=".senteval-") as temporary:
        scratch = Path(temporary)
        _unpack(archive, scratch)
        (scratch / stamp.name).write_text(revision, encoding="utf-8")
        for path in (*_needed_files(), stamp.name):
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(scratch / path, directory / path)
    return str(directory)


def _download(revision, force_download):
    """Return the path of the archive in the hub's cache."""
    import huggingface_hub

    try:
        return huggingface_hub.hf_hub_download(
            _REPOSITORY, _ARCHIVE, repo_type="dataset", revision=revision, force_download=force_download
        )
    except Exception as error:  # the hub's and its HTTP client's errors share no base class
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise OSError(
            f"could not download {_ARCHIVE} (revision {revision!r}) of the data set {_REPOSITORY} from the "
            f"Hugging Face hub: {type(error).__name__}: {reason}. {HOW_TO_PLACE}"
        ) from error


def _unpack(archive, directory):
    """Write the needed files of an archive under a directory, at paths that this module chooses."""
    missing = {path.parts: path for path in _needed_files()}
    lengths = {len(parts) for parts in missing}
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                parts = PurePosixPath(member.name).parts
                if ".." in parts or member.name.startswith(("/", "\\")):
                    raise ValueError(f"the archive {archive} has the unsafe path {member.name!r}: refused")
                # The archive may hold STS and SICK inside a directory of any name.
                tail = next((parts[-n:] for n in lengths if parts[-n:] in missing), None)
                if tail is None:
                    continue
                if not member.isreg():
                    raise ValueError(f"{member.name!r} in the archive {archive} is not a plain file: refused")
                if member.size > _LARGEST_FILE:
                    raise ValueError(
                        f"{member.name!r} in the archive {archive} has {member.size} bytes: refused, "
                        f"more than {_LARGEST_FILE} cannot be right"
                    )
                target = directory / missing.pop(tail)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(tar.extractfile(member).read())
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the disk; those of a damaged bzip2 stream have no number
        reason = " ".join(str(error).split())
        raise ValueError(f"the archive {archive} is damaged: {reason}") from error
    if missing:
        names = ", ".join(sorted(map(str, missing.values())))
        raise ValueError(f"the archive {archive} lacks {names}")
