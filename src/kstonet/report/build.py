"""Build the report from a model and rows."""

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
from kstonet.report.inputs import read_subject, unwrapped
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
    """Return the report of :func:`write_report` as a string.

    Parameters
    ----------
    model, X, y, title, encode, X_train, y_train, target, dated
        See :func:`write_report`.

    Returns
    -------
    str
        A complete HTML document. The same model and data give the same document, apart from the date.

    Examples
    --------
    >>> from kstonet import KStoNetRegressor
    >>> from kstonet.datasets import make_measurement_error
    >>> from kstonet.report import build_report
    >>> X, y = make_measurement_error(150, random_state=0)
    >>> model = KStoNetRegressor(tuning="none", max_iter=5, n_average=2, random_state=0).fit(X[:100], y[:100])
    >>> html = build_report(model, X[100:], y[100:], title="Measurement errors")
    >>> html[:15], "<h1>Measurement errors</h1>" in html
    ('<!DOCTYPE html>', True)
    """
    model, encode = unwrapped(model, encode)
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

    The page shows scores beside those of simpler models, intervals and their calibration, the sources of the uncertainty, the
    rows with the largest errors, feature effects, the training path, the settings and warnings. It contains its styles, scripts
    and data, so that it opens without a network.

    Parameters
    ----------
    model : fitted KStoNetRegressor, KStoNetClassifier, StoNetRegressor or StoNetClassifier
        The fitted model; or a pipeline that ends in one, or a search for one, such as KStoNetRegressorCV.
    X : pandas.DataFrame or array-like of shape (n_samples, n_columns)
        Rows to evaluate the model on, at least 10. Use rows that the model was not trained on.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Observed targets of these rows.
    path : str or path
        File to write. An existing file is replaced.
    title : str, optional
        Title of the page. If not given, it is made of the names of the model and the target.
    encode : callable, optional
        Function that turns rows like X into the numeric matrix of the model, such as ``transform`` of a fitted
        ColumnTransformer. The report then shows the columns of X, including categories. If not given, the model receives X
        unchanged.
    X_train, y_train : array-like, optional
        Training data, in the form of X and y. The simpler models are trained on them. If not given, the simpler models are
        cross-validated on X and y.
    target : int, optional
        Index of the target to report on; needed if there are several.
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
