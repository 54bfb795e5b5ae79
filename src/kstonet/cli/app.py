"""The application with all commands."""

from __future__ import annotations

from typing import Annotated

import typer

from kstonet import __version__
from kstonet.cli.calibrate import calibrate
from kstonet.cli.fit import fit, tune
from kstonet.cli.info import demo, info
from kstonet.cli.predict import evaluate, predict, report
from kstonet.cli.serve import serve

app = typer.Typer(
    help="Kernel-expanded stochastic neural networks: train on a table, predict with intervals.",
    epilog="Exit codes: 0 success, 2 bad input, 130 after Ctrl-C, 1 anything unexpected.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (fit, predict, evaluate, report, calibrate, tune, info, serve, demo):
    app.command()(command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kstonet {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Kernel-expanded stochastic neural networks: train on a table, predict with intervals."""
