"""Results that show themselves as tables: in text, HTML and pandas."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd


class Column(NamedTuple):
    """A column of tuples, such as intervals: its head in text, and the columns that they fill in a frame."""

    title: str
    names: tuple[str, ...]


class Table:
    """Base class of results: a table in text, HTML and pandas.

    A subclass defines `_title` and `_table`, which returns the header (a `str` or a `Column` each; the first
    names the index) and the rows. It may set the format of numbers, and show other rows than the frame has.
    """

    _title: str
    _format = ".2f"

    def _table(self) -> tuple[list[Any], list[list[Any]]]:
        raise NotImplementedError

    def _shown(self) -> tuple[list[Any], list[list[Any]]]:
        return self._table()

    def to_frame(self) -> pd.DataFrame:
        """Return the table as a pandas DataFrame.

        Returns
        -------
        frame : DataFrame
            One row for each row of the table, with its name as index.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return as_frame(*self._table())

    def _cells(self):
        header, rows = self._shown()
        titles = [column.title if isinstance(column, Column) else column for column in header]
        return [titles, *([self._cell(value) for value in row] for row in rows)]

    def _cell(self, value):
        return format(value, self._format) if isinstance(value, float) else str(value)

    def __repr__(self):
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [self._title]
        for name, *others in cells:
            numbers = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
            lines.append("  ".join([name.ljust(widths[0]), *numbers]).rstrip())
        return "\n".join(lines)

    def _repr_html_(self):
        def line(tag, cells):
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        header, *rows = self._cells()
        return (
            f"<table><caption>{html.escape(self._title)}</caption><thead>{line('th', header)}</thead>"
            f"<tbody>{''.join(line('td', row) for row in rows)}</tbody></table>"
        )


def as_frame(header, rows):
    """Return a table as a DataFrame, tuples in columns of their own; a tuple of names makes a MultiIndex."""
    import pandas as pd

    name, *columns = header
    names = [
        part for column in columns for part in (column.names if isinstance(column, Column) else (column,))
    ]
    cells = [
        [part for column, value in zip(columns, row[1:], strict=True) for part in _parts(column, value)]
        for row in rows
    ]
    labels = [row[0] for row in rows]
    if isinstance(name, tuple):
        return pd.DataFrame(cells, index=pd.MultiIndex.from_tuples(labels, names=name), columns=names)
    return pd.DataFrame(cells, index=pd.Index(labels, name=name), columns=names)


def _parts(column, value):
    if not isinstance(column, Column):
        return (value,)
    return value if isinstance(value, tuple) else (float("nan"),) * len(column.names)
