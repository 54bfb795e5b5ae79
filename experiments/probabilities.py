"""Are class probabilities calibrated, and do their intervals cover?

    python -m experiments.probabilities real [--data DIR]
    python -m experiments.probabilities simulated [--sets 50]

``real``: five-fold cross-validation on QSAR (if its file is there) and two of scikit-learn's sets: accuracy, Brier score, log
loss and expected calibration error. ``simulated``: labels drawn from known logits, 500 training rows, 1,000 new ones; how often
the nominal 95 % interval of a probability holds the true one, and its mean width.

One fit gives all columns. *paper*: temperature and variance scale one, as after ``residuals="training"``. *tempered*: the
temperature that fit learns from cross-fitted training rows. *default*: that and what is learnt of the variance of the logits,
which widens intervals and leaves probabilities as they are. Simulated sets are fitted by the plain first call, and with
``tuning="none"`` and two values of C.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import balanced_accuracy_score, log_loss, matthews_corrcoef
from sklearn.model_selection import StratifiedKFold

from experiments.common import Results, parser
from kstonet import KStoNetClassifier, datasets
from kstonet._files import write_whole
from kstonet.metrics import brier_score, expected_calibration_error

UNITS = {"digits": 10}  # the head of a pyramid has as many units as classes
KINDS = ("smooth", "linear", "strong", "three classes")


def load(name: str, data: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels."""
    if name == "qsar":
        return datasets.load("qsar", data_home=data, return_X_y=True)
    return (load_digits if name == "digits" else load_breast_cancer)(return_X_y=True)


def one_fold(name: str, fold: int, data: str | None) -> dict[str, Any]:
    """Train on four fifths, look at the last."""
    X, y = load(name, data)
    train, test = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))[fold]
    settings = {"C": 1.0, "epsilon": 0.1} if name == "qsar" else {}  # the paper's for QSAR
    model = KStoNetClassifier((UNITS.get(name, 5),), tuning="none", random_state=0, **settings).fit(X[train], y[train])
    out: dict[str, Any] = {"accuracy": float(model.score(X[test], y[test]))}
    labels = model.predict(X[test])
    out |= {"balanced": float(balanced_accuracy_score(y[test], labels)), "mcc": float(matthews_corrcoef(y[test], labels))}
    for stage in ("paper", "default"):
        p = stages(model)[stage].predict_proba(X[test])
        out[f"{stage}_brier"] = float(brier_score(y[test], p, labels=model.classes_))
        out[f"{stage}_log_loss"] = float(log_loss(y[test], p, labels=model.classes_))
        out[f"{stage}_ece"] = float(expected_calibration_error(y[test], p, labels=model.classes_))
    return out | {"temperature": model.calibration_temperature_, "scale": model.logit_variance_scale_}


def stages(model: KStoNetClassifier) -> dict[str, KStoNetClassifier]:
    """The fitted model without what it learnt about its probabilities, with part of it, and with all."""
    tempered, paper = copy.copy(model), copy.copy(model)
    calibration = replace(model.trained_.calibration, variance_scale=1.0, first_scale=1.0, growth=0.0)
    tempered.trained_ = replace(model.trained_, calibration=calibration)
    paper.trained_ = replace(model.trained_, calibration=replace(calibration, temperature=1.0))
    return {"paper": paper, "tempered": tempered, "default": model}


def true_logits(kind: str, X: np.ndarray) -> np.ndarray:
    """Of all classes, (n, classes); the first is zero."""
    a, b, c = X.T
    others = {
        "smooth": [1.5 * np.sin(1.5 * a) + b * c],
        "linear": [a - b],
        "strong": [3.0 * np.sin(1.5 * a) + 2.0 * b * c],
        "three classes": [1.5 * np.sin(1.5 * a), b * c],
    }
    return np.column_stack([np.zeros(len(X)), *others[kind]])


def one_set(kind: str, C: float | None, seed: int) -> dict[str, Any]:
    """Probability intervals against the truth, on simulated logits."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1500, 3))
    truth = softmax(true_logits(kind, X), axis=1)
    y = (rng.uniform(size=(len(X), 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    settings: dict[str, Any] = {} if C is None else {"tuning": "none", "C": C}
    model = KStoNetClassifier(random_state=seed, **settings).fit(X[:500], y[:500])
    out: dict[str, Any] = {}
    for stage, staged in stages(model).items():
        low, high = np.moveaxis(staged.predict_proba_interval(X[500:]), 2, 0)
        out[f"{stage}_coverage"] = float(((low <= truth[500:]) & (truth[500:] <= high)).mean())
        out[f"{stage}_width"] = float((high - low).mean())
    return out | {"temperature": model.calibration_temperature_, "scale": model.logit_variance_scale_}


def main() -> None:
    """Run what is missing and print the means."""
    arguments = parser(__doc__ or "", "probabilities")
    arguments.add_argument("which", choices=("real", "simulated"))
    arguments.add_argument("--sets", type=int, default=50)
    arguments.add_argument("--C", type=float, nargs="*", default=[10.0, 1.0], help="beside the first call")
    given = arguments.parse_args()
    results = Results(given.out)
    if given.which == "simulated":
        sets = product(range(given.sets), KINDS, (None, *given.C))
        names = {None: "first call"} | {C: f"C={C:g}" for C in given.C}
        results.run_all({f"simulated {kind}, {names[C]}|{seed}": partial(one_set, kind, C, seed) for seed, kind, C in sets})
    else:
        folds = product(("qsar", "breast-cancer", "digits"), range(5))
        results.run_all({f"{name}|{fold}": partial(one_fold, name, fold, given.data) for name, fold in folds})
    text = "# Class probabilities\n\nMade by `python -m experiments.probabilities real` and `... simulated`.\n"
    for name in dict.fromkeys(key.split("|")[0] for key in results.parts):
        parts = [part for key, part in results.parts.items() if key.startswith(f"{name}|")]
        text += f"\n## {name} ({len(parts)})\n\n| | mean | standard error |\n|---|---|---|\n"
        for field in parts[0]:
            values = np.array([part[field] for part in parts])
            text += f"| {field} | {values.mean():.4g} | {values.std(ddof=1) / np.sqrt(len(values)):.2g} |\n"
    write_whole(given.out.with_suffix(".md"), text)
    print(text)


if __name__ == "__main__":
    main()
