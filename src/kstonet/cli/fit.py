"""``kstonet fit`` and ``kstonet tune``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.text import Text

from kstonet._words import counted, readable_bytes
from kstonet.cli import options
from kstonet.cli.estimate import forecast
from kstonet.cli.output import BAD_INPUT, INTERRUPTED, Output, grid, session, titled, typed
from kstonet.cli.places import MODEL, check_output, write_or_rescue
from kstonet.cli.progress import TUNE, parts_text, seconds_by_part
from kstonet.cli.tables import STDIN, Reading, read_table
from kstonet.cli.training import (
    Split,
    choice_of,
    new_model,
    parse_kernel,
    parse_number,
    parse_settings,
    parse_units,
    plain,
    sampled,
    save_model,
    split_table,
    train,
)
from kstonet.tuning.summary import chosen_words

ENOUGH_ROWS = 30  # below, a score on the training rows says nothing
SHOWN = 10  # candidates of a search


class Tunable(StrEnum):
    """Values of ``--over``."""

    C = "C"
    gamma = "gamma"
    units = "units"
    kernel = "kernel"
    noise = "noise"
    scales = "scales"


PARAMETERS = {
    Tunable.C: "C",
    Tunable.gamma: "gamma",
    Tunable.units: "hidden_layer_sizes",
    Tunable.kernel: "kernel",
    Tunable.noise: "noise_variance",
    Tunable.scales: "length_scale",
}


@options.reads_tables
def fit(
    table: options.TableArgument,
    target: options.TargetOption = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Model file.", show_default="TABLE, as .kstonet")
    ] = None,
    force: options.ForceOption = False,
    task: options.TaskOption = options.Task.auto,
    rows: options.RowsOption = None,
    holdout: Annotated[float, typer.Option(metavar="SHARE", help="Share of the rows to hold out and test on.")] = 0.0,
    impute: options.ImputeOption = False,
    drop: options.DropOption = None,
    categorical: options.CategoricalOption = None,
    dates: options.DatesOption = None,
    ids: options.IdOption = None,
    tuning: Annotated[
        options.Tuning,
        typer.Option(help="How options marked 'chosen' are chosen from the rows; none: rbf, C 10, 5 units, 40 iterations."),
    ] = options.Tuning.fast,
    tune: Annotated[bool, typer.Option("--tune", help="Choose C and gamma by validation, unless they are given.")] = False,
    over: Annotated[
        list[Tunable] | None, typer.Option(help="With --tune: what to choose by validation, besides; may be repeated.")
    ] = None,
    units: options.UnitsOption = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Kernel of the first layer: rbf, laplacian, matern32, …; or tune.", show_default="chosen"
        ),
    ] = None,
    C: Annotated[
        str | None,
        typer.Option("--C", metavar="NUMBER", help="Weight of the loss of the first layer; or tune.", show_default="chosen"),
    ] = None,
    gamma: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="Kernel coefficient: a number, scale, auto or tune.", show_default="chosen"),
    ] = None,
    loss: Annotated[options.Loss | None, typer.Option(help="Loss of the first layer.", show_default="chosen")] = None,
    max_iter: options.MaxIterOption = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Keep the state of the training there; the same command goes on where it died."),
    ] = None,
    settings: options.SetOption = None,
    seed: options.SeedOption = 0,
    quiet: options.QuietOption = False,
    json: options.JsonOption = False,
    debug: options.DebugOption = False,
    *,
    reading: Reading,
) -> None:
    """Train a model on a table and save it.

    Columns may hold numbers, booleans or text (categories). The model file
    stores how they are read. What is not given is chosen from the rows, as
    KStoNetRegressor() and KStoNetClassifier() do in Python. Ctrl-C stops the training and saves the model of
    the iterations so far.
    """
    with session(quiet, json, debug) as output:
        path = out or ("model.kstonet" if table == STDIN else f"{Path(table).stem}.kstonet")
        check_output(path, MODEL, [table], force=force)
        parameters = {
            "hidden_layer_sizes": parse_units(units),
            "tuning": tuning.value,
            "kernel": parse_kernel(kernel),
            "C": parse_number("C", C or (TUNE if tune else None), TUNE),
            "gamma": parse_number("gamma", gamma or (TUNE if tune else None), "scale", "auto", TUNE),
            "loss": None if loss is None else loss.value,
            "max_iter": max_iter,
            "checkpoint": checkpoint,
            "random_state": seed,
        } | parse_settings(settings)
        if over:
            parameters |= {name: TUNE for name in (PARAMETERS[each] for each in over) if parameters.get(name) is None}
        split = split_table(
            sampled(read_table(table, reading), rows, seed),
            target,
            task=task,
            drop=drop,
            categorical=categorical,
            impute=impute,
            holdout=holdout,
            seed=seed,
            dates=dates,
            ids=ids,
            command=typed(),
        )
        model = new_model(split.target, **parameters)
        result = _train(output, model, split, path)
        output.result(result)
        output.say(f"\nNext: kstonet predict {result['model']} NEW_TABLE --out predictions.csv")
        _leave(result)


@options.reads_tables
def tune(
    table: options.TableArgument,
    target: options.TargetOption = None,
    over: Annotated[
        list[Tunable], typer.Option(help="Parameter to choose; may be repeated. scales: one length scale per column.")
    ] = [Tunable.C, Tunable.gamma],  # noqa: B006
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Train a model with the best values and save it.")
    ] = None,
    force: options.ForceOption = False,
    task: options.TaskOption = options.Task.auto,
    impute: options.ImputeOption = False,
    drop: options.DropOption = None,
    categorical: options.CategoricalOption = None,
    dates: options.DatesOption = None,
    ids: options.IdOption = None,
    units: options.UnitsOption = None,
    max_iter: options.MaxIterOption = None,
    settings: options.SetOption = None,
    seed: options.SeedOption = 0,
    quiet: options.QuietOption = False,
    json: options.JsonOption = False,
    debug: options.DebugOption = False,
    *,
    reading: Reading,
) -> None:
    """Search for good values of the parameters by validation and show the candidates."""
    with session(quiet, json, debug) as output:
        if out is not None:
            check_output(out, MODEL, [table], force=force)
        parameters = {"hidden_layer_sizes": parse_units(units), "max_iter": max_iter, "random_state": seed}
        parameters |= dict.fromkeys((PARAMETERS[name] for name in over), TUNE) | parse_settings(settings)
        split = split_table(
            read_table(table, reading),
            target,
            task=task,
            drop=drop,
            categorical=categorical,
            impute=impute,
            seed=seed,
            dates=dates,
            ids=ids,
            command=typed(),
        )
        if out is None:
            parameters["residuals"] = None  # the model is not saved, so it needs no intervals
        model = new_model(split.target, **parameters)
        result = _train(output, model, split, out)
        candidates = plain(model.tuning_["table"])
        output.result(result | {"candidates": candidates}, _candidates(candidates, result["tuning_reason"]))
        _leave(result)


def _leave(result: dict[str, Any]) -> None:
    """Exit with the code of a training that did not end as it should."""
    if result["rescued"] or result["interrupted"]:
        raise typer.Exit(BAD_INPUT if result["rescued"] else INTERRUPTED)


def _train(output: Output, model: Any, split: Split, path: str | None) -> dict[str, Any]:
    """Train, save if a file is named, and report the result."""
    target = split.target
    output.say(grid({"Table": split.said, "Task": f"{target.task} ({target.reason})"}))
    if not output.quiet:
        output.say(grid({"Cost": forecast(model, split.X, split.y)}))
    training = train(output, model, split)
    wanted = path
    if path is not None:
        path = write_or_rescue(lambda place: save_model(training, split, place), path, output)
    history, seconds = model.history_, seconds_by_part(model.history_)
    rest = training.seconds - sum(seconds.values())
    chosen = choice_of(model)
    lines = {
        "Chosen": ", ".join(f"{name} {text}" for name, text in chosen_words(chosen.values).items()),
        "Reason": chosen.reason or "",
        "Trained": f"{counted(model.n_iter_, 'iteration')} in {training.seconds:.1f} s "
        f"({parts_text(seconds)}, set-up {max(rest, 0.0):.1f} s)",
        "Fit": f"{'accuracy' if 'class' in target.task else 'R²'} {history[-1]['score']:.4g} on the training rows"
        if len(split.X) >= ENOUGH_ROWS
        else "",
        "Held out": training.held_out.said if training.held_out else "",
        "Saved": f"{path} ({readable_bytes(Path(path).stat().st_size)})" if path else "",
        "Stopped": "by Ctrl-C" if training.interrupted else "",
    }
    output.say(grid({name: text for name, text in lines.items() if text}))
    return {
        "model": path,
        "rescued": path != wanted,
        "task": target.task,
        "task_reason": target.reason,
        "target": target.name,
        "rows": len(split.X),
        "columns": [column.name for column in split.encoder.columns_],
        "inputs": model._n_encoded,
        "iterations": model.n_iter_,
        "loss": history[-1]["loss"],
        "score": history[-1]["score"],
        "seconds": {"total": training.seconds} | seconds,
        "held_out": training.held_out.to_dict() if training.held_out else None,
        "tuned": plain(chosen.values) or None,
        "tuning_reason": chosen.reason,
        "interrupted": training.interrupted,
        "notes": output.notes,
    }


def _candidates(candidates: list[dict[str, Any]], reason: str) -> Group:
    """Table of the candidates, without the values that all of them share, and the reason of the choice."""
    names = [name for name in candidates[0] if len({_text(candidate[name]) for candidate in candidates} - {""}) > 1]
    known = {parameter: option.value for option, parameter in PARAMETERS.items()}
    headings = [known.get(name, name) for name in names]
    ranked = sorted(candidates, key=lambda candidate: (-candidate["rows"], -candidate["iterations"], candidate["score"]))
    title = f"The best {SHOWN} of {len(ranked)} candidates" if len(ranked) > SHOWN else counted(len(ranked), "candidate")
    table = titled(title, *headings, right=tuple(headings))
    for place, candidate in enumerate(ranked[:SHOWN]):
        table.add_row(*(Text(_text(candidate[name])) for name in names), style=None if place else "bold green")
    said = "score is the mean validation loss; candidates of 0 iterations are the first layer alone."
    said += " --json has them all." if len(ranked) > SHOWN else ""
    return Group(table, Text(said, style="dim"), Text(f"Chosen: {reason}."))


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(filter(None, map(_text, value)))
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
