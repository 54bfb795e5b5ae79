"""Classifiers: kstonet as it comes beside the models a user would pick instead, in one run.

    python benchmarks/classification.py [--sets NAME ...] [--models NAME ...] [--splits 0 1 2] [--size 2000] [--jobs 1]
        [--data DIR]

What is compared
    KStoNetClassifier with its defaults; CatBoost, LightGBM and HistGradientBoosting with theirs; an SVC with RBF kernel whose C
    and gamma come from a grid search with 3 folds and whose probabilities are Platt's (CalibratedClassifierCV on 3 folds);
    logistic regression.

The data
    Sets of scikit-learn (a quarter of the rows for testing, stratified), simulated ones (``--size`` training rows, 4,000 test
    rows), and from ``<DIR>/<name>/data.npz`` QSAR (5 stratified folds; split k tests fold k), MNIST (training rows drawn from
    the first 60,000, the last 10,000 for testing) and CoverType (``--size`` and 10,000 rows drawn). DIR is ``--data`` or the
    environment variable KSTONET_DATA; without it these three are left out. The split is the seed of every draw.

How it is measured
    Every set, split and model has a process of its own with one thread. CPU seconds are those of ``fit``: for kstonet with
    calibration and all that its intervals need, for the SVC with its search and calibration. Finished parts are kept in the
    results file (JSON lines), and a second run goes on where the first stopped; ``--redo`` measures again.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student
from sklearn import datasets
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from _comparison import (
    REFERENCE,
    Record,
    Results,
    draw_ratios,
    fingerprint,
    median,
    missing_package,
    notes,
    opening,
    ratio_rows,
    run_all,
    table,
    timed_fit,
)
from _report import number
from kstonet import KStoNetClassifier
from kstonet._files import write_whole
from kstonet.metrics import expected_calibration_error

RESULTS = Path(__file__).parent / "results"
TEST_ROWS, MORE_TEST_ROWS = 4000, 10_000
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
Rows = tuple[np.ndarray, np.ndarray]


def mixture(classes: int, p: int, spread: float) -> Callable[[np.random.Generator, int], Rows]:
    """Normal rows around two centres per class."""

    def draw(rng: np.random.Generator, n: int) -> Rows:
        centres = np.random.default_rng(classes).normal(size=(classes, 2, p))  # the same in every split
        y, part = rng.integers(classes, size=n), rng.integers(2, size=n)
        return centres[y, part] + spread * rng.normal(size=(n, p)), y

    return draw


def moons(rng: np.random.Generator, n: int) -> Rows:
    return datasets.make_moons(n, noise=0.25, random_state=int(rng.integers(2**31)))


def xor(rng: np.random.Generator, n: int) -> Rows:
    """The sign of a product of two features among six."""
    X = rng.uniform(-1, 1, size=(n, 6))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def spirals(rng: np.random.Generator, n: int) -> Rows:
    """Three arms of one and a half turns."""
    y, along = rng.integers(3, size=n), np.sqrt(rng.uniform(0.02, 1, size=n))
    angle = 3 * np.pi * along + 2 * np.pi * y / 3
    return np.stack([along * np.cos(angle), along * np.sin(angle)], axis=1) + 0.04 * rng.normal(size=(n, 2)), y


def imbalanced(rng: np.random.Generator, n: int) -> Rows:
    """One row in twenty belongs to the second class, which lies on a shell within the first."""
    y = (rng.random(n) < 0.05).astype(int)
    X = rng.normal(size=(n, 5))
    inner = X / np.linalg.norm(X, axis=1, keepdims=True) + 0.2 * rng.normal(size=(n, 5))
    return np.where(y[:, None] == 1, inner, 1.5 * X), y


def label_noise(rng: np.random.Generator, n: int) -> Rows:
    """A fifth of the labels of four classes are drawn anew."""
    X, y = mixture(4, 6, 0.4)(rng, n)
    return X, np.where(rng.random(n) < 0.2, rng.integers(4, size=n), y)


STORED = ("qsar-androgen-receptor", "mnist", "covertype")
BUNDLED: dict[str, Callable[..., Rows]] = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
}
SIMULATED = {
    "moons": moons,
    "XOR": xor,
    "spirals": spirals,
    "mixture 2": mixture(2, 10, 1.0),
    "mixture 10": mixture(10, 10, 0.7),
    "mixture 26": mixture(26, 16, 0.9),
    "mixture 50": mixture(50, 20, 0.9),
    "imbalanced": imbalanced,
    "label noise": label_noise,
}
SETS = (*BUNDLED, *SIMULATED, *STORED)
ONE_UNIT = ("digits", "mnist", "qsar-androgen-receptor")  # pixels, bits: not standardised for the SVC, as is usual


def load(folder: str | None, name: str, n: int, split: int) -> Split:
    """Training rows and labels, test rows and labels."""
    rng = np.random.default_rng(split)
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=split)
        return X_train[:n], y_train[:n], X_test, y_test
    if name in SIMULATED:
        X, y = SIMULATED[name](rng, n + TEST_ROWS)
        return X[:n], y[:n], X[n:], y[n:]
    if folder is None:
        raise ValueError(f"{name} is a stored set; name its folder by --data or the environment variable KSTONET_DATA.")
    with np.load(Path(folder) / name / "data.npz", allow_pickle=False) as stored:
        X, y = stored["X"], stored["y"].astype(int)
    if name == "mnist":
        train, test = rng.permutation(60_000)[:n], np.arange(60_000, 70_000)
        X = X / np.float32(255)
    elif name == "covertype":
        drawn = rng.permutation(len(y))[: n + MORE_TEST_ROWS]
        train, test = drawn[:n], drawn[n:]
    else:
        train, test = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))[split % 5]
        train = rng.permutation(train)[:n]
    return X[train].astype(float), y[train], X[test].astype(float), y[test]


def _scaler(name: str) -> Any:
    return FunctionTransformer() if name in ONE_UNIT else StandardScaler()


class TunedSVC:
    """C and gamma by accuracy in 3 folds, then Platt's probabilities; labels are the machine's own."""

    def __init__(self, name: str) -> None:
        self._name = name

    def fit(self, X: np.ndarray, y: np.ndarray) -> TunedSVC:
        """Search, train and calibrate."""
        scale = 1.0 / (X.shape[1] * _scaler(self._name).fit_transform(X).var())
        grid = {"svc__C": [0.1, 1.0, 10.0, 100.0], "svc__gamma": [step * scale for step in (0.1, 0.3, 1.0, 3.0, 10.0)]}
        folds = StratifiedKFold(3, shuffle=True, random_state=0)
        machine = make_pipeline(_scaler(self._name), SVC(cache_size=1000))
        self._machine = GridSearchCV(machine, grid, cv=folds).fit(X, y).best_estimator_
        self._calibrated = CalibratedClassifierCV(self._machine, method="sigmoid", cv=folds, ensemble=False).fit(X, y)
        self.classes_ = self._calibrated.classes_
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Labels of the machine."""
        return np.asarray(self._machine.predict(X))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Platt's probabilities."""
        return np.asarray(self._calibrated.predict_proba(X))


def catboost(name: str) -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(random_seed=0, thread_count=1, verbose=0, allow_writing_files=False)


def lightgbm(name: str) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=0, n_jobs=1, verbose=-1)


class Model(NamedTuple):
    """How a model is made for a set, and the package it needs."""

    make: Callable[[str], Any]
    package: str | None = None


MODELS = {
    "kstonet": Model(lambda name: KStoNetClassifier(random_state=0)),
    "SVC tuned": Model(TunedSVC),
    "CatBoost": Model(catboost, "catboost"),
    "LightGBM": Model(lightgbm, "lightgbm"),
    "HistGradientBoosting": Model(lambda name: HistGradientBoostingClassifier(random_state=0)),
    "logistic regression": Model(lambda name: make_pipeline(_scaler(name), LogisticRegression(max_iter=1000))),
}


def measure(part: Record, folder: str | None) -> Record:
    """Fit one model on one part: error, log loss and calibration error on the test rows."""
    X, y, X_test, y_test = load(folder, part["set"], part["n"], part["fold"])
    model = MODELS[part["model"]].make(part["set"])
    model, record = timed_fit(lambda: model.fit(X, y))
    proba = np.asarray(model.predict_proba(X_test), dtype=float)
    proba /= proba.sum(axis=1, keepdims=True)
    classes = np.asarray(model.classes_)
    known = np.isin(y_test, classes)  # a class without training rows has no probability; such test rows count as errors
    record |= {
        "rows": len(y),
        "features": X.shape[1],
        "classes": len(classes),
        "test_rows": len(y_test),
        "error": float(np.mean(np.ravel(model.predict(X_test)) != y_test)),
        "log_loss": float(log_loss(y_test[known], proba[known], labels=classes)),
        "ece": expected_calibration_error(y_test[known], proba[known], labels=classes),
    }
    if part["model"] == "kstonet":
        chosen = getattr(model, "tuned_", None) or {}
        record |= {"source": fingerprint(), "chosen": {name: str(value)[:120] for name, value in chosen.items()}}
    return record


NOTES = """\
- Means over the splits. **÷ CatBoost**: geometric mean over the sets of the ratio to CatBoost's; for errors, which may be zero,
  after adding 0.005 to both. **wins**: sets with a smaller value than CatBoost's, and those with an equal one. **÷ SVC**:
  likewise beside the SVC.
- **CPU s**: CPU seconds of `fit`, for kstonet with calibration and intervals, for the SVC with its search and
  calibration.
- **ECE**: expected calibration error of the most probable class, 15 bins; above zero by chance on small test sets.
- **t**: Student's t of the differences over the splits, corrected where splits share rows (Nadeau & Bengio 2003).
"""
FEWEST_SPLITS = 3  # for a test
FIELDS = {"error": ("Error rate", 0.005), "log_loss": ("Log loss", 0.0)}


def paired_t(differences: list[float], test_share: float) -> float:
    """Student's t of paired differences; where splits share rows, corrected for it (Nadeau & Bengio 2003).

    Parameters
    ----------
    differences : list of float
        One per split.
    test_share : float
        Test rows over training rows; 0 for rows drawn anew in every split.
    """
    spread = float(np.var(differences, ddof=1)) * (1.0 / len(differences) + test_share)
    centre = float(np.mean(differences))
    return 0.0 if centre == 0.0 else centre / np.sqrt(spread) if spread > 0 else float(np.sign(centre) * np.inf)


def paired_rows(records: list[Record], field: str, sets: list[str]) -> list[list[str]]:
    """Per set: splits, mean difference between kstonet and the SVC, its t, and what that says at 5 %."""
    found: dict[tuple[str, str], dict[int, Record]] = {}
    for record in records:
        found.setdefault((record["set"], record["model"]), {})[record["fold"]] = record
    rows = []
    for name in sets:
        own, others = found.get((name, "kstonet"), {}), found.get((name, "SVC tuned"), {})
        shared = sorted(own.keys() & others.keys())
        if len(shared) < FEWEST_SPLITS:
            continue
        differences = [own[fold][field] - others[fold][field] for fold in shared]
        share = 0.0 if name in SIMULATED else own[shared[0]]["test_rows"] / own[shared[0]]["rows"]
        t = paired_t(differences, share)
        clear = abs(t) > student.ppf(0.975, len(shared) - 1)
        verdict = ("better" if t < 0 else "worse") if clear else "no difference"
        rows.append([name, str(len(shared)), f"{np.mean(differences):+.4f}", f"{t:+.2f}", verdict])
    return rows


def markdown(results: Results, absent: list[str], picture: Path | None) -> str:
    """The report."""
    text = [opening(results, "Classification"), NOTES]
    for n in sorted({record["n"] for record in results.finished()}):
        here = [record for record in results.finished() if record["n"] == n]
        sets = [name for name in SETS if any(record["set"] == name for record in here)]
        text.append(f"\n## At most {n:,} training rows\n\n" + table(*_about(here, sets)))
        for field, (title, floor) in FIELDS.items():
            rows = ratio_rows(here, field, tuple(MODELS), sets, n=n, floor=floor)
            beside = ratio_rows(here, field, tuple(MODELS), sets, n=n, floor=floor, reference="SVC tuned")
            rows = [[*row, *other[-2:]] for row, other in zip(rows, beside, strict=True)]
            text.append(f"\n### {title}\n\n" + table(("", *sets, "÷ CatBoost", "wins", "÷ SVC", "wins"), rows))
            paired = paired_rows(here, field, sets)
            if paired:
                header = ("set", "splits", "kstonet - SVC", "t", "at 5 %")
                text.append(f"\n{title}, kstonet beside the SVC, paired by split:\n\n" + table(header, paired))
        for field, title in (("ece", "Expected calibration error"), ("cpu_s", "CPU seconds of fit")):
            rows = [row[:-2] for row in ratio_rows(here, field, tuple(MODELS), sets, n=n)]
            for row in rows:
                row.append(number(median([r[field] for r in here if r["model"] == row[0]])))
            text.append(f"\n### {title}\n\n" + table(("", *sets, "median of fits"), rows))
    if picture is not None:
        text.append(f"\n![Log loss relative to CatBoost's by model, a dot per set]({picture.name})\n")
    return "".join([*text, notes(results, absent)])


def _about(records: list[Record], sets: list[str]) -> tuple[list[str], list[list[str]]]:
    """Sizes of the sets."""
    first = {name: next(record for record in records if record["set"] == name) for name in sets}
    fields = {"rows": "training rows", "test_rows": "test rows", "features": "features", "classes": "classes"}
    return ["", *sets], [[label, *(f"{first[name][field]:,}" for name in sets)] for field, label in fields.items()]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=SETS, metavar="NAME", default=SETS, help=", ".join(SETS))
    parser.add_argument("--splits", nargs="+", type=int, metavar="K", default=[0, 1, 2])
    parser.add_argument("--models", nargs="+", choices=MODELS, metavar="NAME", default=list(MODELS), help=", ".join(MODELS))
    parser.add_argument("--size", type=int, default=2000, metavar="N", help="most training rows")
    parser.add_argument("--data", metavar="DIR", default=os.environ.get("KSTONET_DATA"), help="folder of the stored sets")
    parser.add_argument("--out", metavar="FILE", type=Path, default=RESULTS / "classification.json")
    parser.add_argument("--redo", action="store_true", help="measure again what the results file already holds")
    parser.add_argument("--limit", type=float, default=1800.0, metavar="SECONDS", help="of one part")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="parts at a time")
    parser.add_argument("--report", action="store_true", help="only write the table and the picture again")
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    return parser.parse_args()


def report(results: Results, absent: list[str]) -> None:
    """Write the table, and the picture where matplotlib is installed."""
    picture, records = None, results.finished()
    if missing_package("matplotlib"):
        absent = [*absent, "No picture: matplotlib is not installed."]
    elif any(record["model"] == REFERENCE for record in records):
        picture = results.path.with_suffix(".png")
        n = min(record["n"] for record in records)
        label = f"log loss relative to CatBoost's, at most {n:,} training rows; a dot per set, bar: geometric mean"
        draw_ratios(records, "log_loss", tuple(MODELS), SETS, picture, label, n=n)
    write_whole(results.path.with_suffix(".md"), markdown(results, absent, picture))


def main() -> None:
    arguments = parse_arguments()
    if arguments.worker:
        print(json.dumps(measure(arguments.worker, arguments.data)))
        return
    results = Results(arguments.out)
    measured = {record["model"] for record in results.finished()}
    missing = [name for name in MODELS if missing_package(MODELS[name].package)]
    absent = [f"{name} is not measured: {MODELS[name].package} is not installed." for name in missing if name not in measured]
    sets = [name for name in arguments.sets if name not in STORED or arguments.data]
    if len(sets) < len(arguments.sets):
        absent.append("The stored sets are left out: KSTONET_DATA does not name their folder.")
    for text in absent:
        print(text)
    if not arguments.report:
        parts = [
            {"set": name, "n": arguments.size, "fold": split, "model": model}
            for model in arguments.models
            if model not in missing
            for split in arguments.splits
            for name in sets
        ]
        run_all(
            Path(__file__).resolve(),
            parts,
            results,
            arguments.data,
            redo=arguments.redo,
            limit_s=arguments.limit,
            jobs=arguments.jobs,
        )
    report(results, absent)
    rows = ratio_rows(results.finished(), "log_loss", tuple(MODELS), sets, n=arguments.size)
    print(table(("log loss", *sets, "÷ CatBoost", "wins"), rows))


if __name__ == "__main__":
    main()
