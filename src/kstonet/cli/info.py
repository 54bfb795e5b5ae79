"""``kstonet info`` and ``kstonet demo``."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

import kstonet
from kstonet._words import counted, quoted, readable_bytes, some
from kstonet.cli import options
from kstonet.cli.output import grid, session, titled
from kstonet.cli.scores import TITLES
from kstonet.cli.stored import refuse_table
from kstonet.cli.training import ChosenValues, choice_of, plain
from kstonet.estimators.display import INTERVALS
from kstonet.persistence import read_metadata
from kstonet.tables import TableEncoder
from kstonet.tables.columns import CATEGORY, NUMBER
from kstonet.tuning.summary import chosen_words


def info(
    model: options.ModelArgument,
    json: options.JsonOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Describe the content of a model file."""
    with session(as_json=json, debug=debug) as output:
        refuse_table(model)
        loaded, metadata = kstonet.load(model), read_metadata(model) or {}
        history, chosen = getattr(loaded, "history_", []), choice_of(loaded)
        values: dict[str, Any] = {
            "file": model,
            "bytes": Path(model).stat().st_size,
            "class": type(loaded).__name__,
            "inputs": loaded._n_encoded,
            "classes": plain(getattr(loaded, "classes_", None)),
            "parameters": plain(_changed(loaded)),
            "iterations": plain(loaded.n_iter_),
            "support_vectors": plain(getattr(loaded, "n_support_", None)),
            "loss": history[-1]["loss"] if history else None,
            "intervals": loaded.trained_.residuals if hasattr(loaded, "trained_") else None,
            "tuned": plain(chosen.values) or None,
            "tuning_reason": chosen.reason,
        } | {name: metadata.get(name) for name in ("target", "training", "held_out", "table")}
        output.result(values, _shown(values, chosen, loaded))


def _changed(model: Any) -> dict[str, Any]:
    """Parameters that are not at their default."""
    defaults = {name: parameter.default for name, parameter in inspect.signature(type(model)).parameters.items()}
    return {name: value for name, value in model.get_params(deep=False).items() if plain(value) != plain(defaults[name])}


def _shown(values: dict[str, Any], chosen: ChosenValues, model: Any) -> Group:
    target, training, held_out = (values[name] or {} for name in ("target", "training", "held_out"))
    lines = {
        "File": f"{values['file']} ({readable_bytes(values['bytes'])})",
        "Model": values["class"],
        "Target": f"{quoted(target.get('names') or [target['name']])}, {target['task']} ({target['reason']})"
        if target
        else None,
        "Classes": some(values["classes"], 10) if values["classes"] else None,
        "Parameters": ", ".join(f"{name}={value}" for name, value in values["parameters"].items()) or "the defaults",
        "Chosen": ", ".join(f"{name} {text}" for name, text in chosen_words(chosen.values).items()) or None,
        "Reason": chosen.reason,
        "Training": f"{counted(training['rows'], 'row')}, {values['iterations']} iterations, {training['seconds']:.1f} s"
        + (" (stopped by Ctrl-C)" if training["interrupted"] else "")
        if training
        else None,
        "Support vectors": _support(values, chosen),
        "Loss": f"{values['loss']:.4g} (last iteration)" if values["loss"] is not None else None,
        "Held out": "; ".join(f"{name!r} {line}" if name else line for name, line in _held_out_lines(held_out).items() if line)
        or None,
        "Intervals": INTERVALS.get(values["intervals"], values["intervals"]),
        "Inputs": f"{values['inputs']} after encoding",
    }
    parts: list[Any] = [grid({name: line for name, line in lines.items() if line is not None})]
    if values["table"]:
        parts += ["", _columns(TableEncoder.from_dict(values["table"]), model.encoding_.expected is not None)]
    return Group(*parts)


def _held_out_lines(held_out: dict[str, Any]) -> dict[str, str]:
    """The scores on rows that were held out; by target, if there are several."""
    parts = held_out.get("targets", {"": held_out})
    return {
        name: ", ".join(f"{TITLES[key][0]} {own[key]:.4g}" for key in TITLES if own.get(key) is not None)
        for name, own in parts.items()
    }


def _support(values: dict[str, Any], chosen: ChosenValues) -> int | None:
    """Support vectors of the model; None where they say nothing: with a squared loss all rows are, once per kernel."""
    squared = chosen.values.get("loss", values["parameters"].get("loss")) == "squared"
    return values["support_vectors"] if isinstance(values["support_vectors"], int) and not squared else None


def _columns(encoder: TableEncoder, expecting: bool) -> Table:
    table = titled("Columns", "column", "holds", "categories", "if missing")
    for column in encoder.columns_:
        kind = {CATEGORY: "categories"}.get(column.kind, f"{column.kind}s")
        fill = "refused" if column.fill is None else f"{column.fill:g}" if isinstance(column.fill, float) else column.fill
        if expecting and column.kind == NUMBER:
            fill = "expected from the others"
        elif encoder.impute and column.kind == CATEGORY:
            fill = "a category of its own" if column.indicated else "none of these"
        table.add_row(Text(column.name), kind, Text(some(column.categories, 8)), Text(fill))
    return table


def demo(
    folder: Annotated[str, typer.Option(metavar="FOLDER", help="Where demo.csv and demo.png are written.")] = ".",
    debug: options.DebugOption = False,
) -> None:
    """Train on embedded data and show the result, with a picture if matplotlib is installed."""
    with session(debug=debug):
        from kstonet.demo import main

        main(["--folder", folder])
