"""Forged files over every record type: a ModelFileError or a model that answers, in bounded time and memory."""

import struct
import sys
import tracemalloc

import numpy as np
import pytest
from forging import check_forgery, forge, record_names
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_files import NEW, X, Y, quick

from kstonet import KStoNetRegressor, MultiTargetSVR
from kstonet._records import RECORDS
from kstonet.persistence import ModelFileError, load, read_metadata, save
from kstonet.persistence.layouts import LAYOUTS
from kstonet.storage import container


@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(random=st.randoms(use_true_random=False))
def test_forged_files(forgeable_files, forged_file, random):
    check_forgery(forged_file, *forge(random, *random.choice(forgeable_files)))


def test_the_files_hold_records_of_every_class(forgeable_files):
    """A class that becomes storable has to be in a file that is forged: add a model to ``forging.models``."""
    ours = {
        name
        for name, record in RECORDS.items()
        if record.__module__.startswith("kstonet.") and hasattr(sys.modules[record.__module__], name)  # no doctest's
    }
    assert ours - record_names(forgeable_files) == set()


NO_NUMBERS = [np.nan, np.inf, -np.inf]


def owners(node, owner=None):
    """The tensors of a description: the class and the field, or the attribute, that each is in, and its name."""
    if isinstance(node, dict) and "tensor" in node:
        yield owner, node["tensor"][0]
    elif isinstance(node, dict) and "record" in node:
        name, stored = node["record"]
        for field, child in stored.items():
            yield from owners(child, (name, field))
    elif isinstance(node, dict | list):
        for key, child in node.items() if isinstance(node, dict) else enumerate(node):
            yield from owners(child, owner or key)


def test_values_that_are_no_numbers_are_refused(forgeable_files, forged_file):
    """A tensor of every field in every file: NaN and infinities never become predictions.

    A field is tried with NaN and infinity in the first file that has it, and with one of them in turn in every other.
    """
    seen, tried = {}, 0
    for description, tensors in forgeable_files:
        encoding = description["attributes"].get("encoding_", {"record": [None, {}]})["record"][1]
        numbers = {name for name, array in tensors.items() if array.dtype.kind == "f" and array.size}
        numbers -= set(encoding.get("fill", {}).get("tensor", [])[:1])  # NaN stands for columns that are not filled
        found = {owner: name for owner, name in reversed(list(owners(description))) if name in numbers}
        for owner, name in found.items():
            before = seen.get(owner, 0)
            seen[owner] = max(2, before + 1)
            for value in [NO_NUMBERS[before % 3]] if before else NO_NUMBERS[:2]:
                forged = tensors[name].copy()
                forged.reshape(-1)[0] = value
                assert check_forgery(forged_file, description, tensors | {name: forged}), (description["class"], name, value)
                tried += 1
    assert tried > 200


def changed(node, record, field, value):
    """The description with a field of all records of a class changed; and whether there was one."""
    if isinstance(node, list):
        return [changed(item, record, field, value) for item in node]
    if not isinstance(node, dict):
        return node
    if "record" in node and node["record"][0] == record:
        return {"record": [record, node["record"][1] | {field: value}]}
    return {key: changed(item, record, field, value) for key, item in node.items()}


@pytest.mark.parametrize(
    ("record", "field", "value"),
    [
        ("DenseLayer", "variance", -1.0),
        ("DenseLayer", "variance", 0.0),
        ("DenseLayer", "alpha", -1.0),
        ("CategoricalHead", "temperature", 0.0),
        ("NoiseModel", "df", 1.0),
        ("NoiseModel", "df", {"float": "nan"}),
        ("ProbabilityCalibration", "temperature", -1.0),
        ("RBF", "gamma", -1.0),
        ("RBF", "gamma", {"float": "inf"}),
        ("RBF", "length_scale", {"tuple": [1.0, 0.0, 1.0]}),
    ],
)
def test_numbers_out_of_range_are_refused(forgeable_files, forged_file, record, field, value):
    tried = 0
    for description, tensors in forgeable_files:
        forged = changed(description, record, field, value)
        if forged != description:
            tried += 1
            assert check_forgery(forged_file, forged, tensors)
    assert tried


@pytest.mark.parametrize("parameters", [{"max_iter": -1}, {"friction": 7.0}, {"residuals": "none"}])
def test_parameters_out_of_range_are_refused(forgeable_files, forged_file, parameters):
    description, tensors = forgeable_files[0]
    assert check_forgery(forged_file, description | {"parameters": description["parameters"] | parameters}, tensors)


def peak_of_refusal(path, match=None):
    """The most memory, in bytes, that is taken until a file is refused; a file that is not refused fails the test."""
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=match):
            load(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


MEGABYTES = 64 * 2**20


def header(length: int, text: bytes, rest: bytes = b"") -> bytes:
    return struct.pack("<Q", length) + text + rest


@pytest.mark.parametrize(
    "content",
    [
        header(2**63, b"{}"),
        header(2**40, b"{}"),
        header(0, b""),
        header(2, b"[]"),
        header(2, b"{}"),
        header(60, b'{"t":{"dtype":"F64","shape":[4000000000],"data_offsets":[0,8]}}'[:60]),
        header(63, b'{"t":{"dtype":"F64","shape":[4000000000],"data_offsets":[0,8]}}', b"\0" * 8),
        header(53, b'{"t":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}}'[:53], b"\0" * 8),
        b"",
        b"\x05",
    ],
)
def test_headers_that_lie(content, forged_file):
    forged_file.write_bytes(content)
    assert peak_of_refusal(forged_file) < MEGABYTES


def test_no_more_memory_than_the_file_has_bytes_for(forgeable_files, forged_file):
    description, tensors = forgeable_files[0]
    for node in (
        {"strings": [[1], 500_000_000, ["a"]]},
        {"strings": [[2000], 4000, ["a" * 4000, *[""] * 1999]]},
        {"objects": [[10**12], []]},
        {"number": ["float64", 10**400]},
        [[[] for _ in range(1000)] for _ in range(2000)],
    ):
        forged = description | {"attributes": description["attributes"] | {"feature_names_in_": node}}
        forged_file.write_bytes(container.serialised(forged, tensors))
        size = forged_file.stat().st_size
        assert peak_of_refusal(forged_file) < 10 * size + MEGABYTES


def test_tensors_are_not_read_for_a_class_that_is_not_known(forged_file):
    forged_file.write_bytes(container.serialised({"class": "nope"}, {"t0": np.zeros(2_000_000)}))
    assert peak_of_refusal(forged_file, match="the model is a 'nope'") < 2**20


# -- signatures ---------------------------------------------------------------------------------------------------------------


def test_signed_files(tmp_path):
    model, path = quick(KStoNetRegressor, residuals=None).fit(X, Y), tmp_path / "m.kstonet"
    save(model, path, key="a secret", metadata={"a": 1})
    for key in (None, "a secret", b"a secret"):
        np.testing.assert_array_equal(load(path, key=key).predict(NEW), model.predict(NEW))
        assert read_metadata(path, key=key) == {"a": 1}
    with pytest.raises(ModelFileError, match="signed with another key"):
        load(path, key="another")
    forged = container.read(path)
    path.write_bytes(container.serialised(*forged))  # a right checksum, no signature
    with pytest.raises(ModelFileError, match="is not signed"):
        load(path, key="a secret")
    with pytest.raises(ModelFileError, match="is not signed"):
        read_metadata(path, key="a secret")
    path.write_bytes(container.serialised(*forged, key="another"))
    with pytest.raises(ModelFileError, match="signed with another key"):
        load(path, key="a secret")


@pytest.mark.parametrize("key", ["", b"", 3])
def test_keys_are_checked(key, tmp_path):
    with pytest.raises(TypeError, match="key must be a secret"):
        save(MultiTargetSVR().fit(X, Y), tmp_path / "m.kstonet", key=key)


def test_every_kind_of_model_is_stored(forgeable_files):
    assert {description["class"] for description, _ in forgeable_files if description["version"] == 2} >= LAYOUTS.keys()
