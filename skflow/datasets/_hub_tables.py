"""STS-B as data sets of the Hugging Face hub hold it: CSV with quotes, or Parquet."""

import csv
import io

from ._parsing import HIGHEST_SCORE, Pair, parse_error, parse_score, read_lines

_SENTENCES = ("sentence1", "sentence2")
_SCORES = ("score", "label")
_UNANNOTATED = -1.0  # GLUE's test split


def read_hub_table(path):
    """Return the pairs of a file, with scores as they are there."""
    rows = _parquet_rows(path) if path.suffix == ".parquet" else _csv_rows(path)
    pairs = []
    for line, (first, second, text) in rows:
        is_hidden = text.strip() in ("-1", str(_UNANNOTATED))
        pairs.append(Pair(first, second, None if is_hidden else parse_score(text, path, line)))
    return pairs


def rescale(pairs):
    """Multiply scores by 5 in place if none is above 1; what the product adds is rounded off."""
    scored = [pair for pair in pairs if pair.score is not None]
    factor = HIGHEST_SCORE if scored and max(pair.score for pair in scored) <= 1 else 1.0
    for pair in scored:
        pair.score = round(pair.score * factor, 14)


def _places(path, header):
    score = next((name for name in _SCORES if name in header), None)
    if score is None or not set(_SENTENCES) <= set(header):
        raise parse_error(
            path, 1, f"expected the columns {list(_SENTENCES)} and one of {list(_SCORES)}, found {header}"
        )
    return [header.index(name) for name in (*_SENTENCES, score)]


def _csv_rows(path):
    """Yield line and the three fields of each row; a quoted field may contain commas and line ends."""
    rows = csv.reader(io.StringIO("\n".join(read_lines(path)), newline=""), strict=True)
    header = next(rows)
    places = _places(path, header)
    try:
        for fields in rows:
            if len(fields) != len(header):
                problem = f"expected {len(header)} fields as in the header, found {len(fields)}"
                raise parse_error(path, rows.line_num, problem)
            yield rows.line_num, [fields[place] for place in places]
    except csv.Error as error:
        raise parse_error(path, rows.line_num, f"not a CSV file ({error})") from error


def _read_parquet(path):
    """Return the names of the columns, and their values."""
    try:
        import pyarrow.parquet
    except ImportError:
        try:
            import polars
        except ImportError:
            raise ImportError(
                f"reading {path} needs pyarrow or polars: python -m pip install pyarrow"
            ) from None
        frame = polars.read_parquet(path)
        return frame.columns, [frame[name].to_list() for name in frame.columns]
    table = pyarrow.parquet.read_table(path)
    return table.column_names, [column.to_pylist() for column in table.columns]


def _parquet_rows(path):
    """Yield row and the three fields of each row, by whichever library is there."""
    if not path.is_file():
        raise FileNotFoundError(f"the STS file {path} is missing")
    try:
        header, columns = _read_parquet(path)
    except ImportError:
        raise
    except Exception as error:  # each library has its own
        raise ValueError(f"{path}: not a Parquet file, or a damaged one ({error})") from error
    places = _places(path, list(header))
    for row, fields in enumerate(zip(*(columns[place] for place in places), strict=True), start=1):
        if not all(isinstance(field, str) for field in fields[:2]):
            raise parse_error(path, row, f"expected two sentences, found {fields[:2]}")
        is_missing = fields[2] is None or fields[2] != fields[2]  # nan is not itself
        yield row, [*fields[:2], "" if is_missing else str(fields[2])]
