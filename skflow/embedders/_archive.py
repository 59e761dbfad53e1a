"""Files as people have them: compressed, in other encodings, or of another kind."""

import bz2
import codecs
import gzip
import lzma
import re
import shutil
import tempfile
import zipfile
import zlib

_BZIP2 = re.compile(rb"BZh[1-9]1AY&SY")
_TAR_MAGIC = (b"ustar", 257)
# What the first bytes of other files are, and what to do with those.
_OTHERS = {
    rb"\xba\x16\x4f\x2f": ("a fastText model", "write its words with `fasttext dump` or take the .vec file"),
    rb"\x93NUMPY": ("a numpy array", "write each word and its vector as a line of text"),
    rb"\x80[\x02-\x05]": (
        "a pickle, such as gensim's .kv and .model",
        "load it with gensim and write it with `save_word2vec_format`",
    ),
    rb"\x89HDF": ("an HDF5 file", "write each word and its vector as a line of text"),
    rb"PAR1[^ \t]": ("a Parquet file", "write each word and its vector as a line of text"),
    rb"SQLite format 3\x00": ("a SQLite database", "write each word and its vector as a line of text"),
    rb"GGUF[^ \t]": ("a GGUF model", "word vectors are needed, not a model"),
    rb"%PDF-": ("a PDF document", "word vectors are needed"),
    rb"\x28\xb5\x2f\xfd": ("compressed by Zstandard", "decompress it with `zstd -d`"),
    rb"version https://git-lfs": ("a pointer of Git LFS", "fetch the file itself with `git lfs pull`"),
    rb"<(?:!DOCTYPE|html)": ("a page of HTML", "was it an error page that was downloaded?"),
}


def open_plain(path, encoding):
    """Open a file of word vectors as bytes that are ASCII at heart, decompressed and transcoded if need be.

    Parameters
    ----------
    path : pathlib.Path
        A file, plain or compressed by gzip, bzip2, xz or zip (with one member).
    encoding : str
        Encoding of its words.

    Returns
    -------
    file : binary file
        With a descriptor that can be mapped: the file itself, or a temporary copy that goes when closed.
    encoding : str
        Encoding of the words in it.

    Raises
    ------
    ValueError
        If the file is damaged, or of another kind; the message says of which, and what to do instead.
    """
    try:
        is_ascii = "a 1\n".encode(encoding) == b"a 1\n"
    except LookupError:
        raise ValueError(
            f"encoding={encoding!r} is unknown; expected one of Python's, such as 'utf-8'"
        ) from None
    file = open(path, "rb")  # noqa: SIM115  # the caller closes it
    try:
        while True:
            head = file.read(512)
            file.seek(0)
            reader = _decompressed(path, file, head)
            if reader is None:
                break
            file = _copied(path, reader, file)
        _check_kind(path, head, encoding)
        if is_ascii:
            return file, encoding
        return _copied(path, codecs.EncodedFile(file, "utf-8", encoding), file), "utf-8"
    except BaseException:
        file.close()
        raise


def _decompressed(path, file, head):
    """Return a reader of what a compressed file holds, None if it is not compressed."""
    if head.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)
    if _BZIP2.match(head):
        return bz2.BZ2File(file)
    if head.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMAFile(file)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):  # the latter is an archive of nothing
        try:
            archive = zipfile.ZipFile(file)
            members = [member for member in archive.infolist() if not member.is_dir()]
            members = [member for member in members if not member.filename.startswith("__MACOSX/")]
        except zipfile.BadZipFile as error:
            raise ValueError(f"{path} is a damaged zip archive: {error}.") from error
        if len(members) != 1:
            names = ", ".join(member.filename for member in members[:5]) or "none"
            raise ValueError(
                f"{path} is a zip archive of {len(members)} files ({names}), expected one: unpack it and "
                "give the path of the file."
            )
        try:
            return archive.open(members[0])
        except (RuntimeError, zipfile.BadZipFile) as error:  # encrypted, or compressed in a way of its own
            raise ValueError(f"{path} is a zip archive that cannot be read: {error}. Unpack it.") from error
    return None


def _copied(path, reader, former):
    """Return a temporary file of what a reader gives; the file that it reads from is closed."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
    try:
        shutil.copyfileobj(reader, copy, 2**20)
    except (
        EOFError,
        OSError,
        UnicodeError,
        RuntimeError,
        zlib.error,
        lzma.LZMAError,
        zipfile.BadZipFile,
    ) as error:
        copy.close()
        raise ValueError(f"{path} is damaged, truncated or in another encoding: {error}.") from error
    former.close()
    copy.flush()
    copy.seek(0)
    return copy


def _check_kind(path, head, encoding):
    """Raise ValueError for a file whose first bytes say that it holds no word vectors."""
    magic, place = _TAR_MAGIC
    if head[place : place + len(magic)] == magic:
        raise ValueError(f"{path} is a tar archive: unpack it and give the path of the file.")
    for pattern, (kind, advice) in _OTHERS.items():
        if re.match(pattern, head, re.DOTALL):
            raise ValueError(f"{path} is {kind}, which holds no readable word vectors: {advice}.")
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) and codecs.lookup(encoding).name == "utf-8":
        raise ValueError(f"{path} is in UTF-16: set encoding='utf-16'.")
