"""What "tune" does: parameters chosen by validation inside the training rows.

Three steps, from cheap to dear. Kernels and values of C are screened by the first layer alone, a support vector regression of
the targets: one kernel matrix serves all values of C, and after every validation part the worse half of the kernels is
dropped. The best kernels, alone and two in one layer, are then trained for a few iterations with the values of C around their
best; sizes and noise are tried on the best of these. Successive halving over the iterations of Algorithm 1 does the rest:
training resumes where it stopped, on Gram matrices and factors the candidates of a part share. Where there are many more rows
than these parts have, the best are tried once more on a larger one, beside shorter scales of their kernels.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.parallel import Parallel, delayed

from kstonet._bar import write
from kstonet.estimators.candidates import Candidate, Grids, first_units
from kstonet.estimators.scaling import Scaler
from kstonet.gram import DenseGram, Kernel
from kstonet.tuning.parts import Part
from kstonet.tuning.recipes import KernelRecipe, Kitchen
from kstonet.tuning.screening import svr_errors

Rows = tuple[np.ndarray, np.ndarray, np.ndarray | None]

FEWEST_KERNELS = 4  # that every validation part sees
TRAINED_KERNELS = 2  # that are trained
RUNGS = ((0.2, 3), (0.3, 2), (0.5, 1))  # share of max_iter, and how many candidates are left after it


@dataclass
class Arena:
    """One validation part: its rows, the kernels made on them, and the trainings so far."""

    fit: Rows
    look: Rows  # standardised, outputs as training sees them
    kitchen: Kitchen
    columns_look: np.ndarray  # the outputs as numeric columns
    grams: dict[Kernel, DenseGram] = field(default_factory=dict)
    models: dict[Candidate, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Search:
    """The result: parameters, their mean validation loss, why, and the table of everything that was tried."""

    parameters: dict[str, Any]
    loss: float
    reason: str
    table: list[dict[str, Any]]


def rows_that_count(estimator: Any, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None) -> Rows:
    """Without the rows of weight zero, which have no say in training either."""
    if weights is None:
        return X, y, None
    counted = np.flatnonzero(weights > 0)
    return *_safe_split(estimator, X, y, counted, counted), weights[counted]


def search(
    estimator: Any,
    X: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray | None,
    grids: Grids,
    parts: Sequence[Part],
    last: Part | None = None,
    *,
    seed: int,
    n_jobs: int | None,
    verbose: int,
) -> Search:
    """Choose among ``grids``.

    Parameters
    ----------
    estimator : KStoNetRegressor or KStoNetClassifier
        Whose other parameters the candidates have.
    X, y : ndarray
        Training rows, validated.
    weights : ndarray of shape (n,), optional
        Positive.
    grids : Grids
    parts : sequence of (fit, look)
    last : (fit, look), optional
        More rows, for the best.
    seed : int
        Of the trainings and of the rows length scales are learned from.
    n_jobs : int, optional
        Threads over the parts; the result does not depend on it.
    verbose : int
        1 says on standard error what is done, 2 adds a line per network.

    Returns
    -------
    Search
    """
    clone(estimator).set_params(noise_variance=grids.noise_variance[0])._check_numbers()  # not after minutes of work
    started = time.perf_counter()

    def say(text: str, level: int = 1) -> None:
        if verbose >= level:
            write(f"[tune] {time.perf_counter() - started:6.1f} s  {text}\n")

    arenas = [_arena(estimator, X, y, weights, part, seed) for part in parts]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the last training says what is worth a warning
        ranked, best, table = _screened(estimator, arenas, grids.recipes, grids.C, say)
        running = _first_candidates(ranked, best, grids)
        losses: dict[Candidate, float] = {}
        iterations = 0

        def train(candidates: Iterable[Candidate]) -> None:
            for candidate in candidates:
                scores = _trained(estimator, arenas, candidate, iterations, seed, n_jobs)
                losses[candidate] = float(scores.mean())
                table.append(_row(candidate, iterations, scores, arenas))
                say(f"{candidate}: loss {losses[candidate]:.4g}", level=2)

        for share, kept in RUNGS:
            losses.clear()
            iterations += max(1, round(share * estimator.max_iter))
            say(f"training networks to iteration {iterations}")
            train(running)
            if share == RUNGS[0][0]:  # sizes and noise are tried on what is best without them
                train(_variants(min(losses, key=lambda candidate: losses[candidate]), grids))
            running = sorted(losses, key=lambda candidate: losses[candidate])[:kept]
            say(f"best of {len(losses)}: {running[0]}, loss {losses[running[0]]:.4g}")
            for arena in arenas:
                arena.models = {candidate: arena.models[candidate] for candidate in running}
            if len(losses) == 1:
                break
        if last is not None:
            parts, finalists = [last], sorted(losses, key=lambda candidate: losses[candidate])
            arenas = [_arena(estimator, X, y, weights, last, seed)]
            recipes = _with_shorter_scales(ranked[:FEWEST_KERNELS], grids)
            ranked, best, rows = _screened(estimator, arenas, recipes, grids.C, say)
            table += rows
            losses.clear()
            say(f"training the best networks on {len(last[0])} rows")
            for candidate in _finalists(finalists, ranked, best, grids.C):
                train([candidate])
                arenas[0].models.clear()  # one kernel matrix at a time
                arenas[0].grams.clear()
        winner = min(losses, key=lambda candidate: losses[candidate])
        # length scales that were learned on many rows are kept; learned on others again, they would not be those that won
        kitchen = _kitchen(estimator, X, y, weights, seed)[2] if last is None else arenas[0].kitchen
        parameters = winner.parameters(kitchen)
    second = sorted(losses.values())[1:2]
    fit, look = parts[0]
    reason = (
        f"{winner}: smallest mean validation loss, {losses[winner]:.4g}{f' (next {second[0]:.4g})' if second else ''}, "
        f"on {len(parts)} part{'s' * (len(parts) > 1)} of {len(fit)} + {len(look)} training rows, {iterations} iterations"
    )
    return Search(parameters, losses[winner], reason, table)


def _row(candidate: Candidate, iterations: int, scores: np.ndarray, arenas: Sequence[Arena]) -> dict[str, Any]:
    """One row of the table: losses, the smaller the better, and how many rows were fitted on."""
    losses = {"score": float(scores.mean()), "scores": scores.tolist()}
    return candidate.describe() | {"iterations": iterations, "rows": len(arenas[0].fit[1])} | losses


# -- validation parts --------------------------------------------------------------------------------------------------------


def _arena(estimator: Any, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None, part: Part, seed: int) -> Arena:
    fit, look = part
    X_fit, y_fit = _safe_split(estimator, X, y, fit)
    X_look, y_look = _safe_split(estimator, X, y, look, fit)  # the columns of a kernel matrix are those of the rows to fit on
    w_fit, w_look = (None, None) if weights is None else (weights[fit], weights[look])
    scales, columns, kitchen = _kitchen(estimator, X_fit, y_fit, w_fit, seed)
    outputs = scales._as_outputs(y_look)
    return Arena(
        fit=(X_fit, y_fit, w_fit),
        look=(scales._x_scaler.forward(X_look), outputs, w_look),
        kitchen=kitchen,
        columns_look=columns.forward(scales._as_columns(outputs)),
    )


def _kitchen(
    estimator: Any, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None, seed: int
) -> tuple[Any, Scaler, Kitchen]:
    """An estimator that knows the scales of these rows, the scale of its targets as columns, and the kitchen."""
    scales = clone(estimator)
    scaled, outputs = scales._standardised(X, y, weights)
    values = scales._as_columns(outputs)
    columns = Scaler.fit(values, weights)  # indicators of classes, too, get the scale that C is meant for
    return scales, columns, Kitchen(scaled, columns.forward(values), weights, seed)


# -- the first layer alone ---------------------------------------------------------------------------------------------------


def _screened(
    estimator: Any, arenas: Sequence[Arena], recipes: Sequence[KernelRecipe], C: Sequence[Any], say: Callable[[str], None]
) -> tuple[list[KernelRecipe], dict[KernelRecipe, Any], list[dict[str, Any]]]:
    """The kernels, the best first; the best C of each; and the rows of the table."""
    if len(recipes) * len(C) == 1:
        return list(recipes), {recipes[0]: C[0]}, []
    say(f"first layer alone: kernels × values of C {len(recipes)} × {len(C)}, validation parts {len(arenas)}")
    errors = _screen(estimator, arenas, recipes, C)
    table = [
        _row(Candidate((recipe,), (C[i],)), 0, rows[:, i], arenas) for recipe, rows in errors.items() for i in range(len(C))
    ]
    means = {recipe: rows.mean(axis=0) for recipe, rows in errors.items() if len(rows) == len(arenas)}
    best = {recipe: C[int(mean.argmin())] for recipe, mean in means.items()}
    ranked = sorted(means, key=lambda recipe: means[recipe].min())
    say(f"best first layer: {Candidate((ranked[0],), (best[ranked[0]],))}, squared error {means[ranked[0]].min():.4g}")
    return ranked, best, table


def _screen(
    estimator: Any, arenas: Sequence[Arena], recipes: Sequence[KernelRecipe], C: Sequence[Any]
) -> dict[KernelRecipe, np.ndarray]:
    """Squared error of the first layer alone on the parts that a kernel stayed for, for every C; shape (parts, len(C))."""
    errors = {recipe: np.empty((0, len(C))) for recipe in recipes}
    staying = list(recipes)
    for arena in arenas:
        kitchen, (X_look, _, w_look) = arena.kitchen, arena.look
        for recipe in staying:
            of_kernels = [
                svr_errors(
                    estimator._new_gram(kitchen.X, kernel),
                    (kitchen.X, kitchen.Y, kitchen.weights),
                    (X_look, arena.columns_look, w_look),
                    [_one_number(value) for value in C],
                    _one_number(estimator.epsilon),
                )
                for kernel in kitchen.kernels(recipe)
            ]
            errors[recipe] = np.vstack([errors[recipe], np.mean(of_kernels, axis=0)])
        staying.sort(key=lambda recipe: errors[recipe].mean(axis=0).min())
        if arena is not arenas[-1]:
            staying = staying[: max(FEWEST_KERNELS, (len(staying) + 1) // 2)]
    return errors


def _one_number(value: Any) -> float:
    """Of a schedule its first value, of one value per unit the mean: what the first layer alone is tried with."""
    return float(value(0)) if callable(value) else float(np.mean(value))


# -- networks ----------------------------------------------------------------------------------------------------------------


def _first_candidates(ranked: Sequence[KernelRecipe], best: dict[KernelRecipe, Any], grids: Grids) -> list[Candidate]:
    """The best kernels with the values of C around their best, and the two best in one layer."""
    sizes, noise = grids.hidden_layer_sizes[0], grids.noise_variance[0]
    out = []
    for recipe in ranked[:TRAINED_KERNELS]:
        place = grids.C.index(best[recipe])
        out += [Candidate((recipe,), (C,), sizes, noise) for C in grids.C[max(0, place - 1) : place + 2]]
    pair = tuple(ranked[:2])
    shareable = all(np.isscalar(best[recipe]) and not recipe.per_unit for recipe in pair)
    if len(pair) == 2 and shareable and first_units(sizes) > 1:
        out.append(Candidate(pair, tuple(best[recipe] for recipe in pair), sizes, noise))
    return out


def _variants(candidate: Candidate, grids: Grids) -> Iterable[Candidate]:
    """Other sizes, and other noise."""
    for sizes in grids.hidden_layer_sizes[1:]:
        if first_units(sizes) >= len(candidate.recipes):
            yield replace(candidate, hidden_layer_sizes=sizes)
    for noise in grids.noise_variance[1:]:
        yield replace(candidate, noise_variance=noise)


def _with_shorter_scales(recipes: Sequence[KernelRecipe], grids: Grids) -> list[KernelRecipe]:
    """The kernels, and with twice the gamma where that is to be chosen."""
    shorter = [replace(recipe, gamma=2.0 * recipe.gamma) for recipe in recipes if len(grids.gamma) > 1 and not recipe.finished]
    return list(dict.fromkeys([*recipes, *shorter]))


def _finalists(
    best: Sequence[Candidate], ranked: Sequence[KernelRecipe], C: dict[KernelRecipe, Any], grid: Any
) -> list[Candidate]:
    """The best networks, and the best of them with what the first layer alone prefers on more rows.

    Latent values are noisier than the targets: a network often wants a smaller C than its first layer alone.
    """
    finalists = [*best]
    first = ranked[0]
    place = grid.index(C[first])
    finalists += [replace(best[0], recipes=(first,), C=(value,)) for value in grid[max(0, place - 1) : place + 1]]
    pair = tuple(ranked[: len(best[0].recipes)])
    finalists.append(replace(best[0], recipes=pair, C=tuple(C[recipe] for recipe in pair)))
    return list(dict.fromkeys(finalists))


def _trained(
    estimator: Any, arenas: Sequence[Arena], candidate: Candidate, iterations: int, seed: int, n_jobs: int | None
) -> np.ndarray:
    """Loss at the rows looked at of every part, after training has gone on to ``iterations``."""

    def one(arena: Arena) -> float:
        model = arena.models.get(candidate)
        if model is None:
            model = arena.models[candidate] = clone(estimator).set_params(
                **candidate.parameters(arena.kitchen),
                residuals=None, n_chains=1, warm_start=True, callback=None, tol=None, verbose=0, n_jobs=None, random_state=seed,
            )  # fmt: skip
            model._grams = arena.grams
        steps = iterations - getattr(model, "n_iter_", 0)
        model.set_params(max_iter=steps, n_average=max(1, min(estimator.n_average, steps // 2)))
        model.fit(*arena.fit)
        if model.n_iter_ < iterations:  # a training that is interrupted returns what it has; a search does not go on
            raise KeyboardInterrupt
        X, outputs, weights = arena.look
        return float(np.average(model._validation_losses(X, outputs), weights=weights))

    return np.array(Parallel(n_jobs=n_jobs, prefer="threads")(delayed(one)(arena) for arena in arenas))
