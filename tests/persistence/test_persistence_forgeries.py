"""Whatever a forged file says, with a right checksum, loading it gives a model or a ModelFileError: never another error."""

from dataclasses import fields
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from model_files import LABELS, X, Y, quick
from numpy.typing import NDArray

from kstonet import KStoNetClassifier, KStoNetRegressor, MultiTargetSVR, StoNetRegressor
from kstonet._records import RECORDS, SHAPES
from kstonet.persistence import ModelFileError, load, save
from kstonet.storage import container
from kstonet.storage.records import fits
from kstonet.trained import TrainedNetwork

STORED = Path(__file__).parents[1] / "reference" / "stored"  # files of version 1
MODELS = {
    1: [lambda name=name: STORED / f"{name}.kstonet" for name in ("regressor_units", "classifier_three", "stonet_loo")],
    2: [
        lambda: quick(KStoNetRegressor, hidden_layer_sizes=(3, 2), gamma=[0.1, 0.1, 1.0]).fit(X, Y),
        lambda: quick(KStoNetClassifier, hidden_layer_sizes=(3,)).fit(X, LABELS, np.linspace(0.5, 1.5, len(X))),
        lambda: quick(StoNetRegressor, hidden_layer_sizes=(3,)).fit(X, Y[:, 0]),
        lambda: MultiTargetSVR(length_scale=[1.0, 2.0, 3.0]).fit(X, Y),
    ],
}
UNKNOWN = {"record": ["Nonesuch", {}]}
CODE = {"code": "1"}
WRONG = [None, "x", -1, 0.5, True, [], {"tuple": []}, {"dict": []}, {"float": "nan"}, {"tensor": ["none", []]}]


@pytest.fixture(scope="module", params=MODELS)
def files(request, tmp_path_factory):
    """Descriptions and tensors of the files of a version."""
    path, found = tmp_path_factory.mktemp("stored") / "m.kstonet", []
    for make in MODELS[request.param]:
        source = make()
        if not isinstance(source, Path):
            save(source, path)
            source = path
        found.append(container.read(source))
        assert found[-1][0]["version"] == request.param
    return found


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """Whether a model with a changed description or changed tensors is refused, with a ModelFileError."""
    path = tmp_path_factory.mktemp("forged") / "m.kstonet"

    def refused(description, tensors):
        path.write_bytes(container.serialised(description, tensors))
        try:
            load(path)
        except ModelFileError:
            return True
        return False

    return refused


def test_files_that_are_not_forged_are_read(files, refused):
    for description, tensors in files:
        assert not refused(description, tensors)


def records(node, places=()):
    """Where the records of a description are, and their classes."""
    children = enumerate(node) if isinstance(node, list) else node.items() if isinstance(node, dict) else ()
    if isinstance(node, dict) and "record" in node:
        yield places, node["record"][0]
    for key, child in children:
        yield from records(child, (*places, key))


def at(node, places):
    for place in places:
        node = node[place]
    return node


def classes_of(description):
    """One record of every class that the attributes are made of."""
    found = {}
    for places, name in records(description["attributes"]):
        found.setdefault(name, places)
    return found


def first_of_every_class(files):
    """One record of every class: its name, the file it is in, and its place."""
    seen = set()
    for description, tensors in files:
        for name, places in classes_of(description).items():
            if name not in seen:
                yield name, description, tensors, places
        seen |= classes_of(description).keys()


def with_value(node, places, value):
    """The description with another value in one place; what lies beside the way there is shared, not copied."""
    place, *rest = places
    forged = node.copy()
    forged[place] = with_value(node[place], rest, value) if rest else value
    return forged


def with_field(description, places, field, value):
    return with_value(description, ("attributes", *places, "record", 1, field), value)


def test_fields_of_a_wrong_kind(files, refused):
    """Every field of every class that a file holds, with values of other kinds; no error but a ModelFileError comes out.

    Classes and code that are not known in every field, the other values in turn; tests/long/test_forged_files.py has them all.
    """
    for name, description, tensors, places in first_of_every_class(files):
        for turn, field in enumerate(fields(RECORDS[name])):
            for value in (UNKNOWN, CODE, *WRONG[turn % 3 :: 3]):
                was_refused = refused(with_field(description, places, field.name, value), tensors)
                assert was_refused or value not in (UNKNOWN, CODE), (name, field.name, value)


def test_missing_and_unknown_fields(files, refused):
    for name, description, tensors, places in first_of_every_class(files):
        forged = with_field(description, places, "nonesuch", 1.0)
        assert refused(forged, tensors), name
        for field in at(description["attributes"], places)["record"][1]:
            forged = with_field(description, places, field, None)
            del at(forged["attributes"], places)["record"][1][field]
            refused(forged, tensors)  # where the field has a default, the model may do without it


def test_records_of_another_class(files, refused):
    """A record in the place of another, every third of them in turn, and a class that is not known."""
    for turn, (name, description, tensors, places) in enumerate(first_of_every_class(files)):
        forged = with_value(description, ("attributes", *places, "record", 0), "Nonesuch")
        assert refused(forged, tensors), name
        for other, where in list(classes_of(description).items())[turn % 3 :: 3]:
            if places and other != name and not fits_instead(other, name):
                forged = with_value(description, ("attributes", *places), at(description["attributes"], where))
                assert refused(forged, tensors), (name, other)


def fits_instead(other, name):
    """Whether a class may stand where another did: kernels for kernels."""
    return RECORDS[other].__mro__[-2] is RECORDS[name].__mro__[-2]


def arrays(node, owner=None):
    """The arrays of a description: the class and the field, or the attribute, that each is in, and its name."""
    if isinstance(node, dict) and "tensor" in node:
        yield owner, node["tensor"][0]
    elif isinstance(node, dict) and "record" in node:
        name, stored = node["record"]
        for field, child in stored.items():
            yield from arrays(child, (name, field))
    elif isinstance(node, dict | list):
        for key, child in node.items() if isinstance(node, dict) else enumerate(node):
            yield from arrays(child, owner or key)


def test_arrays_of_other_shapes_and_types(files, refused):
    """One array of every field of every class that a file holds, and of every attribute."""
    for description, tensors in files:
        found = list(arrays(description["attributes"]))
        assert {name for _, name in found} == tensors.keys()
        for name in dict(reversed(found)).values():  # the first of those in the same field
            array = tensors[name]
            for other in (
                np.concatenate([array, array[-1:]]),
                array[:0],
                array[None],
                array.reshape(-1)[:1].reshape(()),
                array.astype(np.int64) if array.dtype.kind == "f" else array.astype(np.float64),
            ):
                refused(description, tensors | {name: other})


def test_shapes_that_are_declared_are_kept(files, refused):
    """A longer array where a class declares its shape is always refused."""
    for name, description, tensors, places in first_of_every_class(files):
        for field in SHAPES[name]:
            node = at(description["attributes"], places)["record"][1].get(field)
            if isinstance(node, dict) and "tensor" in node:
                key, axes = node["tensor"]
                assert refused(description, tensors | {key: tensors[key][None]}), (name, field)
                forged = with_field(description, places, field, {"tensor": [key, [*axes, len(axes)]]})
                assert refused(forged, tensors), (name, field)


def test_attributes_of_a_wrong_kind(files, refused):
    """Classes and code that are not known in every attribute, the other values in turn, as in fields."""
    for description, tensors in files:
        for turn, name in enumerate(description["attributes"]):
            for value in (UNKNOWN, CODE, *WRONG[turn % 3 :: 3]):
                refused(with_value(description, ("attributes", name), value), tensors)
            others = {other: value for other, value in description["attributes"].items() if other != name}
            refused(description | {"attributes": others}, tensors)


def test_a_network_is_stored_as_one_record(tmp_path):
    """Version 2: everything that was learnt is in ``trained_``, field by field; how tables are read is beside it."""
    model = quick(KStoNetRegressor).fit(X, Y)
    save(model, tmp_path / "m.kstonet")
    description, _ = container.read(tmp_path / "m.kstonet")
    assert description["version"] == 2
    assert description["attributes"].keys() == {"trained_", "encoding_", "n_features_in_"}
    name, stored = description["attributes"]["trained_"]["record"]
    assert name == TrainedNetwork.__name__
    assert stored.keys() == {field.name for field in fields(TrainedNetwork)}
    loaded = load(tmp_path / "m.kstonet").trained_
    assert (loaded.n_iter, loaded.residuals, loaded.history) == (3, "local", model.history_)


@pytest.mark.parametrize("path", sorted(STORED.glob("*.kstonet")), ids=lambda path: path.stem)
def test_files_of_version_1_become_version_2(path, tmp_path):
    model = load(path)
    save(model, tmp_path / "m.kstonet")
    description, _ = container.read(tmp_path / "m.kstonet")
    assert (container.read(path)[0]["version"], description["version"]) == (1, 2)
    rows = np.random.default_rng(0).normal(size=(4, model.n_features_in_))
    np.testing.assert_array_equal(load(tmp_path / "m.kstonet").predict(rows), model.predict(rows))


def test_annotations_that_a_class_from_outside_may_use():
    assert fits("a", Literal["a", "b"])
    assert not fits("c", Literal["a", "b"])
    assert fits(np.zeros(2), NDArray[np.float64])
    assert not fits([0.0], NDArray[np.float64])
    assert fits((1, "a"), tuple[int, str])
    assert not fits((1, 2), tuple[int, str])
    assert not fits((1,), tuple[int, str])
