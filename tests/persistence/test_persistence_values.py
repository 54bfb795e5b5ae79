"""Python values survive as JSON; malformed descriptions are refused."""

import json

import numpy as np
import pytest

from kstonet.gram.kernels import Matern
from kstonet.persistence import ModelFileError
from kstonet.storage.values import Decoder, Encoder, NotStorableError

VALUES = [
    None, True, 0, -(2**70), 0.1, -0.0, 5e-324, float("inf"), float("-inf"), "ε\n\0\"", [], (), {}, [1, (2, [None])],
    {1: "a", "b": (2.0,), (1, 2): {"c": []}}, np.float64(0.1), np.float32(0.1), np.int64(3), np.bool_(True), np.str_("s"),
    np.array(3.0), np.empty((0, 4)), np.arange(6.0).reshape(2, 3).T, np.arange(24).reshape(2, 3, 4).swapaxes(0, 1),
    np.arange(24, dtype=np.float32).reshape(2, 3, 4).transpose(2, 0, 1), np.array([True, False]), np.array(["a", "längst"]),
    np.array(["a", "b"], dtype="U9"), np.array(["a", 1, 2.5, True], dtype=object), np.arange(10.0)[::-2],
    np.broadcast_to(np.arange(3.0), (2, 3)), np.arange(4, dtype=">i4"), np.array([], dtype="U3"),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_survive(value):
    encoder = Encoder()
    text = json.dumps(encoder.encode(value), allow_nan=False)
    got = Decoder(encoder.tensors).decode(json.loads(text))
    if isinstance(value, np.ndarray):
        np.testing.assert_array_equal(got, value, strict=value.dtype.isnative)
        if 0 not in value.strides and value.size and value.ndim > 1:  # the same order in memory
            assert np.argsort(got.strides).tolist() == np.argsort(value.strides).tolist()
        if value.dtype == object:
            assert [type(item) for item in got] == [type(item) for item in value]
    else:
        assert repr(got) == (repr(value) if not isinstance(value, np.str_) else repr(str(value)))


def test_nan_survives():
    assert np.isnan(Decoder({}).decode(Encoder().encode(float("nan"))))


@pytest.mark.parametrize(
    "value", [len, object(), {1, 2}, 1j, np.array([1j]), np.array([[]], dtype=object).dtype, b"x", np.datetime64("2020-01-01")]
)
def test_other_values_are_refused(value):
    with pytest.raises(NotStorableError, match=type(value).__name__):
        Encoder().encode([value])


@pytest.mark.parametrize(
    "node",
    [
        {}, {"code": "1"}, {"tuple": 3}, {"dict": [[1]]}, {"dict": [[[], 1]]}, {"float": "1"}, {"number": ["object", 1]},
        {"number": ["float64", "x"]}, {"tensor": ["none", []]}, {"tensor": ["t", [0, 0]]}, {"tensor": ["t", [1, 2]]},
        {"strings": [[3], 1, ["a"]]}, {"strings": [[1], 0, ["a"]]}, {"strings": [[1], 3, [1]]}, {"objects": [[2], [1]]},
        {"activation": "eval"}, {"activation": []}, {"record": ["os.system", {}]}, {"record": ["Scaler", {}]},
        {"record": ["RBF", {"gamma": "x"}]}, {"record": ["RBF", {"beta": 1.0}]}, {"record": ["RBF", []]},
        {"record": ["Scaler", {"mean": {"tensor": ["t", [0, 1]]}, "scale": {"tensor": ["t", [0, 1]]}}]},
        {"record": ["Scaler", {"mean": {"tensor": ["v", [0]]}, "scale": {"tensor": ["w", [0]]}}]},
        {"record": ["UserKernel", {}]},
    ],
    ids=str,
)  # fmt: skip
def test_malformed_descriptions_are_refused(node):
    with pytest.raises(ModelFileError):
        Decoder({"t": np.zeros((2, 3)), "v": np.zeros(2), "w": np.zeros(3)}).decode([node])


def test_fields_added_later_take_their_default():
    assert Decoder({}).decode({"record": ["Matern", {"gamma": 2.0}]}) == Matern(None, 2.0, 1.5)
