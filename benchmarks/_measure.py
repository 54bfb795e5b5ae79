"""What one worker process measures: kstonet on a case, or its rivals on the same case, or the machine itself."""

from __future__ import annotations

import gc
import hashlib
import math
import os
import platform
import resource
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import psutil
import scipy
import sklearn
from joblib import Parallel, delayed
from scipy.linalg import cholesky
from sklearn.svm import SVR
from threadpoolctl import threadpool_info

import kstonet
from _data import EPSILON, Case, first_targets, latent_truth, load_rows, next_targets
from kstonet.gram import DenseGram, Kernel, make_kernel
from kstonet.gram.dense import cross_blocks
from kstonet.solvers.svr import solve_svr
from kstonet.solvers.svr_problem import make_problem
from kstonet.solvers.svr_solution import SVRSolution

TOL, TIGHT_TOL = 1e-3, 1e-6
FACTORED_UP_TO = 12_000  # rows whose factorisation by LAPACK is measured
LATER_SOLVES = 4
TIGHT_UP_TO = 5000  # rows; beyond it tight mode is measured on request only
REPEAT_UP_TO = 2000  # rows; below it a set-up takes milliseconds, and the median of three is reported
MOST_MEASURED_FITS = 5  # of one rival; more targets are scaled from these
CACHE_MB = 2000
NOT_HERE = "not installable on this machine"


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    value = call()
    return time.perf_counter() - started, value


def machine() -> dict[str, Any]:
    """What a reader needs to place the numbers, and nothing that names the host."""
    blas = [
        f"{pool['internal_api']} {pool['version']}, {pool.get('architecture', '?')}, {pool['num_threads']} threads"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    ]
    versions = {"python": platform.python_version(), "kstonet": kstonet.__version__}
    versions |= {module.__name__: module.__version__ for module in (np, scipy, sklearn, joblib)}
    with suppress(PackageNotFoundError):
        versions["scikit-learn-intelex"] = version("scikit-learn-intelex")
    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "cpus": os.cpu_count(),
        "usable_cpus": joblib.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "versions": versions,
        "blas": sorted(set(blas)),
    }


def engine_fingerprint() -> str:
    """Digest of the engine's source: a resumed run may meet a changed one under the same version number."""
    root = Path(kstonet.__file__).parent
    files = [*sorted(root.glob("gram/*.py")), *sorted(root.glob("solvers/svr*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]


class PeakMemory:
    """Resident memory above what the process held when this was made."""

    def __init__(self) -> None:
        gc.collect()
        with suppress(OSError):  # Linux: forget the high-water mark of the imports
            Path("/proc/self/clear_refs").write_text("5")
        self._baseline = psutil.Process().memory_info().rss

    def above_baseline(self) -> int:
        """Bytes; ``ru_maxrss`` counts kilobytes except on macOS."""
        unit = 1 if sys.platform == "darwin" else 1024
        return max(0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit - self._baseline)


class OtherLoad:
    """How many cores other processes, or other guests of the host, kept busy since this was made.

    Threaded BLAS waits for its slowest thread: a neighbour on one core can slow it tenfold and more, while single-threaded
    LIBSVM hardly notices. Timings beside a neighbour are not a comparison, so every result carries this number.
    """

    def __init__(self) -> None:
        self._started, self._before = time.perf_counter(), self._busy_elsewhere()

    @staticmethod
    def _busy_elsewhere() -> float:
        times = psutil.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        guest = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)  # counted in user and nice already
        own = time.process_time()
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                own += sum(child.cpu_times()[:2])
        return sum(times) - guest - idle - own

    def cores(self) -> float:
        """Average number of cores busy with something else."""
        return max(0.0, (self._busy_elsewhere() - self._before) / (time.perf_counter() - self._started))


def _warm_up() -> None:
    """Start BLAS threads and lazy imports on a small problem, so that the first timing and the baseline are clean."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    gram = DenseGram(X, make_kernel("rbf", X))
    solve_svr(gram, rng.standard_normal((2, 300)), 1.0, EPSILON, tol=0.1)
    cholesky(np.eye(300, order="F"), lower=True, overwrite_a=True, check_finite=False)


def _solve(case: Case, gram: DenseGram, targets: np.ndarray, tol: float, warm: SVRSolution | None = None) -> tuple[Any, Any]:
    """One timed call of the engine, and what it says of itself."""
    seconds, solution = timed(lambda: solve_svr(gram, targets, case.C, EPSILON, tol=tol, warm_start=warm))
    record = {
        "seconds": seconds,
        "iterations": int(solution.n_iter.max()),
        "newton_steps": int(solution.n_newton.sum()),
        "gap": float(solution.gap.max()),
        "converged": bool(solution.converged.all()),
        "new_factors": list(solution.new_factors),
    }
    return record, solution


def measure_kstonet(case: Case, folder: str | None, *, tight: bool) -> dict[str, Any]:
    """Gram, cold solve, the warm sequence, memory; where asked tight mode; then set-up alone and LAPACK's Cholesky."""
    X, y = load_rows(case, folder)
    truth = latent_truth(case, X, y)
    kernel = make_kernel("rbf", X, gamma="scale")
    _warm_up()
    others = OtherLoad()
    try:
        result = _measure_solves(case, X, truth, kernel, tight=tight or case.n <= TIGHT_UP_TO)
        result["setup"] = _measure_setup(X, kernel, result["first"]["new_factors"][0])
    except MemoryError as error:  # GramTooLargeError is one
        return {"skipped": str(error)}
    return result | {"other_cores": others.cores(), "engine": engine_fingerprint()}


def _measure_solves(case: Case, X: np.ndarray, truth: np.ndarray, kernel: Kernel, *, tight: bool) -> dict[str, Any]:
    unit = 8.0 * case.n**2
    memory = PeakMemory()
    gram_seconds, gram = timed(lambda: DenseGram(X, kernel))
    first, solution = _solve(case, gram, first_targets(case, truth), TOL)
    certificate = {"primal": float(solution.primal[0]), "dual": float(solution.dual[0])}
    later = []
    for step in range(LATER_SOLVES):
        record, solution = _solve(case, gram, next_targets(case, step, solution.fitted, truth), TOL, solution)
        later.append(record)
    result = {
        "gram_seconds": gram_seconds,
        "first": first,
        "later": later,
        "later_seconds": float(np.median([record["seconds"] for record in later])),
        "first_target": certificate,
        "nbytes_units": gram.nbytes / unit,
        "peak_units": memory.above_baseline() / unit,
        "factorizations": gram.n_factorizations,
    }
    if tight:  # cold, on the Gram and factor that are there; after the peak was read
        result["tight"], _ = _solve(case, gram, first_targets(case, truth), TIGHT_TOL)
        result["tight"]["peak_units"] = memory.above_baseline() / unit
    return result


def _measure_setup(X: np.ndarray, kernel: Kernel, shift: float) -> dict[str, float | None]:
    """A fresh Gram and its factor, and one float64 Cholesky of the same matrix by LAPACK, back to back."""
    rounds = []
    for _ in range(3 if len(X) <= REPEAT_UP_TO else 1):
        gc.collect()
        build, gram = timed(lambda: DenseGram(X, kernel))
        factor, _ = timed(lambda gram=gram: gram.shifted(shift))
        del gram
        rounds.append((build, factor))
    build, factor = (float(np.median(column)) for column in zip(*rounds, strict=True))
    setup = {"gram_seconds": build, "factor_seconds": factor, "seconds": build + factor, "shift": shift, "ratio": None}
    if len(X) <= FACTORED_UP_TO:  # beyond it OpenBLAS's own factorisation crashes on some machines
        lapack = float(np.median([_lapack_cholesky(X, kernel, shift) for _ in rounds]))
        setup |= {"cholesky_seconds": lapack, "ratio": (build + factor) / (build + lapack)}
    return setup


def _lapack_cholesky(X: np.ndarray, kernel: Kernel, shift: float) -> float:
    """Seconds of the factorisation alone, in place: the matrix is in LAPACK's own order."""
    K = np.empty((len(X), len(X)), order="F")
    for rows, values in cross_blocks(kernel, X, X):
        K[rows] = values
    K[np.diag_indices(len(X))] += shift
    return timed(lambda: cholesky(K, lower=True, overwrite_a=True, check_finite=False))[0]


def measure_rivals(case: Case, folder: str | None) -> dict[str, Any]:
    """What a user has today: one SVR per target, in turn, over processes, or by oneDAL."""
    X, y = load_rows(case, folder)
    targets = first_targets(case, latent_truth(case, X, y))
    return {
        "sklearn": _in_turn(SVR, case, X, targets),
        "joblib": _over_processes(case, X, targets),
        "intelex": _intelex(case, X, targets),
    }


def _model(kind: type, case: Case) -> Any:
    return kind(kernel="rbf", gamma="scale", C=case.C, epsilon=EPSILON, cache_size=CACHE_MB)


def _in_turn(kind: type, case: Case, X: np.ndarray, targets: np.ndarray) -> dict[str, Any]:
    """One target after another; seconds of all m are scaled from the fits measured."""
    _model(kind, case).fit(X[:50], targets[0, :50])
    fits = min(case.m, MOST_MEASURED_FITS)
    models = [_model(kind, case) for _ in range(fits)]
    others = OtherLoad()
    seconds = [timed(lambda i=i: models[i].fit(X, targets[i]))[0] for i in range(fits)]
    other_cores = others.cores()
    return {
        "seconds": sum(seconds) * case.m / fits,
        "measured_fits": fits,
        "fit_seconds": seconds,
        "other_cores": other_cores,
        "n_support": len(models[0].support_),
    } | _certify(models[0], case, X, targets[:1])


def _certify(model: Any, case: Case, X: np.ndarray, targets: np.ndarray) -> dict[str, float]:
    """The relative duality gap of a rival's dual vector, at the intercept that is best for it."""
    coef = np.zeros((1, len(X)))
    coef[0, model.support_] = np.asarray(model.dual_coef_).ravel()
    problem = make_problem(targets, case.C, EPSILON)
    coef = problem.balance(np.clip(coef, -problem.box, problem.box))
    image = np.empty_like(coef)
    for rows, values in cross_blocks(make_kernel("rbf", X, gamma="scale"), X, X):
        image[0, rows] = values @ coef[0]
    primal, dual = float(problem.primal(coef, image)[0][0]), float(problem.dual(coef, image)[0])
    return {"primal": primal, "dual": dual, "gap": (primal - dual) / primal}


def _over_processes(case: Case, X: np.ndarray, targets: np.ndarray) -> dict[str, Any]:
    """The same fits over all cores. Processes are started and have imported scikit-learn before the clock runs."""
    cores = joblib.cpu_count()
    # Whole rounds of the cores, so that scaling up does not charge the rival for cores idle in a last short round.
    fits = min(case.m, cores * math.ceil(MOST_MEASURED_FITS / cores)) if case.m > MOST_MEASURED_FITS else case.m
    with Parallel(n_jobs=cores) as pool:
        pool(delayed(_model(SVR, case).fit)(X[:50], targets[0, :50]) for _ in range(2 * cores))
        others = OtherLoad()
        seconds, _ = timed(lambda: pool(delayed(_model(SVR, case).fit)(X, targets[i]) for i in range(fits)))
        other_cores = others.cores()
    return {"seconds": seconds * case.m / fits, "measured_fits": fits, "n_jobs": cores, "other_cores": other_cores}


def _intelex(case: Case, X: np.ndarray, targets: np.ndarray) -> dict[str, Any] | str:
    try:
        from sklearnex.svm import SVR as IntelSVR  # noqa: N811
    except ImportError:
        return NOT_HERE
    return _in_turn(IntelSVR, case, X, targets)
