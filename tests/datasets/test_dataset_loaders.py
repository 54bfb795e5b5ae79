"""Every remote format, served from this machine; the folder, the cache, and what a user reads when something is wrong."""

import dataclasses
import hashlib
import pickle

import dataset_samples as samples
import numpy as np
import pytest

from kstonet.datasets import DatasetError, DatasetInfo, list_datasets, load, uci
from kstonet.datasets._formats import Table
from kstonet.datasets._registry import DATASETS, Source
from kstonet.datasets._verify import fingerprint, original_splits

SOURCES = [(info, k) for info in DATASETS for k in range(len(info.sources))]
BY_NAME = {info.name: info for info in DATASETS}


def small(info: DatasetInfo, sources: tuple[Source, ...]) -> DatasetInfo:
    """``info`` cut down to the rows of the samples."""
    X, y = samples.expected(info.name)
    content, order = fingerprint(X, y) if info.content else (None, None)
    n_train = 2 if info.n_train else None
    return dataclasses.replace(info, n=len(y), n_train=n_train, content=content, order=order, sha256=None, sources=sources)


def serve(site, info: DatasetInfo, k: int) -> Source:
    """Source ``k`` of ``info``, at addresses of this machine that end like the real ones."""
    source = info.sources[k]
    files = samples.FILES[info.name][k]
    assert len(files) == len(source.urls)
    urls = tuple(site.add(f"{k}/{url.rsplit('/', 1)[-1]}", page) for url, page in zip(source.urls, files, strict=True))
    reader = source.reader
    if isinstance(reader, Table) and reader.sha256:
        reader = dataclasses.replace(reader, sha256=samples.YEAR_SHA256)
    sha256 = tuple(hashlib.sha256(page).hexdigest() for page in files) if source.sha256 else None
    return Source(urls, reader, sha256)


@pytest.fixture
def yacht(site, monkeypatch):
    """A yacht of three rows with its two sources on this machine."""
    info = small(BY_NAME["yacht"], tuple(serve(site, BY_NAME["yacht"], k) for k in (0, 1)))
    monkeypatch.setattr(uci, "DATASETS", (info,))
    return info


def files_under(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())


@pytest.mark.parametrize(("info", "k"), SOURCES, ids=lambda value: getattr(value, "name", value))
def test_every_remote_format(site, cache, monkeypatch, capsys, info, k):
    small_info = small(info, (serve(site, info, k),))
    monkeypatch.setattr(uci, "DATASETS", (small_info,))
    X, y = samples.expected(info.name)
    first = load(info.name)
    asked = len(site.requests)
    second = load(info.name)
    for bunch in (first, second):
        np.testing.assert_array_equal(bunch.data, X)
        np.testing.assert_array_equal(bunch.target, y)
        assert bunch.data.dtype == info.dtype
        assert bunch.target.dtype == ("float64" if info.task == "regression" else "uint8")
        assert bunch.feature_names is None or len(bunch.feature_names) == info.p
        assert (bunch.train_idx is None) == (info.n_splits == 0)
        assert info.title in bunch.DESCR
        assert info.target in bunch.DESCR
    assert asked == len(small_info.sources[0].urls)
    assert len(site.requests) == asked  # the second time from the cache
    assert files_under(cache) == [f"{info.name}/data.npz"]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("kstonet: http") == asked  # one line of progress per file in a log


def test_rows_in_another_order_are_the_same_data_without_splits(site, yacht):
    lines = samples.YACHT.splitlines(keepends=True)
    site.pages["/1/yacht+hydrodynamics.zip"] = samples.archive(**{"yacht_hydrodynamics.data": "".join(lines[::-1])})
    site.pages["/0/data.txt"] = 404
    for bunch in (load("yacht"), load("yacht")):  # downloaded, and from the cache
        np.testing.assert_array_equal(bunch.target, [0.47, 0.27, 0.11])
        assert bunch.train_idx is None
        assert bunch.test_idx is None
        assert "another order" in bunch.DESCR


def test_x_and_y_only(yacht):
    X, y = load("yacht", return_X_y=True)
    assert X.shape == (3, 6)
    assert y.shape == (3,)


@pytest.mark.parametrize("name", ["Boston", "boston_housing", "bostonHousing", "BOSTON-HOUSING"])
def test_names_are_forgiving(name):
    assert uci._find(name).name == "bostonHousing"


def test_unknown_names():
    with pytest.raises(ValueError, match="name='yaht' is not a data set of kstonet; did you mean 'yacht'"):
        load("yaht")
    with pytest.raises(ValueError, match=r"name='qqq' is not a data set of kstonet; give one of .*'yacht'"):
        load("qqq")
    with pytest.raises(ValueError, match="name=3 is not a data set"):
        load(3)


# ---- the data folder ----


def write(folder, name, **arrays):
    (folder / name).mkdir(parents=True)
    np.savez_compressed(folder / name / "data.npz", **arrays)
    return folder / name / "data.npz"


def test_the_folder_comes_first(site, yacht, tmp_path, monkeypatch):
    X, y = samples.expected("yacht")
    path = write(tmp_path / "given", "yacht", X=X, y=y)
    bunch = load("yacht", data_home=tmp_path / "given")
    assert bunch.filename == str(path)
    assert bunch.train_idx.shape == (20, 3)
    other = write(tmp_path / "variable", "yacht", X=X, y=y)
    monkeypatch.setenv("KSTONET_DATA", str(tmp_path / "variable"))
    assert load("yacht").filename == str(other)
    assert load("yacht", data_home=tmp_path / "given").filename == str(path)
    assert site.requests == []


def test_a_folder_without_the_set_falls_back_to_the_cache(yacht, cache, tmp_path):
    (tmp_path / "given").mkdir()
    assert load("yacht", data_home=tmp_path / "given").filename == str(cache / "yacht" / "data.npz")


def test_the_benchmark_s_own_file_is_known_by_its_checksum(site, yacht, tmp_path, monkeypatch):
    X, y = samples.expected("yacht")
    path = write(tmp_path / "given", "yacht", X=X, y=y)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(uci, "DATASETS", (dataclasses.replace(yacht, sha256=sha256),))
    monkeypatch.setattr(uci, "verify", None)  # not needed
    assert load("yacht", data_home=tmp_path / "given").train_idx is not None


def changed_value(X, y):
    X[1, 2] += 1e-6
    return {"X": X, "y": y}


DAMAGE = {
    "a changed value": (changed_value, "the values are not those of yacht: fingerprint"),
    "a lost row": (lambda X, y: {"X": X[1:], "y": y[1:]}, r"X has shape \(2, 6\) and y \(2,\); yacht has \(3, 6\)"),
    "exchanged columns": (lambda X, y: {"X": X[:, ::-1], "y": y}, "fingerprint"),
    "a missing value": (lambda X, y: {"X": X, "y": y * np.nan}, "not finite"),
    "a missing array": (lambda X, y: {"X": X}, r"\['y'\] are missing"),
    "text": (lambda X, y: {"X": X.astype(str), "y": y}, "made of numbers"),
    "objects": (lambda X, y: {"X": X.astype(object), "y": y}, "allow_pickle"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_a_wrong_file_in_the_folder_is_an_error(site, yacht, tmp_path, damage, message):
    path = write(tmp_path / "given", "yacht", **damage(*samples.expected("yacht")))
    with pytest.raises(DatasetError, match=message) as caught:
        load("yacht", data_home=tmp_path / "given")
    assert str(path) in str(caught.value)
    assert site.requests == []  # not passed over in silence


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more", pickle.dumps([1])], ids=["empty", "cut", "pickle"])
def test_a_file_that_is_no_npz(yacht, tmp_path, content):
    write(tmp_path / "given", "yacht", X=np.zeros(1)).write_bytes(content)
    with pytest.raises(DatasetError, match=r"not an npz file\. Replace the file"):
        load("yacht", data_home=tmp_path / "given")


def test_a_folder_that_does_not_exist(yacht, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"data_home='.*nowhere' is not a folder"):
        load("yacht", data_home=tmp_path / "nowhere")
    monkeypatch.setenv("KSTONET_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"KSTONET_DATA='.*nowhere' is not a folder"):
        load("yacht")


# ---- the cache ----


def test_a_damaged_cache_is_made_anew(site, yacht, cache):
    load("yacht")
    path = cache / "yacht" / "data.npz"
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    asked = len(site.requests)
    np.testing.assert_array_equal(load("yacht").target, [0.11, 0.27, 0.47])
    assert len(site.requests) > asked
    site.pages.clear()
    path.write_bytes(whole[:-40])
    with pytest.raises(DatasetError, match=r"data\.npz: not an npz file"):
        load("yacht")


def test_without_permission_to_download(site, yacht, cache):
    with pytest.raises(DatasetError, match="Downloading was not allowed") as caught:
        load("yacht", download_if_missing=False)
    assert str(cache / "yacht" / "data.npz") in str(caught.value)
    assert site.requests == []
    load("yacht")
    load("yacht", download_if_missing=False)


def test_a_file_provided_by_hand_is_not_downloaded(site, yacht, cache):
    site.pages["/0/data.txt"] = 404
    (cache / "yacht").mkdir(parents=True)
    own = cache / "yacht" / "yacht+hydrodynamics.zip"
    own.write_bytes(samples.FILES["yacht"][1][0])
    np.testing.assert_array_equal(load("yacht").target, [0.11, 0.27, 0.47])
    assert not any("zip" in path for path in site.requests)
    assert files_under(cache) == ["yacht/data.npz", "yacht/yacht+hydrodynamics.zip"]  # the user's file stays
    (cache / "yacht" / "data.npz").unlink()
    own.write_bytes(b"damaged")
    with pytest.raises(DatasetError, match=r"cache/yacht/yacht\+hydrodynamics\.zip: File is not a zip file"):
        load("yacht")


def test_a_cache_that_cannot_be_written(yacht, cache):
    cache.write_text("a file where the folder should be")
    with pytest.raises(DatasetError, match=r"the cache .* cannot be written .*set the environment variable KSTONET_HOME"):
        load("yacht")


def test_the_default_cache_is_in_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("KSTONET_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert uci._cache() == tmp_path / ".cache" / "kstonet"


# ---- the registry ----


@pytest.mark.parametrize("info", DATASETS, ids=lambda info: info.name)
def test_registry_entries_are_consistent(info):
    assert info.task in ("regression", "classification")
    assert info.feature_names is None or len(set(info.feature_names)) == info.p
    assert (info.content is None) == (info.order is None) == (info.sha256 is None)
    assert info.content is not None or info.target_range is not None
    for source in info.sources:
        assert all(url.startswith("http") for url in source.urls)
        assert source.sha256 is None or len(source.sha256) == len(source.urls)
    assert len(info.sources) >= 2


def test_names_are_unique():
    names = [uci._plain(name) for info in DATASETS for name in (info.name, *info.aliases)]
    assert len(names) == len(set(names))
    assert list_datasets() == list(DATASETS)


# sha256 of the published index files: train_idx, then test_idx, as little-endian int32.
SPLITS = {
    "bostonHousing": "9a1790679dcc27d05c6c9003093ebab9e45ad6c609e18826517f225d811dcd38",
    "concrete": "718502e103ab59d99a9bfe6f779cb15d3faf76874d3b30258b6f46cd5dc8c02f",
    "energy": "22469870eed86b4827022bf84f02fa80843f38943f8ef7376d6ce8babb9963eb",
    "kin8nm": "7a15716042ff6154a2a38544327b3617bf8ebbdb33825ffa921c01c5a6cc14b9",
    "mnist": "4c1d594a4291c0e51cc7d0e1c74a5ab1f39b4fab372fbaad06b6af0d4414a200",
    "naval-propulsion-plant": "0c90e4d4967147fcc2da2bcddc734c711a8cee0628dee16b1e5c6d01a36cd576",
    "power-plant": "27d9330ec12b4c61a81e61def0fbbfb016d2af361d70bacdabf5f52b46aeec41",
    "protein-tertiary-structure": "9997db198796c76a93ebbdf2c71515472cd99cac27bd8b313a3ecf7f3e08375a",
    "wine-quality-red": "a0932a67cecb791be35bb7a94aa68eea958b9c28163e8bfad4b69afcbcf3594f",
    "yacht": "eda30693ba10b35467c0e49e93c1a83fcd623a8750677c22610489737a1046ae",
}


@pytest.mark.parametrize("name", SPLITS)
def test_splits_are_the_published_ones(name):
    train_idx, test_idx = original_splits(BY_NAME[name])
    content = b"".join(np.ascontiguousarray(part, dtype="<i4").tobytes() for part in (train_idx, test_idx))
    assert hashlib.sha256(content).hexdigest() == SPLITS[name]


def test_the_official_split_of_year_prediction():
    train_idx, test_idx = original_splits(BY_NAME["YearPredictionMSD"])
    assert (train_idx[0, 0], train_idx[0, -1], test_idx[0, 0], test_idx[0, -1]) == (0, 463714, 463715, 515344)
