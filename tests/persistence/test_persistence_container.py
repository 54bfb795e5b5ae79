"""Damaged, foreign and newer files are refused; nothing is lost in a crash."""

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from model_files import join, split

from kstonet.persistence import ModelFileError, load, save
from kstonet.storage import container


def test_the_file_is_json_and_numbers_only(stored):
    header, tensors = split(stored)
    metadata = header.pop("__metadata__")
    assert metadata.keys() == {"kstonet"}
    assert sum(np.prod(t["shape"], dtype=int) * (1 if t["dtype"] == "BOOL" else 8) for t in header.values()) == len(tensors)
    assert {t["dtype"] for t in header.values()} <= {"F64", "I64", "BOOL"}
    description = json.loads(metadata["kstonet"])
    assert description.keys() == {"version", "sha256", "library", "class", "parameters", "attributes"}
    assert (description["version"], description["class"]) == (container.VERSION, "KStoNetRegressor")


def test_a_shortened_file_is_refused(stored):
    raw = stored.read_bytes()
    for length in (0, 4, 8, 100, len(raw) // 2, len(raw) - 1):
        stored.write_bytes(raw[:length])
        with pytest.raises(ModelFileError, match="cut short"):
            load(stored)
    stored.write_bytes(raw + b"\0")
    with pytest.raises(ModelFileError):
        load(stored)


def test_every_flipped_byte_is_noticed(stored):
    raw = stored.read_bytes()
    for position in np.random.default_rng(1).choice(len(raw), 100, replace=False).tolist():
        damaged = bytearray(raw)
        damaged[position] ^= 1 << (position % 8)
        stored.write_bytes(damaged)
        with pytest.raises(ModelFileError):
            load(stored)


def test_exchanged_tensors_and_altered_values_are_noticed(stored):
    header, tensors = split(stored)
    arrays = container.read(stored)[1]
    one, other = next(
        (a, b) for a in arrays for b in arrays if arrays[a].shape == arrays[b].shape and (arrays[a] != arrays[b]).any()
    )
    swapped = header | {one: header[other], other: header[one]}
    reshaped = {n: t | {"shape": t["shape"][::-1]} if n != "__metadata__" else t for n, t in header.items()}
    text = header["__metadata__"]["kstonet"]
    texts = [
        text.replace('"gamma":[0.1', '"gamma":[0.2'),
        text.replace('"sha256":"', '"sha256":"0'),
        '{"version":1,"class":"KStoNetRegressor"}',
        text + " ",
    ]
    assert text not in texts
    for altered in (swapped, reshaped, *(header | {"__metadata__": {"kstonet": changed}} for changed in texts)):
        join(stored, altered, tensors)
        with pytest.raises(ModelFileError, match="checksum"):
            load(stored)
    join(stored, header, tensors)
    load(stored)


def test_foreign_and_newer_files_are_refused(stored):
    header, tensors = split(stored)
    text = header["__metadata__"]["kstonet"]
    cases = {
        r"version 3; this kstonet reads versions up to 2. Update": {"kstonet": text.replace('"version":2', '"version":3')},
        r"format version 0": {"kstonet": text.replace('"version":2', '"version":0')},
        r"format version 'one'": {"kstonet": text.replace('"version":2', '"version":"one"')},
        r"format version None": {"kstonet": "[]"},
        r"not JSON": {"kstonet": text[:-1]},
        r"but not one of kstonet": {"format": "pt"},
    }
    for message, changed in cases.items():
        join(stored, header | {"__metadata__": changed}, tensors)
        with pytest.raises(ModelFileError, match=message):
            load(stored)
    strange = {"t": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}  # NumPy has no such type
    join(stored, strange, b"\0\0")
    with pytest.raises(ModelFileError, match="but not one of kstonet"):
        load(stored)
    join(stored, strange | {"__metadata__": {"kstonet": text.replace('"version":2', '"version":3')}}, b"\0\0")
    with pytest.raises(ModelFileError, match="Update kstonet"):
        load(stored)
    join(stored, strange | {"__metadata__": {"kstonet": text}}, b"\0\0")
    with pytest.raises(ModelFileError):
        load(stored)


# -- paths and crashes --------------------------------------------------------------------------------------------------------


def test_bad_paths_are_named(fitted, tmp_path):
    model, _ = fitted("SVR")
    with pytest.raises(FileNotFoundError, match=r"nowhere' does not exist"):
        save(model, tmp_path / "nowhere" / "m.kstonet")
    with pytest.raises(IsADirectoryError, match=r"model.kstonet"):
        save(model, tmp_path)
    with pytest.raises(FileNotFoundError, match="is not a file"):
        load(tmp_path / "nothing.kstonet")


def test_missing_safetensors_names_the_extra(fitted, tmp_path, monkeypatch):
    model, _ = fitted("SVR")
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match=r"pip install 'kstonet\[io\]'"):
        save(model, tmp_path / "m.kstonet")


def test_a_failing_write_leaves_the_older_file(stored, fitted, monkeypatch):
    before = stored.read_bytes()
    other, _ = fitted("rbf")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    for target, name in ((os, "fsync"), (os, "replace"), (sys.modules["safetensors.numpy"], "save")):
        with monkeypatch.context() as patch:
            patch.setattr(target, name, full)
            with pytest.raises(OSError, match="No space left"):
                save(other, stored)
        assert stored.read_bytes() == before
        assert [p.name for p in stored.parent.iterdir()] == [stored.name]


def test_a_write_the_system_refuses_leaves_the_older_file(stored, fitted):
    resource = pytest.importorskip("resource")
    before = stored.read_bytes()
    other, _ = fitted("rbf")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            save(other, stored)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert stored.read_bytes() == before
    assert [p.name for p in stored.parent.iterdir()] == [stored.name]


HALF_WRITTEN = """
import builtins, sys, time
import kstonet
old, new = sys.argv[1:]
model, really = kstonet.load(new), open
class Slow:
    def __init__(self, file): self.file = file
    def __enter__(self): return self
    def __exit__(self, *error): self.file.close()
    def write(self, data):
        self.file.write(data[: len(data) // 2])
        self.file.flush()
        print("half", flush=True)
        time.sleep(60)
builtins.open = lambda path, mode="r": Slow(really(path, mode))
kstonet.save(model, old)
"""
OVER_AND_OVER = """
import sys
import kstonet
old, new = sys.argv[1:]
models = kstonet.load(old), kstonet.load(new)
print("start", flush=True)
while True:
    for model in models:
        kstonet.save(model, old)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.parametrize("script", [HALF_WRITTEN, OVER_AND_OVER], ids=["half written", "over and over"])
def test_a_killed_process_leaves_a_whole_file(script, stored, fitted, tmp_path):
    save(fitted("rbf")[0], tmp_path / "new.kstonet")
    allowed = {hashlib.sha256(path.read_bytes()).hexdigest() for path in (stored, tmp_path / "new.kstonet")}
    first = hashlib.sha256(stored.read_bytes()).hexdigest()
    child = subprocess.Popen(
        [sys.executable, "-c", script, stored, tmp_path / "new.kstonet"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        word = child.stdout.readline().strip()
        if word == "start":
            for _ in range(10):  # a reader never sees anything but a whole file
                load(stored)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    assert child.returncode == -signal.SIGKILL
    now = hashlib.sha256(stored.read_bytes()).hexdigest()
    assert now in allowed
    if word == "half":
        assert now == first
        assert len(list(tmp_path.glob(".m.kstonet.*.tmp"))) == 1  # it was really in the middle of writing
    load(stored)


def test_links_stay_links(stored, fitted, tmp_path):
    link = tmp_path / "latest.kstonet"
    try:
        link.symlink_to(stored)
    except OSError:
        pytest.skip("no links here")
    save(fitted("rbf")[0], link)
    assert link.is_symlink()
    assert load(stored).get_params() == load(link).get_params() == fitted("rbf")[0].get_params()
