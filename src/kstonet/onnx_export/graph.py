"""A small language for ONNX graphs: tensors with arithmetic, so that a formula here reads like the NumPy one it repeats.

    x = graph.input("X", features)
    distances = op("Abs", x - centre)         # any ONNX operator by its name
    values = weights @ op("Exp", -gamma * distances)

Arrays and numbers among the operands become constants. The same operation on the same operands is one node.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from kstonet._words import readable_bytes

ML_OPSET = 2  # of the operators of machine learning, with LabelEncoder for all types
OPSET, IR_VERSION = 17, 8  # of 2022, so that runtimes need not be the newest; onnxruntime 1.15 to 1.31 are tried
LARGEST = 2**31 - 2**20  # bytes of a protobuf message, less some room for the nodes


class Value:
    """A tensor of a graph under construction."""

    __array_ufunc__ = None  # an ndarray on the left hands the operation over

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def __add__(self, other: Any) -> Value:
        return op("Add", self, _number(other))

    def __sub__(self, other: Any) -> Value:
        return op("Sub", self, _number(other))

    def __rsub__(self, other: Any) -> Value:
        return op("Sub", _number(other), self)

    def __mul__(self, other: Any) -> Value:
        return op("Mul", self, _number(other))

    def __truediv__(self, other: Any) -> Value:
        return op("Div", self, _number(other))

    def __rtruediv__(self, other: Any) -> Value:
        return op("Div", _number(other), self)

    def __rmatmul__(self, other: np.ndarray) -> Value:
        return op("MatMul", other, self)

    def __neg__(self) -> Value:
        return op("Neg", self)

    def __pow__(self, exponent: float) -> Value:
        return op("Pow", self, float(exponent))

    def __abs__(self) -> Value:
        return op("Abs", self)

    __radd__ = __add__
    __rmul__ = __mul__

    def exp(self) -> Value:
        """Exponential function."""
        return op("Exp", self)

    def log(self) -> Value:
        """Natural logarithm."""
        return op("Log", self)

    def sqrt(self) -> Value:
        """Square root."""
        return op("Sqrt", self)

    def sign(self) -> Value:
        """-1, 0 or 1."""
        return op("Sign", self)

    def minimum(self, most: float) -> Value:
        """The smaller of a value and a number."""
        return op("Min", self, most)

    def maximum(self, least: float) -> Value:
        """The larger of a value and a number."""
        return op("Max", self, least)

    def arccos(self) -> Value:
        """The angle in [0, π] of a cosine, to the last digits of float64: onnxruntime's own is of float32.

        θ = θ₀ + arcsin(sin(θ - θ₀)) with θ₀ of float32; the arcsine of so small a number is the number.
        """
        types = self.graph.types
        sine = ((1.0 - self) * (1.0 + self)).sqrt()
        start = op("Cast", op("Acos", op("Cast", self, to=types.FLOAT)), to=types.DOUBLE)
        return start + sine * op("Sin", 0.5 * math.pi - start) - self * op("Sin", start)

    def left_product(self, matrix: np.ndarray, *bias: np.ndarray) -> Value:
        """A constant matrix times this one, plus a column."""
        return product(matrix, self, *bias)

    def split(self, rows: int) -> tuple[Value, ...]:
        """The rows of a matrix, shape (1, n) each."""
        return self.graph.node("Split", [self], {"axis": 0}, outputs=rows) if rows > 1 else (self,)

    def sum(self, axis: int, *, keepdims: bool = False) -> Value:
        """Sum along one axis."""
        return op("ReduceSum", self, [axis], keepdims=int(keepdims))

    def sum_of_squares(self) -> Value:
        """Of every column, shape (1, n)."""
        return op("ReduceSumSquare", self, axes=[0], keepdims=1)

    def mean(self, axis: int) -> Value:
        """Mean along one axis."""
        return op("ReduceMean", self, axes=[axis], keepdims=0)

    def take(self, indices: np.ndarray | Value, axis: int) -> Value:
        """Entries along one axis."""
        return op("Gather", self, indices, axis=axis)

    def transposed(self) -> Value:
        """Rows and columns of a matrix exchanged."""
        return op("Transpose", self, perm=[1, 0])

    def reshaped(self, *shape: int) -> Value:
        """Another shape; -1 takes what is left."""
        return op("Reshape", self, shape)

    def with_axis(self, axis: int) -> Value:
        """A new axis of length one."""
        return op("Unsqueeze", self, [axis])


def op(kind: str, *operands: Any, **attributes: Any) -> Value:
    """Add an ONNX operation to the graph its operands belong to."""
    graph = next(operand.graph for operand in operands if isinstance(operand, Value))
    return graph.node(kind, operands, attributes)[0]


def product(matrix: np.ndarray, x: Value, *bias: np.ndarray) -> Value:
    """A constant matrix times a matrix, plus a column.

    A Gemm: factors beside a MatMul onnxruntime folds into it, rounded to float32.
    """
    return op("Gemm", matrix, x, *bias)


def _number(operand: Any) -> Any:
    """Constants of arithmetic are float64, whatever a formula writes."""
    return operand if isinstance(operand, Value) else np.asarray(operand, dtype=np.float64)


@dataclass(frozen=True)
class Output:
    """What a graph gives back: for every row one number or label, or an array of a ``shape``."""

    value: Value
    shape: tuple[int, ...] = ()
    dtype: Any = np.float64


def storable(values: Any) -> np.ndarray:
    """An array of float64, int64, bool, or of Python strings.

    Examples
    --------
    >>> storable([1, 2]).dtype, storable(0.5).dtype, storable(["a"]).dtype
    (dtype('int64'), dtype('float64'), dtype('O'))
    """
    array = np.asarray(values)
    types: dict[str, type] = {"f": np.float64, "i": np.int64, "u": np.int64, "b": np.bool_, "U": object, "O": object}
    return array.astype(types[array.dtype.kind])


class Graph:
    """Nodes and constants collected so far."""

    def __init__(self) -> None:
        self._onnx = import_onnx()
        self._nodes: list[Any] = []
        self._inputs: list[Any] = []
        self._constants: dict[tuple[Any, ...], Any] = {}
        self._made: dict[str, tuple[Value, ...]] = {}
        self._scope = ""

    @property
    def types(self) -> Any:
        """ONNX's numbers of the types of tensors."""
        return self._onnx.TensorProto

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Names made inside start with ``name/``, for those who inspect the graph."""
        outer, self._scope = self._scope, f"{self._scope}{name}/"
        try:
            yield
        finally:
            self._scope = outer

    def input(self, name: str, columns: int, dtype: Any = np.float64) -> Value:
        """Rows that the graph is handed, any number of them: text, or numbers as float64 whatever their own type is."""
        kind = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self._inputs.append(self._onnx.helper.make_tensor_value_info(name, kind, ["rows", columns]))
        rows = Value(self, name)
        return rows if kind in (self.types.DOUBLE, self.types.STRING) else op("Cast", rows, to=self.types.DOUBLE)

    def constant(self, array: Any) -> Value:
        """An array that comes with the graph."""
        array = storable(array)
        content = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
        key = (array.dtype.kind, array.shape, hashlib.sha256(content).digest())
        if key not in self._constants:
            name = f"{self._scope}constant_{len(self._constants)}"
            self._constants[key] = self._onnx.numpy_helper.from_array(array, name)
        return Value(self, self._constants[key].name)

    def node(self, kind: str, operands: Sequence[Any], attributes: dict[str, Any], outputs: int = 1) -> tuple[Value, ...]:
        """Add an operation with one or more outputs."""
        names = [(operand if isinstance(operand, Value) else self.constant(operand)).name for operand in operands]
        key = repr((kind, names, sorted(attributes.items()), outputs))
        if key not in self._made:
            name = f"{self._scope}{kind}_{len(self._nodes)}"
            made = tuple(Value(self, name if outputs == 1 else f"{name}_{k}") for k in range(outputs))
            self._nodes.append(self._onnx.helper.make_node(kind, names, [value.name for value in made], name, **attributes))
            self._made[key] = made
        return self._made[key]

    def finished(self, outputs: dict[str, Output], metadata: dict[str, str], **producer: str) -> bytes:
        """The content of a file."""
        helper = self._onnx.helper
        size = sum(len(constant.raw_data) for constant in self._constants.values())
        if size > LARGEST:
            raise ValueError(
                f"the model holds {readable_bytes(size)} of support vectors and factors, and an ONNX file at most 2 GiB. "
                "Export means only, with return_std=False, or fit with fewer rows or units."
            )
        infos = []
        for name, output in outputs.items():
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(output.dtype))
            if kind == self.types.FLOAT:  # everything is computed in float64
                self._nodes.append(helper.make_node("Cast", [output.value.name], [name], f"output/{name}", to=kind))
            else:
                self._nodes.append(helper.make_node("Identity", [output.value.name], [name], f"output/{name}"))
            infos.append(helper.make_tensor_value_info(name, kind, ["rows", *output.shape]))
        graph = helper.make_graph(self._nodes, "prediction", self._inputs, infos, list(self._constants.values()))
        domains = {"": OPSET} | {node.domain: ML_OPSET for node in self._nodes if node.domain}
        opsets = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
        proto = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, **producer)
        helper.set_model_props(proto, metadata)
        return bytes(proto.SerializeToString(deterministic=True))


def import_onnx() -> Any:
    """The package onnx, or what to do to have it."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError("exporting models needs the package onnx: pip install 'kstonet[onnx]'.") from error
    return onnx
