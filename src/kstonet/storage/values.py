"""Python values to JSON and back: a closed set of types, nothing that runs.

None, booleans, whole numbers, finite floats, strings and lists are what they are in JSON. Everything else is an object with
one key that says what it is:

    {"tuple": [...]}                                {"dict": [[key, value], ...]}
    {"float": "nan"}                                also "inf" and "-inf"
    {"number": [dtype, value]}                      a NumPy scalar
    {"tensor": [name, axes]}                        an array of numbers; axes is its memory order, slowest first
    {"strings": [shape, width, [...]]}              an array of strings of fixed width
    {"objects": [shape, [...]]}                     an array of Python strings and numbers
    {"activation": name}
    {"record": [class, {field: value}]}             a dataclass of :data:`kstonet._records.RECORDS`

The order of an array in memory is kept because it decides which BLAS routine multiplies it: another order gives other last
digits, and a loaded model is to predict the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from kstonet._records import RECORDS
from kstonet.layers.activations import ACTIVATIONS, Activation
from kstonet.storage.errors import ModelFileError
from kstonet.storage.records import check_record

#: Types of tensors and of NumPy scalars.
DTYPES = (
    "float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool",
)  # fmt: skip
SMALL, GENEROUS = 2**20, 10  # bytes that an array of strings may always have, and bytes per byte of the file
NOT_FINITE = ("nan", "inf", "-inf")


class NotStorableError(TypeError):
    """A value that no file can hold without code; ``value`` is the innermost one."""

    def __init__(self, value: Any) -> None:
        super().__init__(f"{value!r:.200} of type {type(value).__name__}")
        self.value = value


class Encoder:
    """Values to JSON; the arrays met on the way are collected in ``tensors``, each once."""

    def __init__(self) -> None:
        self.tensors: dict[str, np.ndarray] = {}
        self._seen: dict[int, tuple[np.ndarray, dict[str, Any]]] = {}  # holds the arrays: an id is unique while its owner lives

    def encode(self, value: Any) -> Any:
        """One value; raises NotStorableError."""
        if isinstance(value, np.generic):  # before the Python types: np.float64 is a float, np.str_ a str
            return self._scalar(value)
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if type(value) is list:
            return [self.encode(item) for item in value]
        if type(value) is tuple:
            return {"tuple": [self.encode(item) for item in value]}
        if type(value) is dict:
            return {"dict": [[self.encode(key), self.encode(item)] for key, item in value.items()]}
        if type(value) is np.ndarray:
            return self._array(value)
        if isinstance(value, Activation) and ACTIVATIONS.get(value.name) is value:
            return {"activation": value.name}
        if RECORDS.get(type(value).__name__) is type(value):
            content = {field.name: self.encode(getattr(value, field.name)) for field in fields(value)}
            return {"record": [type(value).__name__, content]}
        raise NotStorableError(value)

    def _scalar(self, value: np.generic) -> Any:
        if isinstance(value, np.str_):
            return str(value)
        if value.dtype.name not in DTYPES:
            raise NotStorableError(value)
        return {"number": [value.dtype.name, self.encode(value.item())]}

    def _array(self, array: np.ndarray) -> Any:
        if array.dtype.kind == "U":
            return {"strings": [list(array.shape), array.dtype.itemsize // 4, array.ravel().tolist()]}
        if array.dtype.kind == "O":
            items = array.ravel().tolist()
            for item in items:
                if not isinstance(item, str | int | float | np.generic):  # labels and names, no containers
                    raise NotStorableError(item)
            return {"objects": [list(array.shape), [self.encode(item) for item in items]]}
        if array.dtype.name not in DTYPES:
            raise NotStorableError(array)
        if id(array) not in self._seen:
            axes = list(range(array.ndim))
            if not array.flags.c_contiguous:
                axes.sort(key=lambda axis: -abs(array.strides[axis]))
            name = f"t{len(self.tensors)}"
            self.tensors[name] = np.asarray(array.transpose(axes), dtype=array.dtype.newbyteorder("="), order="C")
            self._seen[id(array)] = (array, {"tensor": [name, axes]})
        return self._seen[id(array)][1]


class Decoder:
    """JSON back to values. What does not have the form that :class:`Encoder` writes raises ModelFileError."""

    def __init__(self, tensors: dict[str, np.ndarray]) -> None:
        self._tensors = tensors
        self.used: set[str] = set()

    def decode(self, node: Any) -> Any:
        """One value."""
        if node is None or isinstance(node, bool | int | float | str):
            return node
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        makers: dict[str, Callable[[Any], Any]] = {
            "tuple": lambda content: tuple(self.decode(item) for item in content),
            "dict": lambda content: {self.decode(key): self.decode(value) for key, value in content},
            "float": self._not_finite,
            "number": self._scalar,
            "tensor": self._tensor,
            "strings": self._strings,
            "objects": self._objects,
            "activation": self._activation,
            "record": self._record,
        }
        if not (isinstance(node, dict) and len(node) == 1 and next(iter(node)) in makers):
            raise ModelFileError(f"the description holds {node!r:.80}, which this version of kstonet does not know.")
        ((tag, content),) = node.items()
        try:
            return makers[tag](content)
        except ModelFileError:
            raise
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError) as error:
            raise ModelFileError(f"the description holds a malformed {tag}: {content!r:.80}.") from error

    @staticmethod
    def _not_finite(content: Any) -> float:
        if content not in NOT_FINITE:
            raise ValueError
        return float(content)

    def _scalar(self, content: Any) -> Any:
        name, value = content
        if name not in DTYPES:
            raise ValueError
        return np.dtype(name).type(self.decode(value))

    def _tensor(self, content: Any) -> np.ndarray:
        name, axes = content
        array = self._tensors[name]
        if sorted(axes) != list(range(array.ndim)):
            raise ValueError
        self.used.add(name)
        return array.transpose(np.argsort(axes)) if axes != sorted(axes) else array

    @staticmethod
    def _strings(content: Any) -> np.ndarray:
        shape, width, items = content
        if not all(isinstance(item, str) for item in items) or width < max(map(len, items), default=0):
            raise ValueError
        if 4 * width * len(items) > SMALL + GENEROUS * (sum(map(len, items)) + 3 * len(items)):
            raise ValueError  # more memory than the file has bytes for
        return np.array(items, dtype=f"U{int(width)}").reshape(shape)

    def _objects(self, content: Any) -> np.ndarray:
        shape, items = content
        array = np.empty(len(items), dtype=object)
        array[:] = [self.decode(item) for item in items]
        return array.reshape(shape)

    @staticmethod
    def _activation(content: Any) -> Activation:
        return ACTIVATIONS[content]

    def _record(self, content: Any) -> Any:
        name, given = content
        record = RECORDS.get(name)
        if record is None:
            raise ModelFileError(
                f"it holds a {name!r:.80}, a class that is not known here. Import the module that defines it before you load "
                "the model, or update kstonet."
            )
        known = {field.name: field for field in fields(record)}
        needed = {key for key, field in known.items() if field.default is MISSING and field.default_factory is MISSING}
        if not needed <= given.keys() <= known.keys():
            unlike = ", ".join(sorted(given.keys() ^ known.keys()))
            raise ModelFileError(f"{name} in the file and in this version of kstonet differ in: {unlike}. Update kstonet.")
        value = record(**{key: self.decode(item) for key, item in given.items()})
        check_record(value)
        return value
