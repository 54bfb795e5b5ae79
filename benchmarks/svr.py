"""Multi-target SVR on one Gram matrix, beside the systems a user would pick instead, in one run on one machine.

    python benchmarks/svr.py [--quick] [--scaling] [--tight] [--cases NAME ...] [--data DIR] [--out FILE] [--force]
                             [--redo-disturbed]

What is compared
    kstonet's engine (a certified function, relative duality gap 1e-3) with scikit-learn's SVR fitted once per target, the same
    fits over all cores by joblib, and scikit-learn-intelex where it can be imported. Same C, epsilon = 0.01, RBF kernel with
    gamma="scale" on standardised X. The rivals run at their default tolerance; the gap they reach is reported.

The targets
    They imitate the first-layer latents of a K-StoNet training. The truth of a unit is tanh of a random projection of X plus a
    random multiple of the standardised response, at unit variance. The *first* solve sees the truth plus noise (sd 0.1). Every
    *later* solve sees what an imputation would leave: the fitted values of the previous solve moved half-way to the truth,
    plus fresh noise (sd 0.1). Four later solves are made, each warm-started from the one before, and their median reported. The
    rivals have no warm start; they are timed on the targets of the first solve, which cost them the same as later ones or
    a little less.

The data
    Real sets are read from ``<DIR>/<name>/data.npz`` (arrays X and y), with DIR from ``--data`` or the environment variable
    KSTONET_DATA. Where a set is missing, standard normal rows of the same shape stand in, and the results say so.

How it is measured
    kstonet and the rivals each get a fresh process per case, back to back, so that peak memory belongs to one case. Every
    result is written when it is there; a second run goes on where the first stopped. ``--quick`` cuts all cases to 1,000 rows,
    a smoke test, below the size from which kstonet keeps its factor in float32. For 20 targets the rivals' times are scaled
    from the first few, which the results say. Run it on a quiet machine: threaded BLAS suffers from a neighbour far more
    than single-threaded LIBSVM does, so results taken beside other load are marked, and ``--redo-disturbed`` repeats them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from _data import Case, scaling_cases, source_label, standard_cases
from _report import compact, disturbed, markdown, number, problems
from kstonet._files import write_whole

RESULTS = Path(__file__).parent / "results"
RIVALS_UP_TO = 10_000  # rows; beyond it one scikit-learn fit takes many minutes
FREE_OPTIONS = {"--data": "DIR", "--out": "FILE"}  # their values are somebody's paths and stay out of the results


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="at most 1,000 rows (2,000 in the scaling): a smoke test")
    parser.add_argument("--scaling", action="store_true", help="also n = 1,000 ... 20,000 on one data set, and the exponents")
    parser.add_argument("--tight", action="store_true", help="tight mode at every n (otherwise up to 5,000 rows)")
    parser.add_argument("--cases", nargs="*", metavar="NAME", help="names or their beginnings, as in 'kin8nm' or 'kin8nm-1000'")
    parser.add_argument("--data", metavar="DIR", default=os.environ.get("KSTONET_DATA"), help="folder of the real sets")
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help="results; default benchmarks/results/svr.json (svr-quick.json)"
    )
    parser.add_argument("--force", action="store_true", help="measure again what the results file already holds")
    parser.add_argument("--redo-disturbed", action="store_true", help="measure again the cases taken beside other load")
    parser.add_argument("--worker", choices=("machine", "kstonet", "rivals"), help=argparse.SUPPRESS)
    parser.add_argument("--case", type=json.loads, help=argparse.SUPPRESS)
    return parser.parse_args()


def work(arguments: argparse.Namespace) -> None:
    """Inside a worker process: measure one thing and print it as the last line."""
    import _measure  # here, so that the parent stays small: a child's peak memory starts at its parent's

    if arguments.worker == "machine":
        result = _measure.machine()
    else:
        case = Case(**arguments.case)
        if arguments.worker == "kstonet":
            result = _measure.measure_kstonet(case, arguments.data, tight=arguments.tight)
        else:
            result = _measure.measure_rivals(case, arguments.data)
    print(json.dumps(result))


def run_worker(worker: str, arguments: argparse.Namespace, case: Case | None = None) -> dict[str, Any]:
    """Run one measurement in a fresh process; a crash is a result too."""
    command = [sys.executable, str(Path(__file__).resolve()), "--worker", worker]
    command += ["--case", json.dumps(case.as_dict())] if case else []
    command += ["--data", arguments.data] if arguments.data else []
    command += ["--tight"] if arguments.tight else []
    finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if finished.returncode != 0:
        reason = "out of memory, or killed" if finished.returncode == -9 else f"exit code {finished.returncode}"
        return {"failed": f"the worker ended early ({reason})"}
    return json.loads(finished.stdout.splitlines()[-1])


def rounded(value: Any) -> Any:
    """Five significant digits: the rest is noise, and makes the file hard to read and compare."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def command_line() -> str:
    """The command as typed, without anybody's paths."""
    words = ["python", "benchmarks/svr.py"]
    for before, word in zip(["", *sys.argv[1:]], sys.argv[1:], strict=False):
        option = word.partition("=")[0]
        if option in FREE_OPTIONS and "=" in word:
            word = f"{option}={FREE_OPTIONS[option]}"
        words.append(FREE_OPTIONS.get(before, word))
    return " ".join(words)


def open_results(out: Path, machine: dict[str, Any], *, force: bool) -> dict[str, Any]:
    """The results so far, if they are of this machine: ratios across machines mean nothing."""
    results: dict[str, Any] = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    if results and results["machine"] != machine:
        if not force:
            sys.exit(f"{out.name} is of another machine or other versions; use another --out, or --force to start anew.")
        results = {}
    return {"commands": results.get("commands", []), "machine": machine, "cases": results.get("cases", {})}


def save(results: dict[str, Any], out: Path) -> None:
    """Write the JSON file, whole or not at all, and the Markdown tables beside it."""
    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    write_whole(out.with_suffix(".md"), markdown(results))


def chosen_cases(arguments: argparse.Namespace) -> list[tuple[Case, bool, bool]]:
    """Cases to run, each with whether it belongs to the main table and to the scaling table."""
    standard = standard_cases(quick=arguments.quick)
    scaling = scaling_cases(quick=arguments.quick)
    if arguments.cases is None:
        chosen = list(standard)
    else:
        unknown = [name for name in arguments.cases if not any(case.matches(name) for case in standard)]
        if unknown:
            sys.exit(f"no case is called {', '.join(unknown)}; there are {', '.join(case.name for case in standard)}.")
        chosen = [case for case in standard if any(case.matches(name) for name in arguments.cases)]
    chosen += [case for case in scaling if arguments.scaling and case not in chosen]
    return [(case, case in standard, case in scaling) for case in chosen]


def is_done(entry: dict[str, Any] | None, data: str, arguments: argparse.Namespace) -> bool:
    """Whether a stored result answers what is asked now; crashes and missing memory are tried again."""
    if arguments.force or entry is None or entry["data"] != data or "first" not in entry["kstonet"]:
        return False
    if "failed" in entry.get("rivals", {}) or (arguments.redo_disturbed and disturbed(entry)):
        return False
    return not arguments.tight or "tight" in entry["kstonet"]


def measure(case: Case, arguments: argparse.Namespace) -> dict[str, Any]:
    """kstonet, then its rivals, on one case."""
    entry: dict[str, Any] = {"kstonet": rounded(run_worker("kstonet", arguments, case))}
    ours = entry["kstonet"]
    if "first" in ours:
        times = (ours["setup"]["seconds"], ours["first"]["seconds"], ours["later_seconds"])
        print("  kstonet: set-up {} s, first {} s, later {} s".format(*map(number, times)), flush=True)
        if case.n <= RIVALS_UP_TO:
            entry["rivals"] = rounded(run_worker("rivals", arguments, case))
            for name, rival in entry["rivals"].items():
                text = f"{number(rival['seconds'])} s" if isinstance(rival, dict) else rival
                print(f"  {name}: {text}", flush=True)
    return entry


def main() -> None:
    arguments = parse_arguments()
    if arguments.worker:
        work(arguments)
        return
    out = arguments.out or RESULTS / ("svr-quick.json" if arguments.quick else "svr.json")
    chosen = chosen_cases(arguments)
    machine = run_worker("machine", arguments)
    if "failed" in machine:
        sys.exit("the worker process does not start; its error is above. Install kstonet with the extra [bench].")
    results = open_results(out, machine, force=arguments.force)
    for position, (case, in_main, in_scaling) in enumerate(chosen, start=1):
        data = source_label(case, arguments.data)
        print(f"[{position}/{len(chosen)}] {case.name}  ({data})", flush=True)
        if is_done(results["cases"].get(case.name), data, arguments):
            print("  already measured", flush=True)
        else:
            described = {"case": case.as_dict(), "p": case.p, "data": data, "main": in_main, "scaling": in_scaling}
            results["cases"][case.name] = described | measure(case, arguments)
            if command_line() not in results["commands"]:
                results["commands"].append(command_line())
            for text in problems(results["cases"][case.name]):
                print(f"  note: {text}", flush=True)
        save(results, out)
    print("\n" + compact(results))


if __name__ == "__main__":
    main()
