"""Are class probabilities calibrated, and do their intervals cover?

    python -m experiments.probabilities real [--data DIR]
    python -m experiments.probabilities simulated [--sets 50]

``real``: five-fold cross-validation on QSAR (if its file is there) and two of scikit-learn's sets: accuracy, Brier score, log
loss and expected calibration error, before and after ``calibrate()`` (temperature from cross-fitted training rows; no extra
data). ``simulated``: labels drawn from known logits; how often the nominal 95 % interval of a probability holds the true one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import balanced_accuracy_score, log_loss, matthews_corrcoef
from sklearn.model_selection import StratifiedKFold

from experiments.common import Results, parser
from kstonet import KStoNetClassifier, datasets
from kstonet.metrics import brier_score, expected_calibration_error

UNITS = {"digits": 10}  # the head of a pyramid has as many units as classes


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
    model = KStoNetClassifier((UNITS.get(name, 5),), random_state=0, **settings).fit(X[train], y[train])
    out: dict[str, Any] = {"accuracy": float(model.score(X[test], y[test]))}
    labels = model.predict(X[test])
    out |= {"balanced": float(balanced_accuracy_score(y[test], labels)), "mcc": float(matthews_corrcoef(y[test], labels))}
    for stage in ("plain", "calibrated"):
        p = model.predict_proba(X[test])
        out[f"{stage}_brier"] = float(brier_score(y[test], p, labels=model.classes_))
        out[f"{stage}_log_loss"] = float(log_loss(y[test], p, labels=model.classes_))
        out[f"{stage}_ece"] = float(expected_calibration_error(y[test], p, labels=model.classes_))
        model.calibrate()
    return out | {"temperature": model.calibration_temperature_}


def one_set(seed: int) -> dict[str, Any]:
    """Probability intervals against the truth, on simulated logits."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1500, 3))
    logits = 1.5 * np.sin(1.5 * X[:, 0]) + X[:, 1] * X[:, 2]
    truth = 1.0 / (1.0 + np.exp(-logits))
    y = rng.uniform(size=len(X)) < truth
    model = KStoNetClassifier(C=1.0, random_state=seed).fit(X[:500], y[:500])
    out: dict[str, Any] = {}
    for stage in ("plain", "calibrated"):
        bounds = model.predict_proba_interval(X[500:])[:, 1]
        inside = (bounds[:, 0] <= truth[500:]) & (truth[500:] <= bounds[:, 1])
        out[f"{stage}_coverage"] = float(inside.mean())
        out[f"{stage}_width"] = float((bounds[:, 1] - bounds[:, 0]).mean())
        model.calibrate()
    return out


def main() -> None:
    """Run what is missing and print the means."""
    arguments = parser(__doc__ or "", "probabilities")
    arguments.add_argument("which", choices=("real", "simulated"))
    arguments.add_argument("--sets", type=int, default=50)
    given = arguments.parse_args()
    results = Results(given.out)
    if given.which == "simulated":
        for seed in range(given.sets):
            results.run(f"simulated|{seed}", lambda seed=seed: one_set(seed))
    else:
        for name in ("qsar", "breast-cancer", "digits"):
            for fold in range(5):
                results.run(f"{name}|{fold}", lambda name=name, fold=fold: one_fold(name, fold, given.data))
    text = "# Class probabilities\n\nMade by `python -m experiments.probabilities real` and `... simulated`.\n"
    for name in dict.fromkeys(key.split("|")[0] for key in results.parts):
        parts = [part for key, part in results.parts.items() if key.startswith(f"{name}|")]
        text += f"\n## {name} ({len(parts)})\n\n| | mean | standard error |\n|---|---|---|\n"
        for field in parts[0]:
            values = np.array([part[field] for part in parts])
            text += f"| {field} | {values.mean():.4g} | {values.std(ddof=1) / np.sqrt(len(values)):.2g} |\n"
    given.out.with_suffix(".md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
