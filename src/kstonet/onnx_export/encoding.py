"""Tables inside a graph: what stands in for missing values, the indicators of where they were, and categories as 0 and 1."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from kstonet._words import quoted
from kstonet.onnx_export.graph import Graph, Value, op
from kstonet.tables.columns import CATEGORY
from kstonet.tables.encoding import EMPTY, ColumnEncoding, TableEncoding


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
    if not encoding.special:
        return values
    both = op("Concat", values, op("Cast", missing, to=x.graph.types.DOUBLE), axis=0)
    return both.take(encoding.sources(), axis=0)


def encoded_table(graph: Graph, encoding: TableEncoding, names: list[str], dtype: str, metadata: dict[str, str]) -> Value:
    """The matrix of a table with categories: the other columns are the input X, the categories the input ``categories``.

    ``metadata`` is told the names of the columns of both.
    """
    texts = categories_of(encoding)
    others = [j for j in range(len(names)) if j not in texts]
    metadata["category_names"] = json.dumps([names[j] for j in texts])
    given = graph.input("categories", len(texts), np.object_)
    rows: dict[int, Any] = {}
    for place, j in enumerate(texts):
        rows[j] = _categories(given.take(np.array([place]), axis=1), encoding.column(j, names[j]))
    if others:
        metadata["feature_names"] = json.dumps([names[j] for j in others])
        x = graph.input("X", len(others), dtype).transposed()
        for place, j in enumerate(others):
            rows[j] = _numbers(x.take(np.array([place]), axis=0), encoding.column(j, names[j]))
    parts = [part for j in range(len(names)) for part in rows[j]]
    return parts[0] if len(parts) == 1 else op("Concat", *parts, axis=0)


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
