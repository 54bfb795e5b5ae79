"""One-vs-one SVM and one-vs-rest kernel ridge regression with the RBF kernel, C (or ridge) and gamma by cross-validation.

The search is on some of the training rows and the final fit on all of them: a search on 20,000 rows is an hour of SVMs.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

SEARCHED_ROWS = 2000
FOLDS = 3
GAMMAS = (1.0, 3.0, 10.0)  # of gamma="scale"
GRIDS: dict[str, tuple[float, ...]] = {"C": (1.0, 10.0, 100.0), "ridge": (1e-2, 0.1, 1.0)}


class RidgeMachine(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The class whose indicator has the largest kernel ridge regression, in float32."""

    def __init__(self, ridge: float = 0.1, gamma: float = 1.0) -> None:
        self.ridge = ridge
        self.gamma = gamma

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Solve for the coefficients of all classes at once."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        indicators = np.eye(len(self.classes_), dtype=np.float32)[codes]
        self._level = indicators.mean(axis=0)
        self._X = X.astype(np.float32)
        matrix = self._kernel(self._X)
        matrix.flat[:: len(X) + 1] += self.ridge
        self._coef = cho_solve(cho_factor(matrix, overwrite_a=True, check_finite=False), indicators - self._level)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Labels, in blocks of bounded memory."""
        blocks = np.array_split(X.astype(np.float32), max(1, len(X) // 1000))
        return np.concatenate(
            [self.classes_[(self._kernel(part) @ self._coef + self._level).argmax(axis=1)] for part in blocks]
        )

    def _kernel(self, X: np.ndarray) -> np.ndarray:
        squares = (X**2).sum(axis=1)[:, None] + (self._X**2).sum(axis=1) - 2.0 * X @ self._X.T
        np.maximum(squares, 0.0, out=squares)
        return np.exp(np.multiply(squares, -self.gamma, out=squares), out=squares)


def searched(machine: str, X: np.ndarray, y: np.ndarray) -> tuple[Any, dict[str, float]]:
    """A machine fitted to all rows, and its settings, by the accuracy in folds of at most ``SEARCHED_ROWS`` of them.

    Parameters
    ----------
    machine : {"C", "ridge"}
        "C" is the SVM and "ridge" the kernel ridge regression, each with the grid of this name.
    X : ndarray of shape (n, p)
    y : ndarray of shape (n,)
    """
    made = SVC(cache_size=1000) if machine == "C" else RidgeMachine()
    grid = {machine: GRIDS[machine], "gamma": [step / (X.shape[1] * X.var()) for step in GAMMAS]}
    some = np.random.default_rng(0).permutation(len(X))[:SEARCHED_ROWS]
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    search = GridSearchCV(made, grid, cv=folds, refit=False).fit(X[some], y[some])
    settings = {name: float(value) for name, value in search.best_params_.items()}
    return made.set_params(**settings).fit(X, y), settings
