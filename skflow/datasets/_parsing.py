"""Lines of STS files, read exactly: tab-separated, quotes are text, and every error says where it is.

The csv module is no help here: a quotation mark in these files is a character of the sentence, and a
sentence may contain characters that `str.splitlines` takes for a line's end.
"""

import math
import warnings
import zlib
from dataclasses import dataclass

# Similarity is graded from 0 (nothing in common) to 5 (the same meaning); SICK grades from 1 to 5.
LOWEST_SCORE, HIGHEST_SCORE = 0.0, 5.0


@dataclass
class Pair:
    """One sentence pair and what its file says about it."""

    first: str
    second: str
    score: float | None  # None: the organizers did not annotate this pair
    label: str = ""  # genre (STS-B) or entailment judgment (SICK)


def parse_error(path, line, problem):
    """Return the ValueError for a problem in one line of a file, counted from 1."""
    return ValueError(f"{path}:{line}: {problem}")


def read_lines(path):
    """Return the lines of a UTF-8 file without their ends, which are LF or CRLF."""
    if not path.is_file():
        raise FileNotFoundError(f"the STS file {path} is missing")
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise parse_error(path, line, f"not UTF-8 text ({error.reason})") from error
    if not text:
        raise parse_error(path, 1, "the file is empty")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()  # what follows the last line's end is no line
    return [line.removesuffix("\r") for line in lines]


def parse_score(text, path, line):
    """Return the gold score, or None where the field is empty: the pair was not annotated."""
    text = text.strip()
    if not text:
        return None
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    # float() also reads "4_5", which is no number in any of these files.
    if not LOWEST_SCORE <= score <= HIGHEST_SCORE or "_" in text:
        raise parse_error(path, line, f"the score must be a number from 0 to 5, got {text!r}")
    return score


def read_input_and_gold(input_path, gold_path):
    """Return the pairs of a SemEval file of sentences and its file of gold scores, line by line."""
    sentences, scores = read_lines(input_path), read_lines(gold_path)
    if len(sentences) != len(scores):
        shorter, longer = (input_path, gold_path) if len(sentences) < len(scores) else (gold_path, input_path)
        few, many = sorted((len(sentences), len(scores)))
        raise parse_error(shorter, few, f"the file ends after {few} lines, but {longer} has {many}")
    pairs = []
    for line, (text, score) in enumerate(zip(sentences, scores, strict=True), start=1):
        # The original files of 2016 name each sentence's source in two more columns.
        fields = text.split("\t")
        if len(fields) < 2:
            raise parse_error(input_path, line, "expected two sentences separated by a tab")
        pairs.append(Pair(fields[0], fields[1], parse_score(score, gold_path, line)))
    return pairs


def read_stsb_csv(path):
    """Return the pairs of a file of the STS benchmark's own layout, which has no header line.

    Columns: genre, file, year, index, score, sentence 1, sentence 2 and, in some rows, their sources.
    """
    pairs = []
    for line, text in enumerate(read_lines(path), start=1):
        fields = text.split("\t")
        if len(fields) < 7:
            raise parse_error(path, line, f"expected at least 7 tab-separated fields, found {len(fields)}")
        pairs.append(Pair(fields[5], fields[6], parse_score(fields[4], path, line), label=fields[0]))
    return pairs


def read_table(path, columns, part=None):
    """Return the pairs of a file whose header line names its columns (GLUE, SICK).

    `columns` names the columns of sentence 1, sentence 2, score and label. A fifth one, if any, is that of
    the split: only rows whose field there is `part` are read.
    """
    lines = read_lines(path)
    header = lines[0].split("\t")
    absent = [name for name in columns if name not in header]
    if absent:
        raise parse_error(
            path, 1, f"the header line must name the columns {list(columns)}; {absent} not found"
        )
    places = [header.index(name) for name in columns]
    pairs = []
    for line, text in enumerate(lines[1:], start=2):
        fields = text.split("\t")
        if len(fields) != len(header):
            problem = f"expected {len(header)} tab-separated fields as in the header, found {len(fields)}"
            raise parse_error(path, line, problem)
        first, second, score, label, *split = (fields[place] for place in places)
        if split and split[0] not in ("TRAIN", "TRIAL", "TEST"):
            problem = f"{columns[4]} must be 'TRAIN', 'TRIAL' or 'TEST', got {split[0]!r}"
            raise parse_error(path, line, problem)
        if split and split[0] != part:
            continue
        pairs.append(Pair(first, second, parse_score(score, path, line), label))
    return pairs


def fingerprint(pair):
    """Return a checksum of a pair that no change of case, spacing or tokenization alters."""
    text = "".join(filter(str.isalnum, (pair.first + pair.second).lower()))
    return f"{zlib.crc32(text.encode()):08x}"


def check_complete(pairs, path, official, *, header_lines=0):
    """Raise if an official file was cut in the middle of its last line, warn if between two lines.

    A file is the official one if its first pair is. Cut inside a sentence or a score, its last line may still
    read as a pair, a wrong one: what gives it away is that it has no end. A file of whole lines may be
    somebody's choice of pairs, but not one of none.
    """
    checksum, n_official = official
    n_pairs, line = len(pairs), len(pairs) + header_lines
    if not pairs:
        raise parse_error(path, line or 1, "no pairs: truncated after this line")
    if fingerprint(pairs[0]) != checksum:
        return
    if not path.read_bytes().endswith(b"\n"):
        raise parse_error(
            path,
            line,
            f"truncated inside this line, pair {n_pairs} of {n_official}; if whole, end it by a newline",
        )
    if n_pairs >= n_official:
        return
    warnings.warn(
        f"{path} ends after {n_pairs} of the official file's {n_official} pairs: do not compare scores on "
        "it with published ones",
        stacklevel=4,
    )
