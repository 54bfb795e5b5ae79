"""Whole fits on hostile problems, each known by its number: ``python -m tests.reliability.hostile_fits FIRST LAST`` tries some.

A number gives the estimator, its parameters, the shape, scales, dtypes and weights of the data; the same number always gives
the same problem. A fit is right if it ends in bounded time with finite answers that fit each other, without a
``RuntimeWarning``, and with solutions that are certified or said not to be; or if it is refused by a ``ValueError`` that names
what is out of range.
"""

import re
import sys
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kstonet import KStoNetClassifier, KStoNetRegressor, MultiTargetSVR, StoNetClassifier, StoNetRegressor

KKT = 1e-6  # of the layers above the first
SECONDS = 20.0  # of processor time; most take less than a tenth of a second
SAID_EVERY = 100
BEYOND = re.compile(
    r"(X|y) holds numbers of the size|sample_weight holds|sample_weight is zero|must have at least 2 classes|has one class|"
    r"every class has one row only|takes 5 rows of positive weight|left the range of floating-point numbers"
)
REGRESSORS = (KStoNetRegressor, KStoNetRegressor, StoNetRegressor, MultiTargetSVR)
CLASSIFIERS = (KStoNetClassifier, KStoNetClassifier, StoNetClassifier)
DTYPES = ("float64", "float64", "float32", "float16", "int64", "int8", "bool", "object")


@dataclass(frozen=True)
class Case:
    """A problem: what is fitted on what."""

    model: Any
    X: Any
    y: Any
    weights: np.ndarray | None

    def __str__(self) -> str:
        """In words."""
        data = f"X {self.X.dtype}{self.X.shape}, y {self.y.dtype}{self.y.shape}, weights {self.weights is not None}"
        return f"{self.model!r} on {data}".replace("\n", " ")


def case(number: int) -> Case:
    """The problem of a number."""
    rng = np.random.default_rng([22, number])
    classes = rng.random() < 0.35
    cls = rng.choice(CLASSIFIERS if classes else REGRESSORS)
    n = int(rng.choice([2, 3, 5, 9, 12, 20, 40, 80], p=[0.07, 0.08, 0.15, 0.2, 0.25, 0.18, 0.05, 0.02]))
    p = int(rng.choice([1, 2, 5, 30, 300], p=[0.25, 0.35, 0.3, 0.08, 0.02]))
    X = _rows(rng, n, p)
    y = _labels(rng, X) if classes else _targets(rng, X)
    return Case(cls(**_parameters(rng, cls)), _stored(rng, _scaled(rng, X)), y, _weights(rng, n))


def _rows(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    kind = rng.integers(7)
    X = rng.normal(size=(n, p))
    if kind == 1:
        X = rng.standard_cauchy((n, p))
    elif kind == 2:
        X = np.clip(rng.standard_cauchy((n, p)) ** 3, -1e30, 1e30)
    elif kind == 3:
        X = X[rng.integers(max(1, n // 5), size=n)]  # duplicates
    elif kind == 4:
        X[:, rng.integers(p)] = rng.normal()  # a constant column
    elif kind == 5:
        X = np.round(X)
    elif kind == 6:
        X = np.repeat(X[:, :1], p, axis=1) * (1.0 + 1e-9 * rng.normal(size=(n, p)))  # columns that are nearly the same
    return X


def _targets(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    n, kind = len(X), rng.integers(7)
    centre = np.tanh(X[:, 0]) + 0.1 * rng.normal(size=n)
    y = {
        1: np.zeros(n),
        2: np.full(n, rng.normal()),
        3: np.clip(rng.standard_cauchy(n) ** 3, -1e30, 1e30),
        4: (centre > 0).astype(np.float64),
        5: centre * (rng.random(n) < 0.1),
        6: np.linspace(0.0, 1.0, n),
    }.get(int(kind), centre)
    scale = 10.0 ** rng.choice([0, -130, 100, 138, 9, 145, -150], p=[0.35, 0.15, 0.15, 0.15, 0.15, 0.03, 0.02])
    shift = rng.choice([0.0, 0.0, 0.0, 1e9]) * scale
    y = y * scale + shift
    return np.column_stack([y, y[::-1]]) if rng.random() < 0.2 else y


def _labels(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    n, kind = len(X), rng.integers(5)
    if kind == 0:
        codes = (X[:, 0] > np.median(X[:, 0])).astype(int)  # separable
    elif kind == 1:
        codes = np.arange(n)  # a class for every row
    elif kind == 2:
        codes = (np.arange(n) == 0).astype(int)  # one row alone
    else:
        codes = rng.integers(min(n, 4), size=n)
    codes[:2] = [0, 1]
    return np.array(["a", "=b", "", *map(str, range(n))], dtype=object)[codes] if rng.random() < 0.3 else codes


def _scaled(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    kind = rng.integers(6)
    if kind == 1:
        return X * 10.0 ** rng.choice([-130, -9, 9, 100, 130, 145])
    if kind == 2:
        return X * 10.0 ** rng.uniform(-20, 20, X.shape[1])
    if kind == 3:
        return X + 10.0 ** rng.choice([3, 6, 9])
    return X


def _stored(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    dtype = str(rng.choice(DTYPES))
    largest = float(np.abs(X).max())
    if (dtype == "float16" and largest > 6e4) or (dtype == "float32" and largest > 3e38):
        dtype = "float64"
    if dtype.startswith("int"):
        X = np.clip(X, -100.0, 100.0)
    X = X.astype(dtype)
    layout = rng.integers(4)
    if layout == 1:
        X = np.asfortranarray(X)
    elif layout == 2:
        X = np.repeat(X, 2, axis=0)[::2]  # not contiguous
    elif layout == 3:
        X.flags.writeable = False
    return X


def _weights(rng: np.random.Generator, n: int) -> np.ndarray | None:
    kind = rng.integers(8)
    if kind == 1:
        return rng.uniform(0.1, 3.0, n)
    if kind == 2:
        return 10.0 ** rng.uniform(-12, 12, n)
    if kind == 3:
        return (np.arange(n) % 3 != 2).astype(np.float64)  # rows that do not count
    if kind == 4:
        return np.full(n, 10.0 ** rng.choice([-29, 29, -40, 200]))
    return None


def _parameters(rng: np.random.Generator, cls: Any) -> dict[str, Any]:
    C, epsilon = 10.0 ** rng.uniform(-6, 6), float(rng.choice([0.0, 0.01, 1.0]))
    if cls is MultiTargetSVR:
        return {"C": C, "epsilon": epsilon, "kernel": str(rng.choice(["rbf", "laplacian", "linear"]))}
    most = int(rng.choice([1, 2, 4], p=[0.75, 0.2, 0.05]))
    sampler = str(rng.choice(["sghmc", "mala", "hmc", "gibbs"], p=[0.7, 0.1, 0.1, 0.1]))
    parameters: dict[str, Any] = {
        "max_iter": most,
        "n_average": int(rng.integers(1, most + 1)),
        "n_imputation_steps": int(rng.choice([1, 2, 5] if sampler == "gibbs" else [1, 5, 25], p=[0.5, 0.4, 0.1])),
        "random_state": int(rng.integers(1000)),
        "activation": str(rng.choice(["softplus", "tanh", "relu", "gelu"])),
        "penalty": str(rng.choice(["lasso", "ridge", "mcp", "scad", "none"], p=[0.5, 0.2, 0.1, 0.1, 0.1])),
        "sampler": sampler,
    }
    if rng.random() < 0.985:  # the default of a classifier refits fifty times
        parameters["residuals"] = [None, "training"][rng.integers(2)]
    if rng.random() < 0.2:
        parameters["noise_variance"] = 10.0 ** rng.uniform(-12, 6)
    if rng.random() < 0.1:
        parameters["alpha"] = float(rng.choice([0.0, 1e-12, 1e3, 1e100]))
    if rng.random() < 0.1:
        parameters["step_size"] = 10.0 ** rng.uniform(-12, 2)
    if rng.random() < 0.2:
        parameters["hidden_layer_sizes"] = [(1,), (3, 2), (4,)][rng.integers(3)]
    if cls in (KStoNetRegressor, KStoNetClassifier):
        if rng.random() < 0.96:  # the choice of parameters takes a second
            parameters |= {"tuning": "none", "C": C, "epsilon": epsilon}
            parameters["loss"] = str(rng.choice(["squared", "epsilon_insensitive"], p=[0.75, 0.25]))
            parameters["kernel"] = str(rng.choice(["rbf", "laplacian", "matern32", "poly", "linear", "arccos1"]))
            parameters.setdefault("hidden_layer_sizes", 3)
        elif rng.random() < 0.3:
            parameters["C"] = "tune"
    return parameters


def failure(number: int) -> str | None:
    """What is wrong with the fit of a number; None where nothing is."""
    return outcome(number)[0]


def outcome(number: int) -> tuple[str | None, bool]:
    """What is wrong with the fit of a number, if anything is, and whether it was refused."""
    problem, refused = case(number), False
    started = time.process_time()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            model = problem.model.fit(problem.X, problem.y, problem.weights)
            wrong = _inconsistent(model, problem.X)
        except ValueError as error:
            refused = BEYOND.search(str(error)) is not None
            wrong = None if refused else f"ValueError: {error}"
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
    if wrong is None and not any(issubclass(each.category, ConvergenceWarning) for each in said):
        missed = uncertified(problem.model)
        wrong = f"{missed}, which nobody has said" if missed else None
    seconds = time.process_time() - started
    if wrong is None and seconds > SECONDS:
        wrong = f"{seconds:.0f} seconds"
    return (None if wrong is None else f"{number}: {wrong}\n    {problem}"), refused


def uncertified(model: Any) -> str:
    """The certificates of a fitted model that miss their tolerance, in words: duality gaps of regressions on kernels, and
    violations of the optimality conditions in the layers above; empty where none does.
    """
    if isinstance(model, MultiTargetSVR):
        found = {"gap": (float(np.max(getattr(model, "duality_gap_", 0.0))), model.tol)}
    elif "trained_" in vars(model):
        gaps = [record.get("svr_gap", np.nan) for record in model.history_]  # linear layers have none
        violations = [layer.kkt for uppers in model.trained_.uppers for layer in uppers]
        found = {"gap": (max(np.nan_to_num(gaps)), getattr(model, "svr_tol", 0.0)), "violation": (max(violations), KKT)}
    else:
        found = {}  # refused
    return ", ".join(f"{name} {value:.2g} above {tol:g}" for name, (value, tol) in found.items() if not value <= 1.01 * tol)


def _inconsistent(model: Any, X: Any) -> str | None:
    """What the answers of a model contradict."""
    answers = {"predict": model.predict(X)}
    if hasattr(model, "predict_proba"):
        answers["predict_proba"] = proba = model.predict_proba(X)
        if np.abs(proba.sum(axis=1) - 1.0).max() > 1e-9 or proba.min() < 0.0:
            return "probabilities that are none"
        if model.residuals is not None:
            answers["interval"] = interval = model.predict_proba_interval(X)
            if (interval[..., 0] > interval[..., 1]).any() or interval.min() < 0.0 or interval.max() > 1.0:
                return "an interval of probabilities that is crossed or outside [0, 1]"
    elif not isinstance(model, MultiTargetSVR) and model.residuals is not None:
        answers["interval"] = interval = model.predict_interval(X)
        answers["variance"] = variance = model.predict_var(X)
        if (interval[..., 0] > interval[..., 1]).any():
            return "a crossed interval"
        if variance.min() < 0.0:
            return "a negative variance"
    for name, values in answers.items():
        if len(values) != len(X):
            return f"{name}: {len(values)} answers for {len(X)} rows"
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            return f"{name} is not finite"
    return None


def main(first: int, last: int) -> int:
    """Try the problems of some numbers; say what is wrong and how many."""
    started, wrong, refusals, slowest = time.process_time(), 0, 0, 0.0
    for number in range(first, last):
        before = time.process_time()
        found, refused = outcome(number)
        refusals += refused
        slowest = max(slowest, time.process_time() - before)
        if found is not None:
            wrong += 1
            print(found, flush=True)
        if (number + 1) % SAID_EVERY == 0 or number + 1 == last:
            took = f"{time.process_time() - started:.0f} s of processor time, {slowest:.1f} s the slowest"
            print(f"{first} to {number + 1}: {wrong} wrong, {refusals} refused; {took}", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])) > 0)
