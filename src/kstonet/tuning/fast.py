"""tuning="fast" and "thorough": kernel, width, relevance of features, loss, C and size, chosen from the training rows.

Kernels are judged by the leave-one-out error of kernel ridge regressions (:mod:`kstonet.tuning.automatic`). The network is then
built on the best kernel, or on the best two where they are nearly as good. Its first layer has a squared loss, with which it is
at least as good as the regression that won; where a C that belongs to support vector regressions is given, or the matrix has to
be dense (on a GPU, or because it is given) and is too large to be inverted, the ε-insensitive loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kstonet.gram import Kernel, make_kernel
from kstonet.gram.planning import dense_fits
from kstonet.problem import Grams, Problem
from kstonet.settings import FIXED, units_given
from kstonet.targets import ClassTargets
from kstonet.threads import single_threaded
from kstonet.tuning.automatic import automatic_choice
from kstonet.tuning.choice import Choice
from kstonet.tuning.contest import MOST_ROWS
from kstonet.tuning.density import at_density
from kstonet.tuning.joined import joined_choice, parts_to_hide
from kstonet.tuning.log_loss import LeftOutLogLoss
from kstonet.tuning.screening_ridge import best_ridge
from kstonet.tuning.shared_unit import with_shared_unit
from kstonet.tuning.spread import spread_order
from kstonet.tuning.stationary import FAMILIES

DENSER = 2_400  # rows from which they are so much denser than those of a choice that width and ridge are judged anew
DENSER_CLASSES = 12_000  # likewise for classes
ONE_THREAD_UP_TO = 200  # rows: their matrices are so small that threads wait for the interpreter; two took longer than one
SEVERAL_KERNELS_UP_TO = 12_000  # rows: every kernel is a factor
MANY_KERNELS_UP_TO = 3_000  # rows, up to which a factor costs little, and any gain is welcome
TOGETHER, TOGETHER_THOROUGH = 3, 6  # kernels in one layer
# Share of the squared error that several kernels have to gain where a factor costs more. Errors on held-out training rows of
# ten tables, 24 draws of 5,600 to 10,000 rows: 0.959 of those with one kernel in the 15 cases with such a gain, else 1.003.
WORTH = 0.02
UNITS = 20  # of a regression; on validation rows six were 2 % behind the ridge regression, twenty 0.3 % ahead
JOINED_UNITS, JOINED_KERNELS = 40, 8  # where several choices share the layer; all kernels, up to 14, are better by a thousandth
ITERATIONS = {"squared": 6, "epsilon_insensitive": 8}  # of one hidden layer, which starts nearly where it ends
DEEP_ITERATIONS = 12
CLASS_ITERATIONS = 6  # a classifier starts nearly where it ends
MANY_ROWS = 100_000  # from which models with half as many iterates are large enough


@dataclass(frozen=True)
class FastChoice:
    """Parameters of the estimator, the reason in words, a table of what was tried, and the ``growth`` of a :class:`Choice`."""

    parameters: dict[str, Any]
    reason: str
    table: list[dict[str, Any]]
    growth: float | None = None


def fast_choice(
    problem: Problem, given: dict[str, Any], *, thorough: bool = False, intervals: bool = True, n_jobs: int | None = None
) -> FastChoice:
    """Choose the parameters that are None.

    Parameters
    ----------
    problem : Problem
        Training rows, all of positive weight.
    given : dict
        The estimator's ``kernel``, ``gamma``, ``length_scale``, ``C``, ``loss``, ``epsilon``, ``hidden_layer_sizes``,
        ``max_iter`` and ``n_average``; None is to be chosen.
    thorough : bool
        As in :func:`~kstonet.tuning.automatic.automatic_choice`.
    intervals : bool
        Whether it matters by how much left-out errors are too small.
    n_jobs : int, optional
        Number of threads, each with a BLAS of one thread; by default one per core, but one alone up to ``ONE_THREAD_UP_TO``
        rows. The result does not depend on it.

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
    >>> found = fast_choice(problem, dict.fromkeys(names))
    >>> found.parameters["loss"], found.parameters["hidden_layer_sizes"]
    ('squared', (40,))
    """
    classes, grams = isinstance(problem.targets, ClassTargets), problem.grams
    pairwise = problem.rows.pairwise
    grams.check_memory(pairwise=pairwise)
    columns = problem.targets.judged(problem.outputs, problem.weights)
    own = problem.targets.n_units if isinstance(problem.targets, ClassTargets) else None
    shape = network_shape(grams, given, pairwise=pairwise, class_units=own)
    several = kernels_together(grams, classes=classes, thorough=thorough)
    n_scales, n_outputs = 1 if pairwise else problem.n_scales, 0 if classes else columns.shape[1]
    parts, most = joining(grams, given, shape["loss"], n_outputs, n_scales, intervals=intervals)
    with single_threaded():  # many small products: threads of their own would only wait
        if n_jobs is None:
            n_jobs = 1 if len(columns) <= ONE_THREAD_UP_TO else -1
        found = _kernels(problem, columns, given, thorough, several, parts, most, n_jobs)
    if most > 1:
        shape["hidden_layer_sizes"] = (JOINED_UNITS,)
    loss, sizes = shape["loss"], shape["hidden_layer_sizes"]
    parameters = FIXED | shape  # gamma has no say where the kernels bring their widths
    if found is None:
        reason = "the kernel was given for every unit: C has its fixed default"
        table: list[dict[str, Any]] = []
    else:
        units = int(np.atleast_1d(sizes)[0])
        parameters |= found.settings(loss, units, None if several > 1 else 1)
        reason, table = found.reason, found.table
    kept = {name for name, value in given.items() if value is not None}
    if _has_free_widths(given) and not isinstance(parameters["kernel"], str):
        kept.discard("kernel")  # kernels of the family that was named, which bring their widths
    growth = None if found is None else found.growth
    return FastChoice({name: value for name, value in parameters.items() if name not in kept}, reason, table, growth)


def _has_free_widths(given: dict[str, Any]) -> bool:
    """Whether kernels are to be chosen with their widths: of all families, or of one that was named."""
    kernel = given["kernel"]
    named = kernel is None or (isinstance(kernel, str) and kernel in FAMILIES)
    return named and given["gamma"] is None and given["length_scale"] is None


def joining(
    grams: Grams, given: dict[str, Any], loss: str, n_outputs: int, n_scales: int, *, intervals: bool
) -> tuple[int, int]:
    """How many parts of the rows are hidden from a choice in turn, and how many kernels of all these choices share the layer.

    A regression of one target, with a squared loss and a free number of units, can be the mean of all that they lead to. Others
    have the kernels of one choice, and learn from the parts what that fits, where ``intervals`` need to know.
    """
    joined = n_outputs == 1 and loss == "squared" and given["hidden_layer_sizes"] is None and units_given(given) is None
    if n_outputs == 0 or not (joined or intervals):  # classes have none
        return 0, 1
    parts = parts_to_hide(len(grams.X), n_scales, joined=joined)
    return parts, kernels_together(grams, classes=False, joined=True) if joined and parts else 1


def kernels_together(grams: Grams, *, classes: bool, thorough: bool = False, joined: bool = False) -> int:
    """How many kernels may share the first layer: more with few rows, as many as their inverses fit into the memory.

    They are those of one choice, or of several that are ``joined``.
    """
    n = len(grams.X)
    if classes or n > SEVERAL_KERNELS_UP_TO:
        return 1
    most = JOINED_KERNELS if joined else TOGETHER_THOROUGH if thorough and n <= MANY_KERNELS_UP_TO else TOGETHER
    if grams.device is not None:
        return most
    return next((k for k in range(most, 1, -1) if dense_fits(n, grams.max_memory, squared=True, groups=k)), 1)


def network_shape(grams: Grams, given: dict[str, Any], *, pairwise: bool, class_units: int | None) -> dict[str, Any]:
    """Loss, sizes and iterations: what is chosen by the number of rows alone.

    Parameters
    ----------
    grams : Grams
        Those of the training rows.
    given : dict
        As in :func:`fast_choice`.
    pairwise : bool
        Whether the kernel matrix is given.
    class_units : int or None
        Units that a classification asks for; None for a regression.
    """
    loss = given["loss"]
    if loss is None:
        squared = given["C"] is None and grams.affords_squared(pairwise=pairwise)
        loss = "squared" if squared else "epsilon_insensitive"
    sizes = given["hidden_layer_sizes"]
    if sizes is None:
        units = units_given({name: given[name] for name in ("kernel", "gamma", "length_scale", "C", "epsilon")})
        sizes = (units or (UNITS if class_units is None else class_units),)
    regression = ITERATIONS[loss] if np.size(sizes) == 1 else DEEP_ITERATIONS
    most = given["max_iter"] or (regression if class_units is None else CLASS_ITERATIONS)
    averages = given["n_average"] or max(1, most // 2 if len(grams.X) <= MANY_ROWS else most // 4)
    return {"loss": loss, "hidden_layer_sizes": sizes, "max_iter": most, "n_average": averages}


def _kernels(
    problem: Problem,
    columns: np.ndarray,
    given: dict[str, Any],
    thorough: bool,
    several: int,
    parts: int,
    most: int,
    n_jobs: int,
) -> Choice | None:
    """The kernels and their ridges; None where every unit was given its own.

    One choice takes up to ``several``; where it is made again without each of some ``parts``, up to ``most`` share the layer.
    """
    kernel, gamma, length_scale = given["kernel"], given["gamma"], given["length_scale"]
    if isinstance(kernel, list | tuple) or np.ndim(gamma) > 0 or np.ndim(length_scale) > 1:
        return None
    names = tuple(FAMILIES) if kernel is None else (kernel,)
    weights = problem.weights

    def found_by(choose: Callable[[np.ndarray], Choice]) -> Choice:
        if not parts:
            return choose(np.arange(len(columns)))
        return joined_choice(choose, problem.X, columns, weights, parts, most)

    if _has_free_widths(given):
        loss = _log_loss(problem, columns)
        options: dict[str, Any] = {"loss": loss, "kernels": names, "thorough": thorough, "n_jobs": n_jobs}
        options |= {"together": several, "directions": not isinstance(problem.targets, ClassTargets)}
        options["worth"] = 0.0 if len(problem.X) <= MANY_KERNELS_UP_TO else WORTH
        options["groups"] = problem.rows.groups

        def free(rows: np.ndarray) -> Choice:
            own = None if weights is None else weights[rows]
            return automatic_choice(problem.X[rows], columns[rows], own, **options)

        found = found_by(free)
        if loss is not None:
            found = with_shared_unit(problem, columns, loss, found, names)
        return _at_density(found, problem, columns, n_jobs, widths=True)
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
    found = found_by(lambda rows: _judged(made, problem, columns, rows))
    return _at_density(found, problem, columns, n_jobs, widths=False)


def _at_density(found: Choice, problem: Problem, columns: np.ndarray, n_jobs: int, *, widths: bool) -> Choice:
    """Where there are more rows than the choice has seen, with widths and ridges for so many.

    The judge is a squared error, which says less of classes: there, only where rows are many more than the choice has seen.
    """
    enough = DENSER_CLASSES if isinstance(problem.targets, ClassTargets) else DENSER
    if len(problem.X) <= enough or problem.rows.pairwise:
        return found
    return at_density(found, problem.X, columns, problem.weights, widths=widths, n_jobs=n_jobs)


def _log_loss(problem: Problem, columns: np.ndarray) -> LeftOutLogLoss | None:
    """What judges kernels for classes; None for numbers, for ordered classes and for very many."""
    targets = problem.targets
    if not isinstance(targets, ClassTargets):
        return None
    return LeftOutLogLoss.of(targets, problem.outputs, columns, problem.weights)


def _judged(kernels: list[Kernel], problem: Problem, columns: np.ndarray, rows: np.ndarray) -> Choice:
    """Kernels whose widths were given, by the leave-one-out error that their best ridge has on some rows."""
    rows = rows[spread_order(columns[rows])[:MOST_ROWS]]
    weights = None if problem.weights is None else problem.weights[rows]
    X, loss = problem.X[rows], _log_loss(problem, columns)
    loss = None if loss is None else loss.take(rows)
    fits = []
    for kernel in kernels:
        values = X[:, rows] if kernel.precomputed else np.asarray(kernel(X, X))
        fit = best_ridge(values, columns[rows], weights, loss=loss)
        if fit is not None:
            fits.append((fit.score, kernel, fit))
    if not fits:
        raise ValueError("no kernel is positive definite on the training rows; give C and loss='epsilon_insensitive'.")
    fits.sort(key=lambda one: one[0])
    table = [
        {"kernel": type(kernel).__name__, "ridge": fit.ridge, "score": score, "rows": len(rows)} for score, kernel, fit in fits
    ]
    _, kernel, fit = fits[0]
    by, of = ("error", "the variance") if loss is None else ("log loss", "that of the class frequencies")
    reason = f"ridge {fit.ridge:.3g} has the smallest leave-one-out {by}, {fit.score:.3g} of {of} on {len(rows)} rows"
    return Choice((kernel,), (fit.ridge,), (fit.strength,), (fit.root,), True, table, reason)
