import html
import re

import pytest

from skflow._tables import Column, Table


class Result(Table):
    _title = "a & b"

    def _table(self):
        return (
            ["task", "rho", Column("95%", ("low", "high")), "n"],
            [["<stsb>", 82.034, (81.0, 83.0), 12], ["all", -3.5, "", 1000]],
        )


class Narrow(Result):
    _format = ".0f"

    def _shown(self):
        header, rows = self._table()
        return header, [*rows, ["average", 1.6, "", ""]]


def test_text():
    assert repr(Result()).splitlines() == [
        "a & b",
        "task      rho           95%     n",
        "<stsb>  82.03  (81.0, 83.0)    12",
        "all     -3.50                1000",
    ]
    assert repr(Narrow()).splitlines()[-1] == "average    2"


def test_html_is_escaped():
    text = Result()._repr_html_()
    assert text.startswith("<table><caption>a &amp; b</caption><thead><tr><th>task</th>")
    cells = [html.unescape(cell) for cell in re.findall(r"<td>(.*?)</td>", text)]
    assert cells == ["<stsb>", "82.03", "(81.0, 83.0)", "12", "all", "-3.50", "", "1000"]


def test_frame_follows_from_the_table():
    pytest.importorskip("pandas")
    for result in (Result(), Narrow()):
        frame = result.to_frame()
        assert frame.index.tolist() == ["<stsb>", "all"]
        assert frame.index.name == "task"
        assert frame.columns.tolist() == ["rho", "low", "high", "n"]
        assert frame.loc["<stsb>"].tolist() == [82.034, 81, 83, 12]
        assert frame.loc["all", ["low", "high"]].isna().all()
