"""Escaping, and numbers as people read them."""

import json
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kstonet._words import counted
from kstonet.report.markup import (
    Markup,
    element,
    fixed,
    json_script,
    number,
    paragraph,
    percent,
    places_for,
    plain,
    table,
)


class Reader(HTMLParser):
    """Texts, attributes and scripts of a document, as a browser would read them."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.texts, self.scripts = [], [], [], []
        self._script = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self._script = tag == "script"

    def handle_endtag(self, tag):
        self._script = False

    def handle_data(self, data):
        (self.scripts if self._script else self.texts).append(data)


@given(st.text())
def test_any_text_comes_back_as_text_and_attribute(text):
    read = Reader(element("p", text, title=text))
    assert read.tags == ["p"]
    assert "".join(read.texts) == text
    assert read.attributes == [("title", text)]


@given(st.recursive(st.text() | st.integers(-1000, 1000) | st.none(), st.lists, max_leaves=8))
def test_any_data_come_back_from_the_script(data):
    html = json_script(data)
    assert html.count("<") == 2
    read = Reader(html)
    assert read.tags == ["script"]
    assert json.loads("".join(read.scripts)) == data


def test_markup_is_not_escaped_twice_and_nothing_is_left_out():
    assert element("p", element("b", "<"), None, "&") == "<p><b>&lt;</b>&amp;</p>"
    assert element("input", type="search", hidden=True, disabled=False, title=None) == '<input type="search" hidden>'
    assert element("th", "x", class_="number", aria_sort="none") == '<th class="number" aria-sort="none">x</th>'
    assert isinstance(paragraph("x"), Markup)


def test_numpy_values_become_json():
    data = {"a": np.array([1.0, np.nan, np.inf]), "b": np.int64(3), "c": np.bool_(True), 1: (np.float32(0.5), "x")}
    assert plain(data) == {"a": [1.0, None, None], "b": 3, "c": True, "1": [0.5, "x"]}
    assert plain(1 / 3) == 0.333333


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1234.5, "1,234"), (0.12345, "0.123"), (-0.5, "−0.5"), (9.996, "10"), (2.5e-9, "2.5e-09"), (np.inf, "∞")],
)
def test_numbers_have_three_digits(value, text):
    assert number(value) == text


def test_columns_of_numbers_share_their_decimals():
    assert places_for([1.0, 2.0, 3.0]) == 0
    assert places_for(np.random.default_rng(0).normal(0, 0.03, 100)) == 4
    assert places_for([5.5, 5.5]) == 2
    assert [fixed(value, 1) for value in (-0.04, -1.25, 1234.56)] == ["0.0", "−1.2", "1,234.6"]
    assert [percent(share) for share in (0.0, 0.0001, 0.123, 1.0, np.nan)] == ["0 %", "<0.1 %", "12.3 %", "100 %", "–"]
    assert counted(1, "row") == "1 row"


def test_tables_name_their_rows_and_columns():
    read = Reader(table(["model", "score", "why"], [["<a>", "1", "x"]], caption="Scores", texts=(0, 2)))
    assert read.texts == ["Scores", "model", "score", "why", "<a>", "1", "x"]
    assert read.attributes.count(("scope", "col")) == 3
    assert read.attributes.count(("scope", "row")) == 1
    assert read.attributes.count(("class", "number")) == 2
