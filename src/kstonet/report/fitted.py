"""What was fitted, and how the training went."""

from __future__ import annotations

import inspect
import platform
from dataclasses import fields
from typing import Any

import numpy as np
import scipy
import sklearn

import kstonet
from kstonet._words import counted as count
from kstonet.report.charts import axis, chart, figure, grid, mark
from kstonet.report.inputs import Subject
from kstonet.report.markup import Markup, element, fixed, number, paragraph, percent, table
from kstonet.tuning.summary import chosen_words

PARTS = {
    "choice": "choice of the settings",
    "impute": "imputation of the hidden values",
    "first_layer": "first layer",
    "regressions": "layers above",
    "intervals": "intervals",
}


def support_share(subject: Subject) -> np.ndarray | None:
    """Support vectors of a unit as a share of the training rows, mean over units, per iteration."""
    kept = _path(subject.model, "n_support")
    return None if kept is None or subject.n_train is None else kept / subject.n_train


def fitted_section(subject: Subject) -> list[Markup]:
    """Parameters, sizes, seconds and versions."""
    model = subject.model
    outputs = count(model.trained_.targets.n_outputs, "class" if hasattr(model, "classes_") else "target")
    units = " – ".join(map(str, model.trained_.hidden_layer_sizes))
    facts: dict[str, Any] = {
        "Model": type(model).__name__,
        "Network": f"{count(model._n_encoded, 'input')} – {units} hidden – {outputs}",
        "Trained on": "not known" if subject.n_train is None else count(subject.n_train, "row"),
        "Judged on": count(subject.n, "row"),
        "Iterations": f"{model.n_iter_}, the last {len(model.trained_.uppers)} averaged",
    }
    if hasattr(model, "kernel_"):
        facts["Kernel"] = "; ".join(_kernel_words(part.kernel) for part in model.trained_.expansion.parts)
        facts["Support vectors"] = _support_words(subject)
    return [
        element(
            "dl", *(element("div", element("dt", name), element("dd", value)) for name, value in facts.items()), class_="facts"
        ),
        _seconds(model),
        _parameters(model),
        paragraph(_versions(), class_="note"),
    ]


def training_section(subject: Subject) -> list[Markup]:
    """Loss and score over the iterations, and the support vectors."""
    model = subject.model
    classes = hasattr(model, "classes_")
    loss = "negative log-likelihood" if classes else "share of the variance left"
    support = support_share(subject)
    return [
        paragraph(
            "Every iteration draws the hidden values of all training rows, then refits every layer to them. The path is "
            "random: a healthy one falls, then wanders around a level. Predictions are averaged over the shaded iterations."
        ),
        grid(
            _path_chart(model, "Loss", "loss", axis(loss, zero=True)),
            _path_chart(model, "Score", "score", axis("accuracy" if classes else "R²", style="percent" if classes else None)),
            None if support is None else _support_chart(model, support),
            class_="grid small",
        ),
    ]


def has_squared_loss(model: Any) -> bool:
    """Whether the first layer has a squared loss: then every training row is a support vector."""
    return bool((model.get_params(deep=False) | getattr(model, "tuned_", {})).get("loss") == "squared")


def _support_words(subject: Subject) -> str:
    if has_squared_loss(subject.model):
        return "all training rows (squared loss)"
    kept, share = subject.model.n_support_, support_share(subject)
    if share is None or subject.n_train is None:
        return f"{kept:,} rows kept"
    return f"{percent(share[-1], 0)} of the training rows per unit; {percent(kept / subject.n_train, 0)} kept in all"


def _kernel_words(kernel: Any) -> str:
    told = [type(kernel).__name__]
    for each in fields(kernel):
        value = getattr(kernel, each.name)
        if value is not None:
            text = "one per feature" if np.ndim(value) else number(value) if isinstance(value, float) else _words(value)
            told.append(f"{each.name} {text}")
    return ", ".join(told)


def _seconds(model: Any) -> Markup:
    spent = {name: seconds for part, name in PARTS.items() if (seconds := _spent(model, part)) is not None}
    total = sum(spent.values()) or 1.0
    rows = [[name, fixed(value, 2), percent(value / total, 0)] for name, value in spent.items()]
    rows.append(["all of it", fixed(total, 2), "100 %"])
    return table(["part", "seconds", "share"], rows, caption="Where the time of the training went", class_="narrow")


def _spent(model: Any, part: str) -> float | None:
    """Seconds of a part; None where no record has it, as in models of earlier versions."""
    found = [float(record[f"seconds_{part}"]) for record in model.history_ if f"seconds_{part}" in record]
    return sum(found) if found else None


def _parameters(model: Any) -> Markup:
    defaults = {name: given.default for name, given in inspect.signature(type(model)).parameters.items()}
    rows, chosen = [], chosen_words(getattr(model, "tuned_", {}))
    for name, value in model.get_params(deep=False).items():
        text, default = _words(value), _words(defaults[name])
        text += f", chosen: {chosen[name]}" if name in chosen else ""
        rows.append([name, element("b", text) if text != default else text, default])
    inner = table(["parameter", "value", "default"], rows, caption="Parameters; bold ones are not the default", texts=(0, 1, 2))
    reason = getattr(model, "tuning_", {}).get("reason")
    why = paragraph(f"Why these values were chosen: {reason}.", class_="note") if reason else None
    return element("details", element("summary", "All parameters"), inner, why)


def _words(value: Any) -> str:
    """A parameter as text, without addresses in memory, which differ from run to run."""
    if callable(value) and hasattr(value, "__name__"):
        return f"{value.__name__}(…)"
    text = repr(value)
    return type(value).__name__ if " at 0x" in text else text


def _versions() -> str:
    return (
        f"kstonet {kstonet.__version__}, Python {platform.python_version()}, numpy {np.__version__}, "
        f"scipy {scipy.__version__}, scikit-learn {sklearn.__version__}."
    )


def _path(model: Any, key: str) -> np.ndarray | None:
    """A measure of every iteration, or None where there is none."""
    values = np.array([float(record.get(key, np.nan)) for record in model.history_])
    return values if np.isfinite(values).any() else None


def _averaged(model: Any) -> list[dict[str, Any]]:
    """The last iterations of every chain; a stored model may be older than chains are."""
    chains = np.array([record.get("chain", 0) for record in model.history_])
    ends = np.flatnonzero(np.diff(chains, append=-1)) + 1
    each = len(model.trained_.uppers) // len(ends)
    name = "averaged for prediction"
    return [
        mark("span", "faint", x0=end - each + 0.5, x1=end + 0.5, name=name if end == ends[-1] else None)
        for end in ends.tolist()
    ]


def _path_chart(model: Any, title: str, key: str, y: dict[str, Any]) -> Markup:
    train, validation = _path(model, key), _path(model, f"validation_{key}")
    assert train is not None  # the loop records both of every iteration
    steps = np.arange(1, len(train) + 1)
    watched = validation is not None
    marks = [*_averaged(model), mark("line", x=steps, y=train, name="training rows" if watched else None)]
    alt = f"{title} of the training rows over {count(len(train), 'iteration')}: from {number(train[0])} to {number(train[-1])}."
    if validation is not None:
        marks.append(mark("line", "ink", x=steps, y=validation, name="validation rows", dash=True))
        alt += f" Validation rows: from {number(validation[0])} to {number(validation[-1])}."
    return figure(title, chart(alt, x=_iterations(len(train)), y=y, marks=marks))


def _support_chart(model: Any, share: np.ndarray) -> Markup:
    steps = np.arange(1, len(share) + 1)
    alt = f"Support vectors of a unit, share of the training rows: from {percent(share[0])} to {percent(share[-1])}."
    y = axis("share of the training rows", style="percent", domain=(0.0, 1.0))
    marks = [*_averaged(model), mark("line", x=steps, y=share)]
    return figure("Support vectors of a unit", chart(alt, x=_iterations(len(share)), y=y, marks=marks))


def _iterations(n: int) -> dict[str, Any]:
    return axis("iteration", style="count", domain=(0.5, n + 0.5))
