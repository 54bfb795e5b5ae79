"""``kstonet calibrate``."""

from __future__ import annotations

from typing import Annotated

import typer

import kstonet
from kstonet._words import counted
from kstonet.cli import options
from kstonet.cli.output import BAD_INPUT, session
from kstonet.cli.places import MODEL, check_output, write_or_rescue
from kstonet.cli.progress import undisturbed
from kstonet.cli.scores import score
from kstonet.cli.stored import StoredModel
from kstonet.cli.tables import Reading, read_table
from kstonet.persistence import read_metadata


@options.reads_tables
def calibrate(
    model: options.ModelArgument,
    table: options.TableArgument,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Calibrated model.", show_default="MODEL, replaced")
    ] = None,
    target: options.KnownTargetOption = None,
    force: options.ForceOption = False,
    unknown: options.UnknownOption = options.Unknown.error,
    quiet: options.QuietOption = False,
    json: options.JsonOption = False,
    debug: options.DebugOption = False,
    *,
    reading: Reading,
) -> None:
    """Calibrate the intervals or probabilities with rows that the model was not trained on.

    The predictions stay. The intervals become those of split conformal prediction, which cover at least as often as they
    say if new rows are like the rows of TABLE; probabilities are tempered.
    """
    with session(quiet, json, debug) as output:
        path = out or model
        check_output(path, MODEL, [table] if out is None else [table, model], force=force)
        stored = StoredModel.open(model, target)
        given = read_table(table, reading)
        y = stored.truth(given)
        X = stored.conformed(given, unknown)
        before = score(stored.model, X, y, stored.target_names)
        stored.model.calibrate(X, y)
        metadata = (read_metadata(model) or {}) | {"calibrated": {"rows": len(y)}}

        def save(place: str) -> None:
            with undisturbed():
                kstonet.save(stored.model, place, metadata=metadata)

        written = write_or_rescue(save, path, output)
        widest = before.intervals[-1:]
        said = "".join(f"; before, {each['level']:.0%} intervals covered {each['coverage']:.1%} of them" for each in widest)
        output.say(f"Calibrated with {counted(len(y), 'row')}{said}. Saved {written}")
        output.result({"model": written, "rows": len(y), "before": before.to_dict(), "notes": output.notes})
        if written != path:
            raise typer.Exit(BAD_INPUT)
