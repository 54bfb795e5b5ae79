"""Encodings, separators, decimal and thousands marks: recognised from the whole file, or refused with the option that helps."""

import warnings

import pytest

from kstonet.cli.decoding import decoded, separator_of
from kstonet.cli.tables import Reading, read_table
from kstonet.tables import InputError

TEXT = "city;price\nGenève;1,5\nZürich;2,25\n"


def read(tmp_path, content, said="", name="t.csv", **reading):
    """The table, whose warnings must be (or begin as) said."""
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = read_table(str(path), Reading(**reading))
    assert (said in " ".join(str(each.message) for each in caught)) if said else not caught
    return table


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "latin-1"])
def test_encodings_are_recognised(encoding):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert decoded(TEXT.encode(encoding), "t.csv") == TEXT
    assert len(caught) == (encoding in ("cp1252", "latin-1"))  # a guess is said
    assert all("read as Windows-1252 (Genève, Zürich)" in str(each.message) for each in caught)


@pytest.mark.parametrize(
    ("text", "encoding"), [("Москва;Тула", "cp1251"), ("Αθήνα", "cp1253"), ("東京都", "shift-jis"), ("café", "mac-roman")]
)
def test_other_encodings_are_refused_with_the_option(text, encoding):
    with pytest.raises(InputError, match="--encoding"):
        decoded(text.encode(encoding), "t.csv")
    assert decoded(text.encode(encoding), "t.csv", encoding) == text


def test_wrong_encodings_are_refused():
    with pytest.raises(InputError, match="--encoding 'utf-9' is not known"):
        decoded(b"a", "t.csv", "utf-9")
    with pytest.raises(InputError, match="is not text in the encoding utf-8"):
        decoded("é".encode("latin-1"), "t.csv", "utf-8")
    with pytest.raises(InputError, match="is not a text file"):
        decoded(bytes(range(256)) * 4, "t.csv")


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2,5\n", ";"),
        ("price (EUR, net);area\n1,5;2\n", ";"),  # a comma in the header
        ("a\tb\n1\t2\n", "\t"),
        ("a|b\n1|2\n", "|"),
        ('a,b\n"1;5",2\n', ","),
        ("a\n1\n", ","),
    ],
)
def test_separators(text, separator):
    assert separator_of(text) == separator


@pytest.mark.parametrize(
    ("content", "numbers", "said"),
    [
        ("a;b\n1,947;3,5\n882;4\n", ["1.947", "882"], "a comma as the decimal mark"),
        ("a;b\n1,947;3.5\n882;4\n", ["1947", "882"], "a point as the decimal mark and a comma between thousands"),
        ("a;b\n1.947,25;3\n882;4\n", ["1947.25", "882"], "a comma as the decimal mark and a point between thousands"),
        ("a;b\n1'947.25;3\n882;4\n", ["1947.25", "882"], "an apostrophe between thousands"),
        ("a;b\n1\u00a0947,25;3\n882,1;4\n", ["1947.25", "882.1"], "a space between thousands"),
        ('a,b\n"1,947",3\n882,4\n', ["1947", "882"], "a comma between thousands"),  # commas separate, so they are no decimals
        ('a,b\n"1,94",3\n882,4\n', ["1.94", "882"], "a comma as the decimal mark"),
        ("a;b\n1.947;3\n0.5;4\n", ["1.947", "0.5"], ""),
        ("a;b\n-1.234.567;3\n+2,5;4\n", ["-1234567", "+2.5"], "a point between thousands"),
    ],
)
def test_marks_are_decided_from_all_cells(tmp_path, content, numbers, said):
    assert read(tmp_path, content, said)["a"].tolist() == numbers


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a;b\n1,947;3\n882;4\n", r"'1,947' \(column 'a', row 1\) is 1947 or 1.947.*--thousands , .*--decimal ,"),
        ("a;b\n3,14;3\n882;4.5\n", "two ways: '4.5' .* needs a decimal point, '3,14' .* a comma"),
        ("a;b\n1.000,5;1'000,5\n2;3\n", "separates thousands in two ways"),
    ],
)
def test_marks_that_disagree_are_refused(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, content)


def test_the_user_decides_about_marks(tmp_path):
    assert read(tmp_path, "a;b\n1,947;3\n882;4\n", decimal=",")["a"].tolist() == ["1.947", "882"]
    assert read(tmp_path, "a;b\n1,947;3\n882;4\n", thousands=",")["a"].tolist() == ["1947", "882"]
    for reading, message in (
        ({"decimal": ";"}, "must be . or ,"),
        ({"thousands": "x"}, "must be , or . or"),
        ({"decimal": ",", "thousands": ","}, "must differ"),
    ):
        with pytest.raises(InputError, match=message):
            read(tmp_path, "a;b\n1,5;2\n", **reading)


def test_text_and_dates_are_left_alone(tmp_path):
    table = read(tmp_path, "a;day;text\n1,5;01.02.2020;1,5 or more\n2;03.04.2021;no\n", "decimal mark")
    assert table["day"].tolist() == ["01.02.2020", "03.04.2021"]
    assert table["text"].tolist() == ["1,5 or more", "no"]


def test_blanks_and_marks_of_missing_values(tmp_path):
    table = read(tmp_path, "a,b\n Bern ,?\n  ,-999\nBern,3\n", na_values=("?", "-999"))
    assert table["a"].tolist()[::2] == ["Bern", "Bern"]
    assert table.isna().to_numpy().tolist() == [[False, True], [True, True], [False, False]]


def test_excel_files(tmp_path, run, flats, regression):
    pytest.importorskip("openpyxl")
    import pandas as pd

    path, out = tmp_path / "flats.xlsx", tmp_path / "out.xlsx"
    with pd.ExcelWriter(path) as book:
        flats.to_excel(book, sheet_name="flats", index=False)
        flats.head(3).to_excel(book, sheet_name="few", index=False)
    result = run("predict", regression[1], path, "-o", out)
    assert "has 2 sheets ('flats', 'few'); the first is read" in result.stderr
    assert len(read_table(str(out))) == len(flats)
    assert len(read_table(str(path), Reading(sheet="few"))) == len(read_table(str(path), Reading(sheet="2"))) == 3
    with pytest.raises(InputError, match="has no sheet 'none'"):
        read_table(str(path), Reading(sheet="none"))
    run("predict", regression[1], path, "--sheet", "few", "-o", out)
    assert list(read_table(str(out)).columns) == ["mean", "std", "lower_95", "upper_95"]


def test_files_that_are_something_else(tmp_path, regression):
    for content, message in (
        (b"PK\x03\x04rest", "is an Excel file"),
        (b"PAR1rest", "is a Parquet file"),
        (regression[1].read_bytes(), "is a model file, not a table"),
    ):
        with pytest.raises(InputError, match=message):
            read(tmp_path, content)
    with pytest.raises(InputError, match="before 2007"):
        read(tmp_path, b"x", name="old.xls")
