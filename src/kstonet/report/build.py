"""From a model and rows to a page."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from kstonet._files import destination, write_whole
from kstonet.report.cautions import general_cautions
from kstonet.report.classification import ClassificationView
from kstonet.report.comparison import compare
from kstonet.report.effects import effects_section, permutation_importance
from kstonet.report.fitted import fitted_section, training_section
from kstonet.report.inputs import read_subject
from kstonet.report.page import Section, page
from kstonet.report.regression import RegressionView


def build_report(
    model: Any,
    X: Any,
    y: Any,
    *,
    title: str | None = None,
    encode: Callable[[Any], Any] | None = None,
    X_train: Any = None,
    y_train: Any = None,
    target: int | None = None,
    dated: bool = True,
) -> str:
    """The report of :func:`write_report` as text.

    Parameters
    ----------
    model, X, y, title, encode, X_train, y_train, target, dated
        Of :func:`write_report`.

    Returns
    -------
    str
        A complete HTML document; the same for the same model and data, apart from the date.

    Examples
    --------
    >>> from kstonet import KStoNetRegressor
    >>> from kstonet.datasets import make_measurement_error
    >>> from kstonet.report import build_report
    >>> X, y = make_measurement_error(150, random_state=0)
    >>> model = KStoNetRegressor(max_iter=5, n_average=2, random_state=0).fit(X[:100], y[:100])
    >>> html = build_report(model, X[100:], y[100:], title="Measurement errors")
    >>> html[:15], "<h1>Measurement errors</h1>" in html
    ('<!DOCTYPE html>', True)
    """
    subject = read_subject(model, X, y, encode=encode, X_train=X_train, y_train=y_train, target=target)
    classes = hasattr(model, "classes_")
    view: Any = ClassificationView(subject) if classes else RegressionView(subject)
    comparison = compare(subject)
    importance = permutation_importance(subject, view.outputs, view.loss)
    sections = [
        Section("scores", "Scores", view.scores(comparison)),
        Section(
            "intervals", "Probabilities and their intervals" if classes else "Prediction intervals", view.interval_section()
        ),
        Section("uncertainty", "Where the uncertainty comes from", view.uncertainty_section()),
        Section("hardest", "The hardest rows", view.hardest(importance.columns)),
        Section("effects", "What the features do", effects_section(subject, importance, view.curves, view.effect_words)),
        Section("training", "The training", training_section(subject)),
        Section("fitted", "What was fitted", fitted_section(subject)),
    ]
    called = f"{subject.name} for {subject.target}" if title is None else title
    cautions = general_cautions(subject) + view.cautions(comparison)
    return page(called, subject, view.headline(), cautions, sections, dated=dated)


def write_report(
    model: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    encode: Callable[[Any], Any] | None = None,
    X_train: Any = None,
    y_train: Any = None,
    target: int | None = None,
    dated: bool = True,
) -> None:
    """Write a report on a fitted model as one HTML file.

    The page shows scores beside simpler models', intervals and their calibration, the sources of the uncertainty, the hardest
    rows, what the features do, the training path and the settings, and says in plain words what to be careful about. It needs
    no network: styles, scripts and data are inside.

    Parameters
    ----------
    model : fitted KStoNetRegressor, KStoNetClassifier, StoNetRegressor or StoNetClassifier
    X : pandas.DataFrame or array-like of shape (n_samples, n_columns)
        Rows to judge the model on, best such that it was not trained on. At least 10.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
    path : str or path
        Where to write; an existing file is replaced.
    title : str, optional
    encode : callable, optional
        From rows like X to the numeric matrix of the model, such as ``transform`` of a fitted ColumnTransformer. The report
        then speaks about the columns of X, categories included. Without it the model is given X as it is.
    X_train, y_train : array-like, optional
        The training data, of the kind of X and y. With them the simpler models learn from what the model learnt from;
        without them they are cross-validated on X and y.
    target : int, optional
        Which of several targets to report on; intervals, effects and errors are those of one.
    dated : bool, default=True
        Whether the page shows today's date.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from kstonet import KStoNetClassifier
    >>> from kstonet.report import write_report
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KStoNetClassifier(max_iter=5, n_average=2, random_state=0).fit(X[::2], y[::2])
    >>> path = Path(tempfile.mkdtemp()) / "iris.html"
    >>> write_report(model, X[1::2], y[1::2], path, X_train=X[::2], y_train=y[::2])
    >>> path.stat().st_size < 1_000_000
    True
    """
    path = destination(path, "report.html")  # before the work, not after it
    text = build_report(model, X, y, title=title, encode=encode, X_train=X_train, y_train=y_train, target=target, dated=dated)
    write_whole(path, text)
