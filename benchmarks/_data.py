"""Cases, their rows and their targets: the same for every engine, whichever process asks."""

from __future__ import annotations

import zlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

EPSILON = 0.01
NOISE = 0.1  # sd of the imputation noise, beside targets of unit variance
PULL = 0.5  # share of the way from the last fit to the truth that the next targets have moved
QUICK_ROWS = 1000
FEATURES = {"kin8nm": 8, "power-plant": 4, "gauss54": 54, "gauss5": 5}
REAL = ("kin8nm", "power-plant")


@dataclass(frozen=True)
class Case:
    """m targets on n rows of one source, at one C."""

    source: str
    n: int
    m: int
    C: float

    @property
    def name(self) -> str:
        """For example ``kin8nm-1000-m5-C10``."""
        return f"{self.source}-{self.n}-m{self.m}-C{self.C:g}"

    @property
    def p(self) -> int:
        """Number of features."""
        return FEATURES[self.source]

    def matches(self, wanted: str) -> bool:
        """Whether ``wanted`` is this name or its beginning, cut at a dash: ``C1`` must not select ``C10``."""
        return self.name == wanted or self.name.startswith(wanted + "-")

    def as_dict(self) -> dict[str, Any]:
        """Fields, for JSON."""
        return asdict(self)


SIZES = (
    ("kin8nm", 1000, 5), ("kin8nm", 8192, 5), ("power-plant", 9568, 5),
    ("gauss54", 10000, 5), ("gauss54", 10000, 20), ("gauss5", 5000, 5),
)  # fmt: skip
SCALING_ROWS = (1000, 2000, 5000, 10000, 20000)
QUICK_SCALING_ROWS = (500, 1000, 2000)


def standard_cases(*, quick: bool) -> list[Case]:
    """The cases of the main table; quick ones are cut to ``QUICK_ROWS`` rows."""
    cases = [Case(source, n, m, C) for source, n, m in SIZES for C in (1.0, 10.0)]
    return list(dict.fromkeys(replace(case, n=min(case.n, QUICK_ROWS)) for case in cases)) if quick else cases


def scaling_cases(*, quick: bool) -> list[Case]:
    """One data set at growing n. The case that is in the main table too is measured once."""
    return [Case("gauss54", n, 5, 10.0) for n in (QUICK_SCALING_ROWS if quick else SCALING_ROWS)]


def source_label(case: Case, folder: str | None) -> str:
    """What the rows are, in words that go into the results."""
    if case.source not in REAL:
        return f"synthetic, {case.p} standard normal features"
    return "real set" if _file(case, folder) else f"synthetic stand-in, {case.p} standard normal features"


def _file(case: Case, folder: str | None) -> Path | None:
    path = Path(folder) / case.source / "data.npz" if folder else None
    return path if path is not None and path.is_file() else None


def _seed(case: Case, purpose: str) -> np.random.Generator:
    """A stream of its own for every purpose; C is left out, so that C=1 and C=10 solve for the same targets."""
    return np.random.default_rng(zlib.crc32(f"{case.source}-{case.n}-m{case.m}-{purpose}".encode()))


def _standardise(values: np.ndarray) -> np.ndarray:
    spread = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def load_rows(case: Case, folder: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Standardised X and y: n rows of the real set picked at random, or made up."""
    rng = _seed(case, "rows")
    path = _file(case, folder)
    if case.source in REAL and path is not None:
        with np.load(path, allow_pickle=False) as stored:
            X, y = stored["X"].astype(np.float64), stored["y"].astype(np.float64).ravel()
        if len(X) < case.n:
            raise ValueError(f"{case.name} needs {case.n} rows; the stored set has {len(X)}.")
        rows = rng.permutation(len(X))[: case.n]
        X, y = X[rows], y[rows]
    else:
        X = rng.standard_normal((case.n, case.p))
        y = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(case.n)
    return np.ascontiguousarray(_standardise(X)), _standardise(y)


def latent_truth(case: Case, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(m, n) noise-free latents of unit variance: tanh of a random projection plus a random multiple of y."""
    rng = _seed(case, "truth")
    projections = rng.standard_normal((case.m, case.p)) / np.sqrt(case.p)
    latents = np.tanh(2.0 * projections @ X.T) + 0.5 * rng.standard_normal((case.m, 1)) * y
    return np.ascontiguousarray(_standardise(latents.T).T)


def first_targets(case: Case, truth: np.ndarray) -> np.ndarray:
    """The targets of the cold solve, and those every rival is timed on."""
    return truth + NOISE * _seed(case, "first").standard_normal(truth.shape)


def next_targets(case: Case, step: int, fitted: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """What an imputation leaves: the last fit moved towards the truth, with fresh noise."""
    noise = _seed(case, f"step {step}").standard_normal(truth.shape)
    return fitted + PULL * (truth - fitted) + NOISE * noise
