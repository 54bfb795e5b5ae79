"""What "tune" does: parameters chosen by validation inside the training rows. A problem and settings in, parameters out.

Three steps, from cheap to expensive. Kernels and values of C are screened by the first layer alone, a support vector regression
of the targets: one kernel matrix serves all values of C, and after every validation part the worse half of the kernels is
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
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from kstonet._progress import moving, write
from kstonet.checkpoint import Run
from kstonet.observers import Ends
from kstonet.problem import Problem, Rows
from kstonet.scaling import Scaler
from kstonet.settings import TrainingSettings
from kstonet.threads import single_threaded
from kstonet.training import Resumption, train
from kstonet.tuning.candidates import Candidate, Grids, first_units
from kstonet.tuning.parts import Part
from kstonet.tuning.recipes import KernelRecipe, Kitchen
from kstonet.tuning.screening import svr_errors

FEWEST_KERNELS = 4  # that every validation part sees
TRAINED_KERNELS = 2  # that are trained
RUNGS = ((0.2, 3), (0.3, 2), (0.5, 1))  # share of max_iter, and how many candidates are left after it


@dataclass
class Arena:
    """One validation part: its rows, the kernels made on them, and the trainings so far."""

    problem: Problem  # the rows to fit on
    validation: Rows
    kitchen: Kitchen
    columns: np.ndarray  # the outputs of the validation rows as numeric columns
    runs: dict[Candidate, Resumption] = field(default_factory=dict)


@dataclass(frozen=True)
class Search:
    """The result: parameters, their mean validation loss, why, and the table of everything that was tried."""

    parameters: dict[str, Any]
    loss: float
    reason: str
    table: list[dict[str, Any]]


@single_threaded()  # parts are small enough for dense matrices
def search(
    problem: Problem,
    settings: TrainingSettings,
    grids: Grids,
    parts: Sequence[Part],
    last: Part | None = None,
    *,
    seed: int,
    n_jobs: int | None,
    verbose: int,
    run: Run | None = None,
) -> Search:
    """Choose among ``grids``.

    Parameters
    ----------
    problem : Problem
        All training rows, of positive weight.
    settings : TrainingSettings
        The settings that all candidates share.
    grids : Grids
        The values to choose from.
    parts : sequence of (fit, validation)
        Row numbers of the validation parts.
    last : (fit, validation), optional
        A part with more rows, for the best candidates.
    seed : int
        Seed of the trainings and of the rows length scales are learned from.
    n_jobs : int, optional
        Threads over the parts; the result does not depend on it.
    verbose : int
        1 says on standard error what is done, 2 adds a line per network.
    run : Run, optional
        Keeps what has been tried.

    Returns
    -------
    Search
    """
    run = run or Run()
    started = time.perf_counter()

    def say(text: str, level: int = 1) -> None:
        if verbose >= level:
            line = f"[tune] {time.perf_counter() - started:6.1f} s  {text}"
            write(f"{line}\n") if verbose > 1 else moving(line)

    arenas = [_arena(problem, part, seed) for part in parts]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the last training says what is worth a warning
        ranked, best, table = _screened(settings, arenas, grids.recipes, grids.C, say, run)
        running = _first_candidates(ranked, best, grids)
        losses: dict[Candidate, float] = {}
        iterations = 0

        def train_all(candidates: Iterable[Candidate]) -> None:
            for candidate in candidates:
                step = run.within(f"network{len(table):04d}")  # the order is always the same
                scores = _trained(settings, arenas, candidate, iterations, seed, n_jobs, step)
                losses[candidate] = float(scores.mean())
                table.append(_row(candidate, iterations, scores, arenas))
                say(f"{candidate}: loss {losses[candidate]:.4g}", level=2)

        for share, kept in RUNGS:
            losses.clear()
            iterations += max(1, round(share * settings.max_iter))
            say(f"training networks to iteration {iterations}")
            train_all(running)
            if share == RUNGS[0][0]:  # sizes and noise are tried on what is best without them
                train_all(_variants(min(losses, key=lambda candidate: losses[candidate]), grids))
            running = sorted(losses, key=lambda candidate: losses[candidate])[:kept]
            say(f"best of {len(losses)}: {running[0]}, loss {losses[running[0]]:.4g}")
            for arena in arenas:
                arena.runs = {candidate: arena.runs[candidate] for candidate in running}
            if len(losses) == 1:
                break
        if last is not None:
            parts, finalists = [last], sorted(losses, key=lambda candidate: losses[candidate])
            arenas = [_arena(problem, last, seed)]
            recipes = _with_shorter_scales(ranked[:FEWEST_KERNELS], grids)
            ranked, best, rows = _screened(settings, arenas, recipes, grids.C, say, run.within("last"))
            table += rows
            losses.clear()
            say(f"training the best networks on {len(last[0])} rows")
            for candidate in _finalists(finalists, ranked, best, grids.C):
                train_all([candidate])
                arenas[0].runs.clear()  # one kernel matrix at a time
                arenas[0].problem.grams.clear()
        winner = min(losses, key=lambda candidate: losses[candidate])
        # length scales that were learned on many rows are kept; learned on others again, they would not be those that won
        kitchen = _kitchen(problem, seed)[1] if last is None else arenas[0].kitchen
        parameters = winner.parameters(kitchen)
    second = sorted(losses.values())[1:2]
    fit, validation = parts[0]
    reason = (
        f"{winner}: smallest mean validation loss, {losses[winner]:.4g}{f' (next {second[0]:.4g})' if second else ''}, "
        f"on {len(parts)} part{'s' * (len(parts) > 1)} of {len(fit)} + {len(validation)} training rows, {iterations} iterations"
    )
    return Search(parameters, losses[winner], reason, table)


def _row(candidate: Candidate, iterations: int, scores: np.ndarray, arenas: Sequence[Arena]) -> dict[str, Any]:
    """One row of the table: losses, the smaller the better, and how many rows were fitted on."""
    losses = {"score": float(scores.mean()), "scores": scores.tolist()}
    return candidate.describe() | {"iterations": iterations, "rows": len(arenas[0].problem.X)} | losses


# -- validation parts --------------------------------------------------------------------------------------------------------


def _arena(problem: Problem, part: Part, seed: int) -> Arena:
    fit, validation = part
    own = problem.part(fit)
    rows = problem.rows.take(validation, against=fit)  # the columns of a kernel matrix are those of the rows to fit on
    scale, kitchen = _kitchen(own, seed)
    return Arena(own, rows, kitchen, scale.forward(own.targets.columns(own.targets.outputs(rows.y))))


def _kitchen(problem: Problem, seed: int) -> tuple[Scaler, Kitchen]:
    """The scale of the outputs as columns, and the kitchen."""
    scale = Scaler.fit(problem.columns, problem.weights)  # indicators of classes, too, get the scale that C is meant for
    return scale, Kitchen(problem.X, scale.forward(problem.columns), problem.weights, seed)


# -- the first layer alone ---------------------------------------------------------------------------------------------------


def _screened(
    settings: TrainingSettings,
    arenas: Sequence[Arena],
    recipes: Sequence[KernelRecipe],
    C: Sequence[Any],
    say: Callable[[str], None],
    run: Run,
) -> tuple[list[KernelRecipe], dict[KernelRecipe, Any], list[dict[str, Any]]]:
    """The kernels, the best first; the best C of each; and the rows of the table."""
    if len(recipes) * len(C) == 1:
        return list(recipes), {recipes[0]: C[0]}, []
    say(f"first layer alone: kernels × values of C {len(recipes)} × {len(C)}, validation parts {len(arenas)}")
    errors = _screen(settings, arenas, recipes, C, run)
    table = [
        _row(Candidate((recipe,), (C[i],)), 0, rows[:, i], arenas) for recipe, rows in errors.items() for i in range(len(C))
    ]
    means = {recipe: rows.mean(axis=0) for recipe, rows in errors.items() if len(rows) == len(arenas)}
    best = {recipe: C[int(mean.argmin())] for recipe, mean in means.items()}
    ranked = sorted(means, key=lambda recipe: means[recipe].min())
    say(f"best first layer: {Candidate((ranked[0],), (best[ranked[0]],))}, squared error {means[ranked[0]].min():.4g}")
    return ranked, best, table


def _screen(
    settings: TrainingSettings, arenas: Sequence[Arena], recipes: Sequence[KernelRecipe], C: Sequence[Any], run: Run
) -> dict[KernelRecipe, np.ndarray]:
    """Squared error of the first layer alone on the parts that a kernel stayed for, for every C; shape (parts, len(C))."""
    errors = {recipe: np.empty((0, len(C))) for recipe in recipes}
    staying = list(recipes)
    epsilon = _one_number(settings.first.epsilon)  # type: ignore[attr-defined]  # a search is of kernel layers
    numbers = [_one_number(value) for value in C]

    def screened(arena: Arena, recipe: KernelRecipe) -> np.ndarray:
        kitchen, rows = arena.kitchen, arena.validation
        held_out = (arena.problem.scaler.forward(rows.X), arena.columns, rows.weights)
        grams = (arena.problem.grams.new(kernel) for kernel in kitchen.kernels(recipe))
        every = [svr_errors(gram, (kitchen.Y, kitchen.weights), held_out, numbers, epsilon) for gram in grams]
        return np.asarray(np.mean(every, axis=0))

    for place, arena in enumerate(arenas):
        for recipe in staying:
            step = f"screened{place}-{recipes.index(recipe)}"
            errors[recipe] = np.vstack([errors[recipe], run.value(step, partial(screened, arena, recipe))])
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
    settings: TrainingSettings,
    arenas: Sequence[Arena],
    candidate: Candidate,
    iterations: int,
    seed: int,
    n_jobs: int | None,
    run: Run,
) -> np.ndarray:
    """Loss on the validation rows of every part, after training has gone on to ``iterations``."""

    def one(place: int, arena: Arena) -> float:
        resumption = arena.runs.get(candidate)
        steps = iterations - (0 if resumption is None else resumption.states[0].iteration)
        own = replace(
            settings.with_parameters(candidate.parameters(arena.kitchen)),
            iro=replace(settings.iro, noise_variance=candidate.noise_variance, n_jobs=None),
            residuals=None,
            n_chains=1,
            max_iter=steps,
            n_average=max(1, min(settings.n_average, steps // 2)),
            seed=int(check_random_state(seed).randint(np.iinfo(np.int32).max)),
        )
        ends = Ends()
        model = train(arena.problem, own, [ends], resumption, run.within(f"part{place}"))
        if model.n_iter < iterations:  # a training that is interrupted returns what it has; a search does not go on
            raise KeyboardInterrupt
        arena.runs[candidate] = Resumption(list(ends.states.values()))
        rows = arena.validation
        return float(np.average(model.losses(rows.X, rows.y), weights=rows.weights))

    return np.array(Parallel(n_jobs=n_jobs, prefer="threads")(delayed(one)(*each) for each in enumerate(arenas)))
