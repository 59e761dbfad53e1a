"""Tables in text and HTML, for results that show themselves."""

import html


def as_text(title, header, rows):
    """Lay out a table in text: the first column to the left, the others to the right.

    Parameters
    ----------
    title : str
    header : list of str
    rows : list of list
        Floats are shown with two decimals, everything else as it is.

    Returns
    -------
    text : str
        The title and one line for the header and each row.

    Examples
    --------
    >>> from skflow._tables import as_text
    >>> print(as_text("x 100", ["task", "rho"], [["stsb", 82.034], ["all", -3.5]]))
    x 100
    task    rho
    stsb  82.03
    all   -3.50
    """
    cells = [header, *[[_cell(value) for value in row] for row in rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        first, *others = (
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join([first, *others]).rstrip())
    return "\n".join([title, *lines])


def as_html(title, header, rows):
    """Lay out the same table in HTML; every cell is escaped.

    Parameters
    ----------
    title : str
    header : list of str
    rows : list of list

    Returns
    -------
    text : str
        A ``<table>``.

    Examples
    --------
    >>> from skflow._tables import as_html
    >>> as_html("x 100", ["task"], [["<stsb>"]])[-61:]
    '</thead><tbody><tr><td>&lt;stsb&gt;</td></tr></tbody></table>'
    """

    def line(tag, values):
        return "<tr>" + "".join(f"<{tag}>{html.escape(_cell(v))}</{tag}>" for v in values) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    return (
        f"<table><caption>{html.escape(title)}</caption>"
        f"<thead>{line('th', header)}</thead><tbody>{body}</tbody></table>"
    )


def _cell(value):
    return f"{value:.2f}" if isinstance(value, float) else str(value)
