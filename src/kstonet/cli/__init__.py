"""The command line: tables in, models and predictions out (extra ``[cli]``)."""

from __future__ import annotations

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
