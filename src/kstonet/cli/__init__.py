"""The command line: models and predictions from tables (extra ``[cli]``)."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

NEEDED = ("typer", "rich", "pandas", "safetensors")


def main() -> None:
    """Run the command line ``kstonet``.

    Examples
    --------
    >>> from kstonet.cli import main
    >>> main()  # doctest: +SKIP
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise SystemExit(f"Error: the command line needs {', '.join(missing)}: pip install 'kstonet[cli]'.")
    from kstonet.cli.app import app

    app(prog_name="kstonet")


def experiments() -> int:
    """Run the command ``kstonet-experiments`` of a checkout; the experiments are not part of the installed package.

    Examples
    --------
    >>> from kstonet.cli import experiments
    >>> experiments()  # doctest: +SKIP
    """
    if find_spec("experiments") is None or find_spec("experiments.command") is None:
        raise SystemExit(
            "Error: the experiments are part of kstonet's source, not of the installed package: in a checkout, "
            "pip install --editable '.[experiments]'."
        )
    command = import_module("experiments.command")
    return int(command.main())
