"""Tables are read from every format alike, and bad files are refused in one clear sentence."""

import io
import re
import sys

import pandas as pd
import pytest

from kstonet.cli.tables import format_of, read_table, write_table
from kstonet.tables import InputError


def written(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".tab", ".parquet", ".pq", ".feather", ".arrow", ".CSV"])
def test_every_format_comes_back(tmp_path, flats, suffix):
    if suffix in (".parquet", ".pq", ".feather", ".arrow"):
        pytest.importorskip("pyarrow")
    path = str(tmp_path / f"flats{suffix}")
    write_table(flats, path)
    table = read_table(path)
    assert list(table.columns) == list(flats.columns)
    assert list(table.index[[0, -1]]) == [1, len(flats)]
    assert table["area"].astype(float).tolist() == flats["area"].tolist()
    assert table["city"].tolist() == flats["city"].tolist()
    assert table["balcony"].astype(str).tolist() == flats["balcony"].astype(str).tolist()


@pytest.mark.parametrize(
    "text", ["a,b\n1,x\n2,y\n", "\ufeffa,b\r\n1,x\r\n2,y", "\n\na, b\n1, x\n\n2, y\n", 'a,"b"\n1,"x"\n2,y\n']
)
def test_csv_as_people_write_it(tmp_path, text):
    table = read_table(written(tmp_path, text))
    assert table.to_dict("list") == {"a": ["1", "2"], "b": ["x", "y"]}


def test_semicolons_and_decimal_commas(tmp_path):
    table = read_table(written(tmp_path, "a;b;c\n3,14;x,y;-1,5e3\n2;1,2,3;,5\n"))
    assert table.to_dict("list") == {"a": ["3.14", "2"], "b": ["x,y", "1,2,3"], "c": ["-1.5e3", ".5"]}


def test_values_stay_text_and_missing_ones_are_missing(tmp_path):
    table = read_table(written(tmp_path, "zip,b\n007,\n010,NA\n"))
    assert table["zip"].tolist() == ["007", "010"]
    assert table["b"].isna().all()


def test_standard_input(monkeypatch):
    def stdin(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    stdin(b"a,b\n1,2\n")
    assert read_table("-").to_dict("list") == {"a": ["1"], "b": ["2"]}
    stdin(b"a\tb\n1\t2\n")
    assert read_table("-", "tsv").to_dict("list") == {"a": ["1"], "b": ["2"]}
    pytest.importorskip("pyarrow")
    buffer = io.BytesIO()
    pd.DataFrame({"a": [1.5]}).to_parquet(buffer)
    stdin(buffer.getvalue())
    assert read_table("-", "parquet").to_dict("list") == {"a": [1.5]}
    stdin(b"")
    with pytest.raises(InputError, match="standard input is empty"):
        read_table("-")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("a,b\n", "has 2 columns but no rows"),
        ("a,b,a,b\n1,2,3,4\n", "more than one column named 'a', 'b'"),
        ("a,a.1,a\n1,2,3\n", "more than one column named 'a'"),
        (",a\n1,2\n", "column 1 of .* has no name"),
        ("5.1,3.5\n4.9,3.0\n", "numbers in its first line (5.1, 3.5)"),
        ("a,b\n1,2\n3,4,5\n", "is not a table: Expected 2 fields in line 3, saw 3"),
        ("a,b\n1,2,3\n4,5,6\n", "more fields in its rows than the 2 names"),
        ('a,b\n1,"2\n', "is not a table"),
        (b"a,b\n\xff\xfe,2\n", "is not UTF-8 text (byte 4)"),
    ],
)
def test_bad_text_files(tmp_path, content, message):
    pattern = message if ".*" in message else re.escape(message)
    with pytest.raises(InputError, match=pattern):
        read_table(written(tmp_path, content))


def test_bad_files(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        read_table(str(tmp_path / "none.csv"))
    with pytest.raises(InputError, match="there is no file"):
        read_table(str(tmp_path), "csv")  # a folder
    with pytest.raises(InputError, match=re.escape("use --format csv, tsv, parquet, feather or excel")):
        read_table(written(tmp_path, "a\n1\n", "t.ods"))
    pytest.importorskip("pyarrow")
    for kind in ("parquet", "feather"):
        with pytest.raises(InputError, match=f"is not a {kind.capitalize()} file"):
            read_table(written(tmp_path, "a,b\n1,2\n"), kind)


def test_names_of_a_parquet_file_may_be_numbers(tmp_path):
    pytest.importorskip("pyarrow")
    path = str(tmp_path / "t.parquet")
    write_table(pd.DataFrame({"0": [1], "1": [2]}), path)
    assert list(read_table(path).columns) == ["0", "1"]


def test_without_pyarrow_the_message_names_the_extra(tmp_path, monkeypatch, flats):
    path = written(tmp_path, "content", "t.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"Parquet files need the package pyarrow: pip install 'kstonet\[io\]'"):
        read_table(path)
    with pytest.raises(InputError, match="Feather files need the package pyarrow"):
        write_table(flats, str(tmp_path / "t.feather"))


def test_format_given_beats_the_name():
    assert format_of("t.csv", "tsv") == "tsv"
