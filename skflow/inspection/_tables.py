"""Results that show themselves as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._tables import as_html, as_text

if TYPE_CHECKING:
    import pandas as pd


class Table:
    """Base class of results: a table in text, HTML and pandas.

    A subclass defines `_title` and `_table`, which returns the header (the first entry names the index) and
    the rows, and may set the format of numbers.
    """

    _title: str
    _format = ".2f"

    def _table(self) -> tuple[list[str], list[list[Any]]]:
        raise NotImplementedError

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
        import pandas as pd

        (name, *columns), rows = self._table()
        index = pd.Index([row[0] for row in rows], name=name)
        return pd.DataFrame([row[1:] for row in rows], index=index, columns=columns)

    def __repr__(self):
        return as_text(self._title, *self._shown())

    def _repr_html_(self):
        return as_html(self._title, *self._shown())

    def _shown(self):
        header, rows = self._table()
        return header, [[_shown(value, self._format) for value in row] for row in rows]


def _shown(value, form):
    return format(value, form) if isinstance(value, float) else value
