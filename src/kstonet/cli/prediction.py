"""Predictions as a table."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import chain, count
from typing import Any

import numpy as np
import pandas as pd

from kstonet import KStoNetClassifier
from kstonet._files import without_formula
from kstonet._words import did_you_mean, quoted
from kstonet.plotting.inputs import Predicted
from kstonet.tables import InputError
from kstonet.uncertainty.distribution import probabilities


def prediction_table(model: Any, X: Any, levels: list[float], targets: Sequence[str] = ()) -> pd.DataFrame:
    """Means or classes with their uncertainty, one row per row of ``X``.

    Parameters
    ----------
    model : KStoNetRegressor or KStoNetClassifier
        The fitted model.
    X : DataFrame or ndarray of shape (n_rows, n_features)
        Rows to predict.
    levels : list of float
        Nominal coverages of the intervals.
    targets : sequence of str
        Names of several targets.

    Returns
    -------
    DataFrame
        ``mean``, ``std`` and ``lower_95``, ``upper_95`` per level, with the name of the target before them if there are
        several, as in ``weight_mean``; or ``class`` and, for every class c, ``p_c`` and ``p_c_lower_95``, ``p_c_upper_95``
        per level. There are no bounds if the model was fitted without intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet import KStoNetRegressor
    >>> X = np.linspace(-3, 3, 40)[:, None]
    >>> model = KStoNetRegressor(tuning="none", max_iter=3, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> list(prediction_table(model, X, [0.8, 0.95]).columns)
    ['mean', 'std', 'lower_80', 'upper_80', 'lower_95', 'upper_95']
    """
    levels = list(dict.fromkeys(probabilities("coverage", levels).tolist()))
    names = [f"{100 * level:.6g}" for level in levels]
    if isinstance(model, KStoNetClassifier):
        return _of_classes(model, X, levels if model.trained_.has_intervals else [], names)
    known = model.trained_.has_intervals
    distribution = model.predict_dist(X) if known else None
    means = model.predict(X) if distribution is None else distribution.mean
    means = means.reshape(len(means), -1)
    several = not model.trained_.targets.single
    called = [f"{name}_" for name in targets or map(str, range(means.shape[1]))] if several else [""]
    columns = {}
    for j, name in enumerate(called):
        columns[f"{name}mean"] = means[:, j]
        if distribution is not None:
            own = Predicted(distribution, j)
            columns[f"{name}std"] = own.std
            bounds = own.interval(np.array(levels))
            for k, level in enumerate(names):
                columns |= {f"{name}lower_{level}": bounds[:, 0, k], f"{name}upper_{level}": bounds[:, 1, k]}
    return pd.DataFrame(columns)


def _of_classes(model: KStoNetClassifier, X: Any, levels: list[float], names: list[str]) -> pd.DataFrame:
    p = model.predict_proba(X)
    columns: dict[str, np.ndarray] = {"class": model.classes_[p.argmax(axis=1)]}
    bounds = model.predict_proba_interval(X, levels) if levels else None
    for j, label in enumerate(model.classes_):
        own = {f"p_{label}": p[:, j]}
        if bounds is not None:
            for k, name in enumerate(names):
                for side, end in enumerate(("lower", "upper")):
                    own[f"p_{label}_{end}_{name}"] = bounds[:, j, side, k]
        twice = next((name for name in own if name in columns), None)
        if twice is not None:
            raise InputError(
                f"two columns of the predictions would be called {twice!r}, one of them for the class {str(label)!r}; train "
                "with class labels that do not end like the bounds of another class."
            )
        columns |= own
    return pd.DataFrame(columns)


def without_formulas(table: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The table with an apostrophe before texts and names that a spreadsheet would take for a formula, and how many there are.

    Examples
    --------
    >>> safe, count = without_formulas(pd.DataFrame({"class": ["=1+1", "plain"], "p": [0.5, -0.5]}))
    >>> safe["class"].tolist(), safe["p"].tolist(), count
    (["'=1+1", 'plain'], [0.5, -0.5], 1)
    """
    safe, count = table.copy(), 0
    for place, dtype in enumerate(table.dtypes):
        if not pd.api.types.is_numeric_dtype(dtype):
            old = safe.iloc[:, place]
            new = old.map(lambda value: without_formula(value) if isinstance(value, str) else value)
            count += int((new.astype(str) != old.astype(str)).sum())
            safe.isetitem(place, new)
    names = [without_formula(str(name)) for name in table.columns]
    count += sum(new != str(old) for new, old in zip(names, table.columns, strict=True))
    return safe.set_axis(names, axis=1), count


def kept_columns(table: pd.DataFrame, wanted: list[str], ids: tuple[str, ...]) -> pd.DataFrame:
    """The columns of a table that are repeated beside its predictions: names of rows, where it has them, and those wanted.

    Examples
    --------
    >>> table = pd.DataFrame({"id": [7], "area": [80], "city": ["Bern"]})
    >>> list(kept_columns(table, ["city"], ("id",)).columns), list(kept_columns(table, ["all"], ()).columns)
    (['id', 'city'], ['id', 'area', 'city'])
    """
    names = [str(name) for name in table.columns]
    if wanted == ["all"] and "all" not in names:
        return table
    for name in wanted:
        if name not in names:
            raise InputError(f"--keep names {name!r}, not a column; the table has {quoted(names)}.{did_you_mean(name, names)}")
    return table[[*dict.fromkeys([name for name in ids if name in names] + wanted)]]


def beside(kept: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """One table of both; a column that is named like a prediction is given another name.

    Examples
    --------
    >>> kept = pd.DataFrame({"mean": [1], "mean_given": [2]})
    >>> list(beside(kept, pd.DataFrame({"mean": [3.0]})).columns)
    ['mean_given_2', 'mean_given', 'mean']
    """
    taken = {*kept.columns, *predictions.columns}
    names = {name: _free(f"{name}_given", taken) for name in kept.columns if name in predictions.columns}
    return pd.concat([kept.rename(columns=names).reset_index(drop=True), predictions], axis=1)


def _free(name: str, taken: Container[str]) -> str:
    """The name, with a number behind it where it is taken."""
    numbered = (f"{name}_{k}" for k in count(2))
    return next(each for each in chain([name], numbered) if each not in taken)
