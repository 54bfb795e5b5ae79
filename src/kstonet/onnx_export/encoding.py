"""Tables inside a graph: what stands in for missing values, the indicators of where they were, and categories as 0 and 1."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from kstonet._words import quoted
from kstonet.onnx_export.graph import Graph, Value, op, product
from kstonet.tables.columns import CATEGORY, NUMBER
from kstonet.tables.encoding import EMPTY, ColumnEncoding, TableEncoding
from kstonet.tables.expected import STEPS, TINY


def categories_of(encoding: TableEncoding | None) -> list[int]:
    """The places of the columns that hold categories."""
    return [] if encoding is None else [j for j, each in sorted(encoding.special.items()) if each.kind == CATEGORY]


def encoded(x: Value, encoding: TableEncoding | None) -> Value:
    """The matrix that a model was trained on, from its features; both have one row per column of the table."""
    if encoding is None:  # a model of an older version
        return x
    categories = [encoding.special[j].name for j in categories_of(encoding)]
    if categories:
        raise TypeError(
            f"the last step of the pipeline takes categories (columns {quoted(categories)}), which the steps before it do not "
            "keep inside a graph; export the last step, model[-1]."
        )
    missing = op("IsNaN", x)
    fill = np.where(np.isnan(encoding.fill), 0.0, encoding.fill)  # a column without values in training is left out below
    values = op("Where", missing, fill[:, None], x)
    if not encoding.special and encoding.expected is None:
        return values
    gone = op("Cast", missing, to=x.graph.types.DOUBLE)
    matrix = op("Concat", values, gone, axis=0).take(encoding.sources(), axis=0)
    return _completed(matrix, gone.take(encoding.owners(), axis=0), encoding)


def encoded_table(graph: Graph, encoding: TableEncoding, names: list[str], dtype: str, metadata: dict[str, str]) -> Value:
    """The matrix of a table with categories: the other columns are the input X, the categories the input ``categories``.

    ``metadata`` is told the names of the columns of both.
    """
    texts = categories_of(encoding)
    others = [j for j in range(len(names)) if j not in texts]
    metadata["category_names"] = json.dumps([names[j] for j in texts])
    given = graph.input("categories", len(texts), np.object_)
    rows: dict[int, Any] = {}
    gone: dict[int, Any] = {}
    for place, j in enumerate(texts):
        rows[j] = _categories(given.take(np.array([place]), axis=1), encoding.column(j, names[j]))
    if others:
        metadata["feature_names"] = json.dumps([names[j] for j in others])
        x = graph.input("X", len(others), dtype).transposed()
        for place, j in enumerate(others):
            rows[j] = _numbers(x.take(np.array([place]), axis=0), encoding.column(j, names[j]))
            gone[j] = op("Cast", op("IsNaN", x.take(np.array([place]), axis=0)), to=graph.types.DOUBLE)
    parts = [part for j in range(len(names)) for part in rows[j]]
    matrix = parts[0] if len(parts) == 1 else op("Concat", *parts, axis=0)
    if encoding.expected is None:
        return matrix
    none = 0.0 * matrix.take(np.array([0]), axis=0)
    return _completed(matrix, op("Concat", *(gone.get(j, none) for j in encoding.owners().tolist()), axis=0), encoding)


def _completed(matrix: Value, gone: Value, encoding: TableEncoding) -> Value:
    """With what is expected of missing numbers, as :meth:`~kstonet.tables.expected.ExpectedValues.fill` finds it.

    ``gone`` is one where a value of the matrix is missing, and otherwise zero. Only numbers are expected from the others.
    """
    expected = encoding.expected
    if expected is None:
        return matrix
    places = np.flatnonzero(encoding.valued)[expected.columns]
    numbers = np.array([encoding.column(j, "").kind == NUMBER for j in encoding.owners()[places].tolist()], dtype=np.float64)
    mean, scale, gone = expected.mean[:, None], expected.scale[:, None], gone.take(places, axis=0) * numbers[:, None]
    u = (matrix.take(places, axis=0) - mean) / scale * (1.0 - gone)
    residual = -product(expected.partial, u) * gone
    direction, square = residual, residual.sum_of_squares()
    for _ in range(min(STEPS, len(places))):
        image = product(expected.partial, direction) * gone
        step = square / (direction * image).sum(0, keepdims=True).maximum(TINY)
        u, residual = u + step * direction, residual - step * image
        last, square = square, residual.sum_of_squares()
        direction = residual + square / last.maximum(TINY) * direction
    filled = op("Where", op("Cast", gone, to=gone.graph.types.BOOL), mean + scale * u, matrix.take(places, axis=0))
    order = np.arange(encoding.n_outputs)
    order[places] = encoding.n_outputs + np.arange(len(places))
    return op("Concat", matrix, filled, axis=0).take(order, axis=0)


def _numbers(column: Value, own: ColumnEncoding) -> list[Value]:
    """Values and indicator of one column, (1, n) each."""
    missing = op("IsNaN", column)
    values = [] if own.kind == EMPTY else [op("Where", missing, np.array([[own.fill or 0.0]], dtype=np.float64), column)]
    return [*values, op("Cast", missing, to=column.graph.types.DOUBLE)] if own.indicated else values


def _categories(column: Value, own: ColumnEncoding) -> list[Value]:
    """Zeros and ones of the categories of one column, (n, 1); the empty text is a missing one.

    The numbers are transposed, not the text: of a single column of text, onnxruntime 1.31 moves the first row only.
    """
    known = list(own.categories)
    gone = known.index(str(own.fill)) if own.fill is not None else len(known) if own.indicated else -1
    codes = op(
        "LabelEncoder",
        column,
        keys_strings=[*known, ""],
        values_int64s=[*range(len(known)), gone],
        default_int64=-1,
        domain="ai.onnx.ml",
    )
    ones = op("Equal", codes.transposed(), np.arange(len(own.outputs))[:, None])
    return [op("Cast", ones, to=column.graph.types.DOUBLE)]
