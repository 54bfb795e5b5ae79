"""Truths of a known structure: does the network learn what a support vector regression does not know?

    python -m experiments.structure [--structures "single index" ...] [--seeds 3]

2,000 training rows of ten independent normal features; the truth has the variance one and the noise the standard deviation 0.2.
"additive" is a sum of four functions of one feature each, "single index" a function of one sum of all features, "multi index" a
function of two such sums, "composition" a function of two functions of two features each, "interaction" a sum of two products.
Errors are the mean squared distances from the truth at 4,000 new rows.

"K-StoNet" is ``KStoNetRegressor()``. "SVR" has C and gamma chosen by three-fold cross-validation. "ridge, scales" is the kernel
ridge regression of the library's own choice with a scale per feature, without directions and without the network. "oracle" is
the same choice on the true directions. Directions are compared by the largest angle between their span and the true one, with
the true number of them: those of ``sufficient_directions``, of sliced inverse regression (SIR, Li 1991), of sliced average
variance estimation (SAVE, Cook & Weisberg 1991) and of the outer product of local linear gradients (OPG, Xia et al. 2002).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVR

from experiments.common import Results, parser
from experiments.paths import Summary, write_report
from kstonet import KStoNetRegressor
from kstonet.tuning.automatic import automatic_choice
from kstonet.tuning.screening_ridge import ridge_fit

FEATURES, ROWS, TEST_ROWS, NOISE = 10, 2000, 4000, 0.2
SLICES = 10
LOCAL_ROWS = 300  # at which local linear gradients are taken
SVR_GRID = {"C": [1.0, 3.0, 10.0, 30.0, 100.0], "gamma": [0.0125, 0.025, 0.05, 0.1, 0.2]}
MIXED = np.linalg.qr(np.random.default_rng(7).normal(size=(FEATURES, FEATURES)))[0]  # directions of sums of all features
AXES = np.eye(FEATURES)


def additive(X: np.ndarray) -> np.ndarray:
    """A sum of four functions."""
    return np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 / 1.5 + np.abs(X[:, 2]) + 0.8 * X[:, 3]


def single_index(X: np.ndarray) -> np.ndarray:
    """A function of one direction."""
    along = X @ MIXED[:, 0]
    return np.sin(2.0 * along) + along


def multi_index(X: np.ndarray) -> np.ndarray:
    """A function of two directions."""
    u, v = (X @ MIXED[:, :2]).T
    return u * v + np.sin(2.0 * v)


def composition(X: np.ndarray) -> np.ndarray:
    """A function of functions of two features."""
    return (1.0 + np.tanh(X[:, 0] * X[:, 1])) * np.exp(np.sin(X[:, 2] + X[:, 3]))


def interaction(X: np.ndarray) -> np.ndarray:
    """Two products."""
    return X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3]


#: The truth, and the directions it depends on: the sum of two features is one.
STRUCTURES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]] = {
    "additive": (additive, AXES[:, :4]),
    "single index": (single_index, MIXED[:, :1]),
    "multi index": (multi_index, MIXED[:, :2]),
    "composition": (composition, np.column_stack([AXES[:, 0], AXES[:, 1], AXES[:, 2] + AXES[:, 3]])),
    "interaction": (interaction, AXES[:, :4]),
}


def draw(structure: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, the truth with mean zero and variance one, and targets with noise."""
    truth, _ = STRUCTURES[structure]
    typical = truth(np.random.default_rng(0).normal(size=(200_000, FEATURES)))
    rng = np.random.default_rng([seed, n])
    X = rng.normal(size=(n, FEATURES))
    f = (truth(X) - typical.mean()) / typical.std()
    return X, f, f + NOISE * rng.normal(size=n)


def degrees(truth: np.ndarray, found: np.ndarray) -> float:
    """The largest angle between two spaces of the same dimension, given by columns."""
    overlap = np.linalg.qr(truth)[0].T @ np.linalg.qr(found)[0]
    return float(np.degrees(np.arccos(np.clip(np.linalg.svd(overlap)[1].min(), -1.0, 1.0))))


# -- rivals of the directions --------------------------------------------------------------------------------------------------


def _whitened(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of covariance one, and the matrix that takes their directions back."""
    values, vectors = np.linalg.eigh(np.cov(X.T))
    back = vectors / np.sqrt(values) @ vectors.T
    return (X - X.mean(axis=0)) @ back, back


def sir(X: np.ndarray, y: np.ndarray, d: int) -> np.ndarray:
    """Sliced inverse regression: leading directions of the means of slices of y."""
    Z, back = _whitened(X)
    means = np.array([Z[rows].mean(axis=0) for rows in np.array_split(np.argsort(y), SLICES)])
    return np.asarray(back @ np.linalg.eigh(means.T @ means)[1][:, ::-1][:, :d])


def save(X: np.ndarray, y: np.ndarray, d: int) -> np.ndarray:
    """Sliced average variance estimation: leading directions of what the covariances of slices lack to one."""
    Z, back = _whitened(X)
    lacking = [np.eye(X.shape[1]) - np.cov(Z[rows].T) for rows in np.array_split(np.argsort(y), SLICES)]
    return np.asarray(back @ np.linalg.eigh(sum(one @ one for one in lacking))[1][:, ::-1][:, :d])


def opg(X: np.ndarray, y: np.ndarray, d: int) -> np.ndarray:
    """Outer product of the gradients of local linear regressions, with a rule-of-thumb width."""
    width = 2.3 * len(X) ** (-1.0 / (X.shape[1] + 6)) * X.std()
    gradients = []
    for centre in X[:LOCAL_ROWS]:
        steps = X - centre
        weight = np.exp(-0.5 * (steps**2).sum(axis=1) / width**2)
        design = np.column_stack([np.ones(len(X)), steps])
        squares = design.T @ (weight[:, None] * design) + 1e-6 * np.eye(X.shape[1] + 1)
        gradients.append(np.linalg.solve(squares, design.T @ (weight * y))[1:])
    stacked = np.array(gradients)
    return np.asarray(np.linalg.eigh(stacked.T @ stacked)[1][:, ::-1][:, :d])


# -- the experiment ------------------------------------------------------------------------------------------------------------


def chosen_ridge(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Predictions of the kernel ridge regression with a scale per feature that the library's choice finds."""
    centre, spread = X.mean(axis=0), X.std(axis=0)
    rows, target = (X - centre) / spread, (y - y.mean()) / y.std()
    choice = automatic_choice(rows, target[:, None])
    fit = ridge_fit(np.asarray(choice.kernel(rows, rows)), target[:, None], choice.ridges[0])
    assert fit is not None
    values = np.asarray(choice.kernel((new - centre) / spread, rows)) @ fit.coef[:, 0] + fit.intercept[0]
    return np.asarray(values * y.std() + y.mean())


def one(structure: str, seed: int, n: int = ROWS) -> dict[str, Any]:
    """Errors and angles of one draw."""
    X, _, y = draw(structure, n, seed)
    new, truth, _ = draw(structure, TEST_ROWS, seed)
    _, directions = STRUCTURES[structure]
    d = directions.shape[1]
    started = time.process_time()
    model = KStoNetRegressor(residuals=None, random_state=seed).fit(X, y)
    seconds = time.process_time() - started
    machine = GridSearchCV(SVR(epsilon=0.1), SVR_GRID, cv=3, scoring="neg_mean_squared_error").fit(X, y)
    predictions = {
        "K-StoNet": model.predict(new),
        "SVR": machine.predict(new),
        "ridge, scales": chosen_ridge(X, y, new),
        "oracle": chosen_ridge(X @ directions, y, new @ directions),
    }
    reduction = model.sufficient_directions(X, y)
    found = {
        "K-StoNet": model.sufficient_directions(X, n_directions=d).directions * X.std(axis=0)[:, None],
        "SIR": sir(X, y, d),
        "SAVE": save(X, y, d),
        "OPG": opg(X, y, d),
    }
    return {
        "risk": {name: float(np.mean((values - truth) ** 2)) for name, values in predictions.items()},
        "angle": {name: degrees(directions, columns) for name, columns in found.items()},
        "true directions": d,
        "tested directions": reduction.n_directions,
        "projected": bool(model.kernel_.projection is not None),
        "cpu": seconds,
    }


def table(parts: dict[str, Any]) -> str:
    """Means over the seeds, as Markdown."""
    risks, angles = ("K-StoNet", "SVR", "ridge, scales", "oracle"), ("K-StoNet", "SIR", "SAVE", "OPG")
    lines = [
        "| structure | " + " | ".join(f"risk: {name}" for name in risks) + " | K-StoNet / SVR | "
        + " | ".join(f"angle: {name}" for name in angles) + " | directions | tested | CPU s |",
        "|---" * 13 + "|",
    ]  # fmt: skip
    for structure in STRUCTURES:
        own = [part for key, part in parts.items() if key.startswith(f"{structure}|")]
        if not own:
            continue
        mean = {name: float(np.mean([part["risk"][name] for part in own])) for name in risks}
        cells = [structure, *(f"{mean[name]:.4f}" for name in risks), f"{mean['K-StoNet'] / mean['SVR']:.2f}"]
        cells += [f"{np.mean([part['angle'][name] for part in own]):.1f}°" for name in angles]
        cells += [str(own[0]["true directions"]), ", ".join(str(part["tested directions"]) for part in own)]
        cells += [f"{np.mean([part['cpu'] for part in own]):.0f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def summary(parts: dict[str, Any]) -> list[Summary]:
    """One section of docs/results.md; the paper has no such results."""
    texts = []
    for structure in STRUCTURES:
        own = [part for key, part in parts.items() if key.startswith(f"{structure}|")]
        if own:
            risk = {name: float(np.mean([part["risk"][name] for part in own])) for name in own[0]["risk"]}
            angle = float(np.mean([part["angle"]["K-StoNet"] for part in own]))
            texts.append(
                f"{structure}: {risk['K-StoNet']:.4f} (SVR {risk['SVR']:.4f}, oracle {risk['oracle']:.4f}), {angle:.1f}°"
            )
    note = "2,000 rows, ten features, a truth of variance one; the oracle knows the true directions"
    return (
        [Summary("Known structures: risk and angle to the true directions", "–", "–", "; ".join(texts), note)] if texts else []
    )


def main() -> None:
    """Run what is missing; write the table."""
    arguments = parser(__doc__ or "", "structure")
    arguments.add_argument("--structures", nargs="*", choices=tuple(STRUCTURES), default=tuple(STRUCTURES))
    arguments.add_argument("--seeds", type=int, default=3)
    given = arguments.parse_args()
    results = Results(given.out)
    pairs = product(range(given.seeds), given.structures)
    results.run_all({f"{name}|{seed}": lambda name=name, seed=seed: one(name, seed) for seed, name in pairs})
    draws = "one draw" if given.seeds == 1 else f"means of {given.seeds} draws"
    text = f"Mean squared errors against the truth, whose variance is one, and angles; {draws}.\n\n"
    write_report(
        given.out, "Known structures", f"python -m experiments.structure --seeds {given.seeds}", text + table(results.parts)
    )


if __name__ == "__main__":
    main()
