"""The command ``kstonet-experiments``: list the experiments, run them, write docs/results.md.

    kstonet-experiments list
    kstonet-experiments run NAME [--data DIR] [--out FILE] [arguments of that experiment]
    kstonet-experiments run all [--data DIR]
    kstonet-experiments report

An editable installation has the command; ``python -m experiments`` in a checkout is the same. Results are resumable: finished
parts are not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.common import RESULTS
from kstonet._files import write_whole

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Experiment:
    """A module of this package, what it is about, and the arguments of the runs that make up its results."""

    about: str
    runs: tuple[tuple[str, ...], ...] = ((),)


EXPERIMENTS = {
    "full_row_rank": Experiment("Section 3.1: training paths, ten restarts; 2 minutes"),
    "simulated_knn": Experiment("Section 3.1: data of a kernel-expanded network; 15 minutes"),
    "measurement_error": Experiment("Section 3.2: training paths, support vectors against epsilon; 2 hours"),
    "qsar": Experiment("Section 4.1: five folds; 10 minutes; needs data"),
    "large_classification": Experiment("Sections 4.2 and 4.3: MNIST and CoverType, on 5,000 rows; 10 minutes; needs data"),
    "uci": Experiment("Section 4.4: UCI sets beside an equally tuned SVR; hours; needs data"),
    "coverage": Experiment("Section 5.2: coverage of prediction intervals; hours; needs data", (("simulated",), ("uci",))),
    "conditional": Experiment("conditional coverage beside boosted quantiles, MAPIE and a Gaussian process; needs data"),
    "structure": Experiment("truths of a known structure: risk and directions beside an SVR, SIR and SAVE; 20 minutes"),
    "probabilities": Experiment("calibration of class probabilities; 1 hour; needs data", (("real",), ("simulated",))),
}


def arguments() -> argparse.ArgumentParser:
    """What the command understands."""
    out = argparse.ArgumentParser(
        prog="kstonet-experiments", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = out.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="the experiments, and how much of each is done")
    run = commands.add_parser("run", help="run one experiment, or all; finished parts are not run again")
    run.add_argument("name", choices=[*EXPERIMENTS, "all"], metavar="NAME", help=f"{', '.join(EXPERIMENTS)}, or all")
    run.add_argument("--data", help="folder of the data sets (default: KSTONET_DATA)")
    run.add_argument("--out", type=Path, help="results file (default: experiments/results/NAME.json)")
    commands.add_parser("report", help="write docs/results.md from the results files")
    return out


def listing(results: Path) -> str:
    """One line per experiment."""
    lines = []
    for name, experiment in EXPERIMENTS.items():
        file = results / f"{name}.json"
        done = f"{len(json.loads(file.read_text())['parts'])} parts done" if file.exists() else "not run"
        lines.append(f"{name:<22}{done:<18}{experiment.about}")
    return "\n".join(lines)


def run_one(name: str, data: str | None, out: Path | None, more: Sequence[str]) -> int:
    """Run the module of an experiment, in a process of its own; its exit status."""
    shared = [*(["--data", str(Path(data).resolve())] if data else []), *(["--out", str(out.resolve())] if out else [])]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    for own in EXPERIMENTS[name].runs:
        command = [sys.executable, "-m", f"experiments.{name}", *own, *shared, *more]
        status = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=False).returncode
        if status:
            return status
    return 0


def write_document() -> None:
    """Make docs/results.md anew; there is none outside a checkout."""
    from experiments.report import DOCUMENT, report

    if not DOCUMENT.parent.is_dir():
        return
    write_whole(DOCUMENT, report(RESULTS))
    print(f"wrote {DOCUMENT}")


def main(given: Sequence[str] | None = None) -> int:
    """The command; its exit status."""
    parser = arguments()
    known, more = parser.parse_known_args(given)
    if known.command != "run" and more:
        parser.error(f"unrecognised arguments: {' '.join(more)}")
    if known.command == "list":
        print(listing(RESULTS))
        return 0
    if known.command == "report":
        write_document()
        return 0
    if known.name == "all" and (known.out or more):
        parser.error("run all takes --data only: --out and other arguments belong to one experiment.")
    failed = []
    for name in EXPERIMENTS if known.name == "all" else [known.name]:
        status = run_one(name, known.data, known.out, more)
        if status:
            failed.append(name)
            print(f"{name} ended with status {status}; what it finished is kept, run it again to go on.", file=sys.stderr)
    if known.out is None:
        write_document()
    return 1 if failed else 0
