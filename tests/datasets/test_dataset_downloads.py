"""What goes wrong on the way: every failure is named, bounded, and leaves nothing in the cache."""

import dataclasses
import gzip
import hashlib
import logging
import struct
import sys

import dataset_samples as samples
import numpy as np
import pooch
import pytest

from kstonet.datasets import DatasetError, _download, load, uci
from kstonet.datasets._download import fetch
from kstonet.datasets._formats import Arff, BenchmarkFolder, Idx, Table
from kstonet.datasets._registry import DATASETS, Source
from kstonet.datasets._verify import fingerprint

YACHT = next(info for info in DATASETS if info.name == "yacht")
ZIP = samples.FILES["yacht"][1][0]


@pytest.fixture
def yacht(site, monkeypatch):
    """A yacht of three rows with one source, a zip archive on this machine."""
    content, order = fingerprint(*samples.expected("yacht"))
    source = Source((site.add("yacht.zip", ZIP),), YACHT.sources[1].reader)
    info = dataclasses.replace(YACHT, n=3, sha256=None, content=content, order=order, sources=(source,))
    monkeypatch.setattr(uci, "DATASETS", (info,))
    return info


def yacht_zip(text):
    return samples.archive(**{"yacht_hydrodynamics.data": text})


FAILURES = {
    "missing": (404, r"the server answered 404 \(Not Found\)", 1),
    "forbidden": (403, r"the server answered 403 \(Forbidden\)", 1),
    "server error": (500, r"the server answered 500 \(Internal Server Error\), 3 attempts", 3),
    "too many requests": (429, r"the server answered 429 .*, 3 attempts", 3),
    "empty": (b"", "File is not a zip file", 1),
    "a page instead of the file": (b"<html>log in to the network</html>", "File is not a zip file", 1),
    "damaged inside": (ZIP[:70] + bytes([ZIP[70] ^ 255]) + ZIP[71:], "Bad CRC-32|Error -3", 1),
    "another archive": (samples.archive(other="1"), r"the archive holds \['other'\], but no yacht_hydrodynamics.data", 1),
    "a changed value": (yacht_zip(samples.YACHT.replace("0.27", "0.28")), "the values are not those of yacht", 1),
    "a lost row": (yacht_zip(samples.YACHT.split("\n", 1)[1]), r"X has shape \(2, 6\)", 1),
    "a row too many": (yacht_zip("-2.3 0.568 4.78 3.99 3.17 0.125 0.11\n" + samples.YACHT), r"X has shape \(4, 6\)", 1),
    "a lost column": (yacht_zip("1 2 3\n4 5 6\n7 8 9\n"), "out of bounds", 1),
    "a broken row": (yacht_zip("1 2 3 4 5 6 7\n1 2 3\n"), "number of columns changed", 1),
    "words": (yacht_zip("a b c d e f g\n"), "could not convert string 'a'", 1),
    "no rows": (yacht_zip("\n\n"), "the file holds no rows", 1),
}


@pytest.mark.parametrize(("page", "message", "requests"), FAILURES.values(), ids=FAILURES)
def test_a_bad_download_is_named_and_leaves_nothing(site, yacht, cache, page, message, requests):
    site.pages["/yacht.zip"] = page
    with pytest.raises(DatasetError, match=message) as caught:
        load("yacht")
    assert len(site.requests) == requests
    assert list(cache.rglob("*")) == []
    text = str(caught.value)
    assert text.startswith("yacht could not be loaded. Tried:")
    assert f"{cache}/yacht/data.npz: no such file" in text
    assert f"- {site.url}/yacht.zip: " in text
    assert "To provide it by hand: put data.npz (X of shape (3, 6), y of shape (3,)) at <folder>/yacht/data.npz" in text
    assert f"put the files, as they are, into {cache}/yacht:" in text
    site.pages["/yacht.zip"] = ZIP  # and the next call succeeds
    np.testing.assert_array_equal(load("yacht").target, [0.11, 0.27, 0.47])


def test_a_download_that_breaks_off(site, yacht, cache):
    site.announce["/yacht.zip"] = len(ZIP) + 100
    with pytest.raises(DatasetError, match=rf"broke off \(.*{len(ZIP)} bytes read, 100 more expected.*, 3 attempts"):
        load("yacht")
    assert len(site.requests) == 3
    assert list(cache.rglob("*")) == []


@pytest.mark.parametrize("trouble", [503, 429, 408])
def test_a_passing_trouble_is_overcome(site, yacht, trouble):
    site.pages["/yacht.zip"] = [trouble, trouble, ZIP]
    load("yacht")
    assert len(site.requests) == 3


def test_a_server_that_says_nothing(site, yacht, cache, monkeypatch):
    monkeypatch.setattr(_download, "TIMEOUT", 0.1)
    site.pages["/yacht.zip"] = "hang"
    with pytest.raises(DatasetError, match=r"timed out.*3 attempts"):
        load("yacht")
    assert list(cache.rglob("*")) == []


def test_no_network(yacht, cache, monkeypatch):
    closed = dataclasses.replace(yacht, sources=(Source(("http://127.0.0.1:9/yacht.zip",), yacht.sources[0].reader),))
    monkeypatch.setattr(uci, "DATASETS", (closed,))
    with pytest.raises(DatasetError, match=r"http://127\.0\.0\.1:9/yacht\.zip: no connection \(.*\), 3 attempts"):
        load("yacht")
    assert list(cache.rglob("*")) == []


def test_a_file_without_end(site, yacht, cache, monkeypatch):
    monkeypatch.setattr(_download, "MAX_BYTES", 100)
    with pytest.raises(DatasetError, match=r"more than the 100 bytes that any data set here has"):
        load("yacht")
    assert list(cache.rglob("*")) == []


def test_a_download_that_takes_too_long(site, yacht, monkeypatch):
    monkeypatch.setattr(_download, "DEADLINE", -1.0)
    with pytest.raises(DatasetError, match="too slow"):
        load("yacht")


def test_the_next_source_is_tried(site, yacht, monkeypatch):
    bad = Source((site.add("gone.zip", 404),), yacht.sources[0].reader)
    monkeypatch.setattr(uci, "DATASETS", (dataclasses.replace(yacht, sources=(bad, *yacht.sources)),))
    load("yacht")
    assert site.requests == ["/gone.zip", "/yacht.zip"]


def test_a_known_checksum_is_checked_before_anything_is_read(site, tmp_path):
    url, good = site.add("file", b"content"), hashlib.sha256(b"content").hexdigest()
    fetch(url, tmp_path / "file", sha256=good)
    assert (tmp_path / "file").read_bytes() == b"content"
    with pytest.raises(
        DatasetError, match=f"the file is damaged or was changed at the source: SHA256 .* expected {'0' * 64} but got {good}"
    ):
        fetch(url, tmp_path / "other", sha256="0" * 64)
    assert len(site.requests) == 2
    assert not (tmp_path / "other").exists()
    assert {path.name for path in tmp_path.iterdir()} <= {"file", "cache"}


def test_the_text_of_year_prediction_is_checked(site, tmp_path):
    path = tmp_path / "year.zip"
    path.write_bytes(samples.FILES["YearPredictionMSD"][0][0])
    reader = next(info for info in DATASETS if info.name == "YearPredictionMSD").sources[0].reader
    with pytest.raises(ValueError, match=f"the text has sha256 {samples.YEAR_SHA256}, not 4b6f8e50"):
        reader([path], "float64", 10)


def test_the_years_are_checked(site, cache, monkeypatch):
    info = next(info for info in DATASETS if info.name == "YearPredictionMSD")
    text = samples.YEAR.replace("1922,", "1890,", 1)
    page = samples.archive(**{"YearPredictionMSD.txt": text})
    reader = dataclasses.replace(info.sources[0].reader, sha256=hashlib.sha256(text.encode()).hexdigest())
    source = Source((site.add("year.zip", page),), reader)
    monkeypatch.setattr(uci, "DATASETS", (dataclasses.replace(info, n=3, n_train=2, sources=(source,)),))
    with pytest.raises(DatasetError, match=r"y runs from 1890\.0 to 2011\.0; in YearPredictionMSD from 1922 to 2011"):
        load("year")


def test_an_interrupted_download_leaves_nothing(site, yacht, cache, monkeypatch):
    def interrupt(self, count):
        raise KeyboardInterrupt

    monkeypatch.setattr(_download._Watch, "update", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load("yacht")
    assert site.requests == ["/yacht.zip"]
    assert list(cache.rglob("*")) == []


def test_packed_files_are_asked_for_as_they_are(site, tmp_path):
    """A server that would pack them once more is told not to: they are unpacked by their reader, not on the way."""
    content = gzip.compress(b"content")
    fetch(site.add("file.gz", content), tmp_path / "file.gz")
    assert (tmp_path / "file.gz").read_bytes() == content
    assert site.headers[-1]["Accept-Encoding"] == "identity"
    assert site.headers[-1]["User-Agent"] == "kstonet-datasets"


def test_pooch_itself_says_nothing(site, yacht, capfd):
    load("yacht")
    assert capfd.readouterr().err.count("\n") == 1
    assert pooch.get_logger().level != logging.WARNING  # and is left as it was


def test_without_pooch_the_extra_is_named_and_files_by_hand_are_read(yacht, cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"needs the package pooch: pip install 'kstonet\[data\]'"):
        load("yacht")
    with pytest.raises(DatasetError, match="To provide it by hand"):
        load("yacht", download_if_missing=False)
    (cache / "yacht").mkdir(parents=True)
    (cache / "yacht" / "yacht.zip").write_bytes(ZIP)
    np.testing.assert_array_equal(load("yacht").target, [0.11, 0.27, 0.47])


def test_progress_on_a_terminal(site, yacht, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    load("yacht")
    shown = capsys.readouterr().err
    assert f"\rkstonet: {site.url}/yacht.zip  {len(ZIP)} bytes of {len(ZIP)} bytes\033[K" in shown
    assert shown.endswith(" s\033[K\n")


# ---- readers ----


def idx_file(path, content):
    path.write_bytes(gzip.compress(content))
    return path


BAD_IDX = {
    "a text": (b"hello world", "is no idx file of bytes: it begins with b'hell'"),
    "cut header": (struct.pack(">II", 2051, 3), "ends in its header"),
    "cut values": (struct.pack(">II", 2049, 3) + b"12", r"announces 3 values of shape \(3,\) and holds fewer"),
    "more values": (struct.pack(">II", 2049, 3) + b"1234", "holds more"),
    "a huge shape": (struct.pack(">II", 2049, 2**31), "larger than the set"),
    "huge images": (struct.pack(">IIII", 2051, 1, 2**16, 2**16), "larger than the set"),
}


@pytest.mark.parametrize(("content", "message"), BAD_IDX.values(), ids=BAD_IDX)
def test_bad_idx_files(tmp_path, content, message):
    paths = [idx_file(tmp_path / str(k), content) for k in range(4)]
    with pytest.raises(ValueError, match=message):
        Idx()(paths, "uint8", 10)


def test_a_cut_gzip_file(tmp_path):
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(samples.COVERTYPE.encode())[:-20])
    with pytest.raises((EOFError, ValueError)):
        Table(slice(0, 54), 54, delimiter=",")([path], "float32", 10)


def test_bad_arff(tmp_path):
    path = tmp_path / "file.arff"
    for text in ("", "<html></html>", "@relation r\n@attribute a nonsense\n@data\n1\n"):
        path.write_text(text)
        with pytest.raises((ValueError, NotImplementedError)):
            Arff()([path], "float64", 10)


def test_records_over_several_lines_must_fit(tmp_path):
    path = tmp_path / "file"
    path.write_text("1 2 3\n4 5\n")
    with pytest.raises(ValueError, match="5 numbers do not make rows of 3"):
        Table(slice(0, 2), 2, record=3)([path], "float64", 10)


def test_column_numbers_must_exist(tmp_path):
    paths = [tmp_path / name for name in ("data.txt", "index_features.txt", "index_target.txt")]
    for path, text in zip(paths, ("1 2 3\n", "0\n7\n", "2\n"), strict=True):
        path.write_text(text)
    with pytest.raises(IndexError):
        BenchmarkFolder()(paths, "float64", 10)


# ---- the fingerprint ----


def test_fingerprint_knows_the_rows_and_nothing_else():
    rng = np.random.default_rng(0)
    X, y = rng.integers(-5, 6, size=(50, 3)).astype(float), rng.integers(0, 2, size=50)
    X[0, 0] = 0.0
    content, order = fingerprint(X, y)
    shuffle = rng.permutation(50)
    assert fingerprint(X[shuffle], y[shuffle])[0] == content
    assert fingerprint(X[shuffle], y[shuffle])[1] != order
    negative_zero = X.copy()
    negative_zero[0, 0] = -0.0
    for same in (X.astype(np.float32), X.astype(np.int8), X * (1 + 1e-15), negative_zero, np.asfortranarray(X)):
        assert fingerprint(same, y) == (content, order)
    for other in (X + 1e-8, X[:, ::-1], np.vstack([X[:1], X[:-1]])):
        assert fingerprint(other, y)[0] != content
    assert fingerprint(X, 1 - y)[0] != content
    assert fingerprint(X, rng.permutation(y))[0] != content  # targets belong to their rows
    doubled = np.vstack([X[:1], X])[:50]
    assert fingerprint(doubled, y)[0] != content
