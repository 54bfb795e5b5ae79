"""Missing values inside a graph: what stands in for them, and the indicators that say where they were."""

from __future__ import annotations

import numpy as np

from kstonet._words import quoted
from kstonet.onnx_export.graph import Value, op
from kstonet.tables.columns import CATEGORY
from kstonet.tables.encoding import TableEncoding


def encoded(x: Value, encoding: TableEncoding | None) -> Value:
    """The matrix that a model was trained on, from its features; both have one row per column of the table."""
    if encoding is None:  # a model of an older version
        return x
    categories = [each.name for each in encoding.special.values() if each.kind == CATEGORY]
    if categories:
        raise TypeError(
            f"the model was fitted on categories (columns {quoted(categories)}), and a graph takes numbers. Encode the table "
            "with kstonet.tables.TableEncoder, fit a model on the matrix, and export that; or use kstonet.save."
        )
    missing = op("IsNaN", x)
    fill = np.where(np.isnan(encoding.fill), 0.0, encoding.fill)  # a column without values in training is left out below
    values = op("Where", missing, fill[:, None], x)
    if not encoding.special:
        return values
    both = op("Concat", values, op("Cast", missing, to=x.graph.types.DOUBLE), axis=0)
    return both.take(encoding.sources(), axis=0)
