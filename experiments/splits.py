"""Original splits whose test rows cannot be used for a choice by accident.

A split shows its training rows only. Finished models are handed to :meth:`Split.judge`, all at once and once: it scores them on
the test rows and closes the split, so that nothing can be fitted or chosen after a test score is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kstonet import datasets


class Split:
    """One split of a data set.

    Parameters
    ----------
    X, y : ndarray
        All rows.
    train, test : ndarray of int
        Row numbers, without a row in common.
    """

    def __init__(self, X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> None:
        if np.intersect1d(train, test).size:
            raise ValueError("train and test have rows in common; they must not.")
        self._rows: tuple[np.ndarray, np.ndarray] | None = X[train], y[train]
        self._test = X[test], y[test]

    @classmethod
    def load(cls, name: str, number: int, data: str | None, rows: int | None = None) -> Split:
        """An original split of one of the sets of :mod:`kstonet.datasets`, with all or some of its training rows."""
        bunch = datasets.load(name, data_home=data)
        X, y = np.asarray(bunch.data, dtype=np.float64), np.asarray(bunch.target)
        y = y if y.dtype.kind in "OSU" else y.astype(np.float64)
        train = bunch.train_idx[number]
        if rows is not None:
            train = np.random.default_rng(0).permutation(train)[:rows]
        return cls(X, y, train, bunch.test_idx[number])

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Training rows (X, y), as long as nothing was judged."""
        if self._rows is None:
            raise RuntimeError("this split is closed: its test rows have been looked at. Load it again for another experiment.")
        return self._rows

    def judge(
        self, models: Mapping[str, Any], scores: Callable[[Any, np.ndarray, np.ndarray], dict[str, Any]]
    ) -> dict[str, dict[str, Any]]:
        """Scores of fitted models on the test rows, by the models' names. A split can be judged once."""
        _ = self.rows  # closed splits refuse
        self._rows = None
        X, y = self._test
        return {name: scores(model, X, y) for name, model in models.items()}
