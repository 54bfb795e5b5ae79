"""tuning="fast" and "thorough": kernel, width, relevance of features, loss, C and size, chosen from the training rows.

Kernels are judged by the leave-one-out error of kernel ridge regressions (:mod:`kstonet.tuning.automatic`). The network is then
built on the best kernel, or on the best two where they are nearly as good. Its first layer has a squared loss, with which it is
at least as good as the regression that won; where there are too many rows for one inverse, or a C that belongs to support
vector regressions is given, the ε-insensitive loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import cpu_count
from threadpoolctl import threadpool_limits

from kstonet.gram import Kernel, make_kernel
from kstonet.gram.kernels import RBF
from kstonet.problem import Problem
from kstonet.settings import units_given
from kstonet.targets import ClassTargets
from kstonet.tuning.automatic import MOST_ROWS, automatic_choice
from kstonet.tuning.choice import Choice
from kstonet.tuning.screening_ridge import best_ridge
from kstonet.tuning.shared_unit import with_shared_unit
from kstonet.tuning.stationary import FAMILIES

FEWEST_ROWS = 10  # fewer have nothing to choose by
LARGEST_INVERSE = 12_000  # rows up to which a squared loss is affordable
INVERSE_BYTES = 24  # per pair of rows, while an inverse is made: a copy, its factor and the result
TWO_KERNELS_UP_TO = 5_000  # rows: two kernels are two inverses
UNITS = 20  # of a regression; on validation rows six were 2 % behind the ridge regression, twenty 0.3 % ahead
ITERATIONS = {"squared": 12, "epsilon_insensitive": 8}
CLASS_ITERATIONS = 6  # a classifier starts nearly where it ends


@dataclass(frozen=True)
class FastChoice:
    """Parameters of the estimator, the reason in words, and a table of what was tried."""

    parameters: dict[str, Any]
    reason: str
    table: list[dict[str, Any]]


def fast_choice(
    problem: Problem, given: dict[str, Any], *, seed: int, thorough: bool = False, n_jobs: int | None = None
) -> FastChoice:
    """Choose the parameters that are None.

    Parameters
    ----------
    problem : Problem
        Training rows, all of positive weight.
    given : dict
        The estimator's ``kernel``, ``gamma``, ``length_scale``, ``C``, ``loss``, ``epsilon``, ``hidden_layer_sizes``,
        ``max_iter`` and ``n_average``; None is to be chosen.
    seed : int
        Seed of the choice of rows.
    thorough : bool
        As in :func:`~kstonet.tuning.automatic.automatic_choice`.
    n_jobs : int, optional
        Number of threads; by default one per core, each with a BLAS of one thread. The result does not depend on it.

    Returns
    -------
    FastChoice

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.problem import Problem, Rows
    >>> from kstonet.targets import NumericTargets
    >>> X = np.random.default_rng(0).normal(size=(120, 3))
    >>> problem = Problem.of(Rows(X, np.sin(2 * X[:, 0])), NumericTargets)
    >>> names = ("kernel", "gamma", "length_scale", "C", "loss", "epsilon", "hidden_layer_sizes", "max_iter", "n_average")
    >>> found = fast_choice(problem, dict.fromkeys(names), seed=0)
    >>> found.parameters["loss"], found.parameters["hidden_layer_sizes"]
    ('squared', (20,))
    """
    n, classes, grams = len(problem.X), isinstance(problem.targets, ClassTargets), problem.grams
    if not grams.allows():
        grams.new(RBF())  # raises: it would be found after the choice
    columns = problem.targets.judged(problem.outputs, problem.weights)
    with threadpool_limits(limits=1, user_api="blas"):  # many small products: threads of their own would only wait
        found = _kernels(problem, columns, given, seed, thorough, cpu_count() if n_jobs is None else n_jobs)
    loss = given["loss"]
    if loss is None:
        affordable = n <= LARGEST_INVERSE and grams.device is None and grams.allows(INVERSE_BYTES * n * n)
        squared = affordable and given["C"] is None
        loss = "squared" if squared else "epsilon_insensitive"
    sizes = given["hidden_layer_sizes"]
    if sizes is None:
        units = units_given({name: given[name] for name in ("kernel", "gamma", "C", "epsilon")})
        sizes = (units or (problem.targets.n_units if isinstance(problem.targets, ClassTargets) else UNITS),)
    most = given["max_iter"] or (CLASS_ITERATIONS if classes else ITERATIONS[loss])
    parameters = {
        "gamma": "scale",  # without a say where the kernels bring their widths
        "length_scale": None,
        "epsilon": 0.01,
        "loss": loss,
        "hidden_layer_sizes": sizes,
        "max_iter": most,
        "n_average": given["n_average"] or max(1, most // 2),
    }
    if found is None:
        parameters |= {"C": 10.0}
        reason = "the kernel was given for every unit: C has its fixed default"
        table: list[dict[str, Any]] = []
    else:
        units = int(np.atleast_1d(sizes)[0])
        both = found.together if n <= TWO_KERNELS_UP_TO and units > 1 and not classes else 1
        parameters |= _first_layer(found, loss, units, both)
        reason, table = found.reason, found.table
    kept = {name: value for name, value in given.items() if value is not None}
    return FastChoice({name: value for name, value in parameters.items() if name not in kept}, reason, table)


def _kernels(
    problem: Problem, columns: np.ndarray, given: dict[str, Any], seed: int, thorough: bool, n_jobs: int
) -> Choice | None:
    """The kernels and their ridges; None where every unit was given its own."""
    kernel, gamma, length_scale = given["kernel"], given["gamma"], given["length_scale"]
    if isinstance(kernel, list | tuple) or np.ndim(gamma) > 0:
        return None
    free = gamma is None and length_scale is None and (kernel is None or (isinstance(kernel, str) and kernel in FAMILIES))
    names = tuple(FAMILIES) if kernel is None else (kernel,)
    if free:
        classes = isinstance(problem.targets, ClassTargets)
        options: dict[str, Any] = {"classification": classes, "kernels": names, "thorough": thorough, "n_jobs": n_jobs}
        found = automatic_choice(problem.X, columns, problem.weights, seed, **options)
        return with_shared_unit(problem, columns, found, names, seed) if classes else found
    made = [
        make_kernel(
            name,
            problem.X,
            gamma="scale" if gamma is None else gamma,
            length_scale=length_scale,
            sample_weight=problem.weights,
        )
        for name in names
    ]
    return _judged(made, problem, columns, seed)


def _judged(kernels: list[Kernel], problem: Problem, columns: np.ndarray, seed: int) -> Choice:
    """Kernels whose widths were given, by the leave-one-out error of their best ridge."""
    rows = np.random.default_rng(seed).permutation(len(columns))[:MOST_ROWS]
    weights = None if problem.weights is None else problem.weights[rows]
    X = problem.X[rows]
    fits = []
    for kernel in kernels:
        values = X[:, rows] if kernel.precomputed else np.asarray(kernel(X, X))
        fit = best_ridge(values, columns[rows], weights)
        if fit is not None:
            fits.append((fit.score, kernel, fit))
    if not fits:
        raise ValueError("no kernel is positive definite on the training rows; give C and loss='epsilon_insensitive'.")
    fits.sort(key=lambda one: one[0])
    table = [
        {"kernel": type(kernel).__name__, "ridge": fit.ridge, "score": score, "rows": len(rows)} for score, kernel, fit in fits
    ]
    _, kernel, fit = fits[0]
    reason = f"ridge {fit.ridge:.3g} has the smallest leave-one-out error, {fit.score:.3g} of the variance on {len(rows)} rows"
    return Choice((kernel,), (fit.ridge,), (fit.strength,), (fit.root,), True, table, reason)


def _first_layer(found: Choice, loss: str, units: int, both: int) -> dict[str, Any]:
    """Kernels, C and epsilon of the first layer; two kernels take turns."""
    C = tuple(1.0 / ridge for ridge in found.ridges) if loss == "squared" else found.C
    epsilon = (0.01,) * len(found.kernels) if loss == "squared" else found.epsilon
    if both > 1:
        turns = [unit % both for unit in range(units)]
        each = {"kernel": found.kernels, "C": C, "epsilon": epsilon}
        return {name: [values[turn] for turn in turns] for name, values in each.items()}
    kernel = found.kernels[0]
    one = {"C": C[0], "epsilon": epsilon[0]}
    for family in FAMILIES.values():
        if kernel.length_scale is not None and family.make(kernel.length_scale) == kernel:
            scales = kernel.length_scale
            return one | {"kernel": family.name, "gamma": kernel.gamma, "length_scale": scales}  # type: ignore[attr-defined]
    return one | {"kernel": kernel}
