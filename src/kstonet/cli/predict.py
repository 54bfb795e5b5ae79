"""``kstonet predict``, ``kstonet evaluate`` and ``kstonet report``."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import pandas as pd
import typer

from kstonet._files import write_whole
from kstonet._words import counted
from kstonet.cli import options
from kstonet.cli.output import BAD_INPUT, session
from kstonet.cli.places import PREDICTIONS, REPORT, check_output, write_or_rescue
from kstonet.cli.prediction import beside, kept_columns, prediction_table, without_formulas
from kstonet.cli.scores import score
from kstonet.cli.stored import StoredModel
from kstonet.cli.tables import STDIN, Reading, format_of, read_table, write_table
from kstonet.cli.training import plain


@options.reads_tables
def predict(
    model: options.ModelArgument,
    table: options.TableArgument,
    coverage: Annotated[
        list[float], typer.Option(metavar="LEVEL", help="Nominal coverage of the intervals; may be repeated.")
    ] = [0.95],  # noqa: B006
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", metavar="FILE", help="CSV, TSV, Excel, Parquet or Feather file to write; - is standard output (CSV)."
        ),
    ] = STDIN,
    force: options.ForceOption = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column of TABLE to repeat beside the predictions; may be repeated; or all."),
    ] = None,
    escape_formulas: Annotated[
        bool,
        typer.Option(
            "--escape-formulas", help="Put an apostrophe before texts that a spreadsheet would take for a formula (=, +, -, @)."
        ),
    ] = False,
    unknown: options.UnknownOption = options.Unknown.error,
    quiet: options.QuietOption = False,
    json: options.JsonOption = False,
    debug: options.DebugOption = False,
    *,
    reading: Reading,
) -> None:
    """Predict the rows of a table, with intervals.

    Regression gives mean, std, lower_95 and upper_95, for several targets with
    their names before them (weight_mean); classification gives class and, for
    every class, p_CLASS, p_CLASS_lower_95 and p_CLASS_upper_95.
    """
    with session(quiet, json, debug) as output:
        check_output(out, PREDICTIONS, [model, table], force=force)
        stored = StoredModel.open(model)
        if not stored.model.trained_.has_intervals:
            output.note("the model was stored without intervals; only its predictions are given.")
        given = read_table(table, reading)
        kept = kept_columns(given, keep or [], stored.ids)
        X = stored.conformed(given, unknown, list(kept.columns))
        predictions = beside(kept, prediction_table(stored.model, X, coverage, stored.target_names))
        safe, formulas = without_formulas(predictions)
        if formulas and escape_formulas:
            predictions = safe
            output.note(
                f"{counted(formulas, 'text')} that a spreadsheet would take for a formula now start with an apostrophe."
            )
        elif formulas:
            output.note(
                f"spreadsheets would take {counted(formulas, 'text')} of the predictions for a formula; --escape-formulas puts "
                "an apostrophe before them."
            )
        if out != STDIN:
            write = partial(write_table, predictions, kind=format_of(out, written=True))
            wanted, out = out, write_or_rescue(write, out, output)
            output.say(f"Wrote {counted(len(predictions), 'row')} to {out}: {', '.join(predictions.columns)}")
            output.result({"rows": len(predictions), "columns": list(predictions.columns), "out": out, "notes": output.notes})
            if out != wanted:
                raise typer.Exit(BAD_INPUT)
        elif json:
            output.result(
                {"rows": len(predictions), "predictions": plain(predictions.to_dict("records")), "notes": output.notes}
            )
        else:
            write_table(predictions, STDIN)


@options.reads_tables
def evaluate(
    model: options.ModelArgument,
    table: options.TableArgument,
    target: options.KnownTargetOption = None,
    unknown: options.UnknownOption = options.Unknown.error,
    quiet: options.QuietOption = False,
    json: options.JsonOption = False,
    debug: options.DebugOption = False,
    *,
    reading: Reading,
) -> None:
    """Compute scores of the predictions on rows that the model was not trained on."""
    with session(quiet, json, debug) as output:
        stored = StoredModel.open(model, target)
        given = read_table(table, reading)
        y = stored.truth(given)
        scores = score(stored.model, stored.conformed(given, unknown), y, stored.target_names)
        known = stored.known_target
        result = {"task": known.task, "target": known.name} | scores.to_dict() | {"notes": output.notes}
        output.result(result, scores.shown())


@options.reads_tables
def report(
    model: options.ModelArgument,
    table: options.TableArgument,
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="HTML file to write.")] = "report.html",
    force: options.ForceOption = False,
    train: Annotated[
        str | None, typer.Option(metavar="TABLE", help="Training table, for a fair comparison with simpler models.")
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.")] = None,
    target: options.KnownTargetOption = None,
    unknown: options.UnknownOption = options.Unknown.error,
    quiet: options.QuietOption = False,
    json: options.JsonOption = False,
    debug: options.DebugOption = False,
    *,
    reading: Reading,
) -> None:
    """Write an HTML report about the model and its predictions on rows whose target is known."""
    with session(quiet, json, debug) as output:
        check_output(out, REPORT, [model, table, train], force=force)
        from kstonet.report import build_report  # imported late: predictions do not need it

        stored = StoredModel.open(model, target)
        names = stored.known_target.columns
        shown = stored.shown_target(target)

        def taken_apart(place: str) -> tuple[pd.DataFrame, Any]:
            given = read_table(place, reading)
            truth = pd.DataFrame(stored.truth(given).reshape(len(given), -1), index=given.index, columns=list(names)).squeeze(1)
            if stored.ids and set(stored.ids) <= set(given.columns):  # the report calls the rows by their names
                given.index = truth.index = pd.Index(given[list(stored.ids)].astype(str).agg(", ".join, axis=1))
            return stored.conformed(given, unknown), truth

        X, y = taken_apart(table)
        X_train, y_train = (None, None) if train is None else taken_apart(train)
        page = build_report(stored.model, X, y, title=title, X_train=X_train, y_train=y_train, target=shown)
        wanted, out = out, write_or_rescue(partial(write_whole, content=page), out, output)
        output.say(f"Written to {out}; open it in a browser.")
        output.result({"out": out, "rows": len(y), "notes": output.notes})
        if out != wanted:
            raise typer.Exit(BAD_INPUT)
