"""Blocks of rows whose kernel values fit into a bounded amount of memory."""

from __future__ import annotations

from collections.abc import Iterator

from sklearn import get_config

BLOCK_BYTES = 64 * 2**20  # size of one block of kernel values while building or predicting


def row_blocks(rows: int, columns: int, most: int | None = None, block_bytes: int | None = None) -> Iterator[slice]:
    """Row slices whose float64 blocks stay within ``block_bytes`` (``BLOCK_BYTES``) and scikit-learn's working memory."""
    most_bytes = min(BLOCK_BYTES if block_bytes is None else block_bytes, get_config()["working_memory"] * 2**20)
    step = max(1, int(most_bytes // (8 * max(columns, 1))))
    step = step if most is None else min(step, most)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
