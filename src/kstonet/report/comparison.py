"""Comparison with simpler models: a support vector machine, a linear model and a constant prediction."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kstonet.estimators import MultiTargetSVR
from kstonet.report.charts import axis, chart, figure, mark, sampled
from kstonet.report.inputs import Subject
from kstonet.report.markup import Markup

FOLDS = 5
MOST_ROWS = 4000  # to fit a rival on: the cost of a support vector machine grows faster than the square
CLEARLY = 1.96  # standard errors: 95 %


@dataclass(frozen=True)
class Comparison:
    """Predictions of simpler models at the rows of the report.

    Parameters
    ----------
    answers : dict of ndarray of shape (n,)
        Predicted numbers or labels of every model; empty if the rows have one class only.
    how : str
        Sentence that says which rows the models were fitted on.
    """

    answers: dict[str, np.ndarray]
    how: str


def compare(subject: Subject) -> Comparison:
    """Fit simpler models and predict the rows."""
    classes = hasattr(subject.model, "classes_")
    X = subject.rows.matrix()
    C, epsilon = _number(subject.model, "C", 10.0), _number(subject.model, "epsilon", 0.01)
    rivals = _classifiers(C) if classes else _regressors(C, epsilon)
    kind = "SVM" if classes else "SVR"
    settings = f"The {kind} has an RBF kernel and C = {C:g}" + ("" if classes else f", ε = {epsilon:g}")
    if subject.train is not None and subject.y_train is not None:
        kept = sampled(len(subject.train), MOST_ROWS)
        train, known = subject.train.matrix()[kept], subject.y_train[kept]
        if classes and len(set(known.tolist())) < 2:
            return Comparison({}, "y_train has one class only, so no other model can be fitted.")
        answers = {name: rival.fit(train, known).predict(X) for name, rival in rivals.items()}
        part = "" if len(kept) == len(subject.train) else f" (a sample of {len(kept):,} of {len(subject.train):,})"
        how = f"The simpler models are fitted on the training rows{part} and scored on the rows of this report."
    else:
        folds = _folds(subject.y, classes)
        if folds is None:
            return Comparison({}, "The rows have one class only, so no other model can be fitted.")
        answers = {name: _cross_validated(rival, X, subject.y, folds) for name, rival in rivals.items()}
        part = f", each fitted on at most {MOST_ROWS:,} rows" if len(folds[0][0]) > MOST_ROWS else ""
        how = (
            f"Without X_train the simpler models are scored by {len(folds)}-fold cross-validation on the rows of this report"
            f"{part}. The model itself was fitted on another number of rows; pass X_train and y_train for a fair comparison."
        )
    return Comparison(answers, f"{how} {settings}; features{'' if classes else ' and target'} are standardised.")


def difference(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """Mean and standard error of the difference of two losses of the same rows; negative if the first is smaller."""
    gaps = ours - theirs
    return float(gaps.mean()), float(gaps.std(ddof=1) / np.sqrt(len(gaps)))


def ranking(
    title: str, alt: str, names: list[str], scores: tuple[np.ndarray, np.ndarray, np.ndarray], x: dict[str, Any]
) -> Markup:
    """Chart of a score of the model, which comes first, and of the simpler models, with lower and upper bounds."""
    places, marks = np.arange(len(names)), []
    for role, part in (("muted", slice(1, None)), ("accent", slice(0, 1))):
        value, low, high = (each[part] for each in scores)
        marks.append(mark("segments", role, y=places[part], low=low, high=high))
        marks.append(mark("points", role, x=value, y=places[part], big=True, low=low, high=high, range="95 % interval"))
    spec = chart(alt, x=x, y=axis("model", categories=names), marks=marks, shape="rows")
    return figure(title, spec, note="Lines are 95 % confidence intervals for rows like these.")


def _regressors(C: float, epsilon: float) -> dict[str, Any]:
    svr = TransformedTargetRegressor(MultiTargetSVR(C=C, epsilon=epsilon, sparse=False), transformer=StandardScaler())
    return {
        "SVR": make_pipeline(StandardScaler(), svr),
        "linear (ridge)": make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 7))),
        "mean": DummyRegressor(),
    }


def _classifiers(C: float) -> dict[str, Any]:
    return {
        "SVM": make_pipeline(StandardScaler(), SVC(C=C)),
        "linear (logistic)": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "majority": DummyClassifier(strategy="prior"),
    }


def _number(model: Any, name: str, default: float) -> float:
    """The setting of the model, if it is one number for all units and iterations, and that of support vector regressions."""
    settings = model.get_params(deep=False) | getattr(model, "tuned_", {})
    value = default if settings.get("loss") == "squared" else settings.get(name)
    return float(value) if isinstance(value, Real) else default


def _folds(y: np.ndarray, classes: bool) -> list[tuple[np.ndarray, np.ndarray]] | None:
    if not classes:
        return list(KFold(FOLDS, shuffle=True, random_state=0).split(y))
    sizes = np.unique(y, return_counts=True)[1]
    if (sizes >= 2).sum() < 2:
        return None
    splitter = StratifiedKFold(min(FOLDS, int(np.sort(sizes)[-2])), shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class of fewer rows than folds is missing from some of them
        return list(splitter.split(np.zeros(len(y)), y))


def _cross_validated(rival: Any, X: np.ndarray, y: np.ndarray, folds: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    answers = np.empty_like(y)
    for fitted, asked in folds:
        kept = fitted[sampled(len(fitted), MOST_ROWS)]
        answers[asked] = clone(rival).fit(X[kept], y[kept]).predict(X[asked])
    return answers
