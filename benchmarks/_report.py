"""Tables from the results file: Markdown for the reader, a few columns for the terminal."""

from __future__ import annotations

import math
from typing import Any

Row = dict[str, Any]
BUSY = 0.15  # cores in other hands from which a timing is called into question

NOTES = """\
All times are wall seconds of one run on one machine. ε = 0.01, RBF kernel, gamma="scale", standardised X.

- **set-up**: Gram matrix and factor, on a fresh object. **first solve**: cold, all m targets, factorisation included.
  **later solve**: median of 4 warm-started solves for moved targets. **iterations**: first solve / median later solve.
- **gap**: largest certified relative duality gap over all targets and solves; asked for: 1e-3.
- **sklearn**: `sklearn.svm.SVR`, cache 2,000 MB, default tol, one target after another; **joblib**: the same fits over all
  cores; **intelex**: scikit-learn-intelex, one target after another. (a of b) marks times scaled from a measured fits to b
  targets. The rivals are timed on the targets of the first solve; they have no warm start. **sklearn gap**: relative
  duality gap of its dual vector for the first target.
- **later ×**: rival's time for all m fits over the later solve. **cold ×**: scikit-learn's time over Gram build plus
  first solve (the factorisation, part of both set-up and first solve, is counted once). Above 1, kstonet is faster.
- **peak**: highest resident memory above the baseline of the process, in units of n²·8 bytes; in brackets what Gram
  and factor hold.
- **set-up ÷**: set-up over one LAPACK float64 Cholesky of the same matrix plus the Gram build.
- **⚠**: other processes used the machine meanwhile; see the warnings.
"""


def number(value: float | None, digits: int = 3) -> str:
    """Three significant digits without exponents where they can be read."""
    if value is None or not math.isfinite(value):
        return "–"
    if value != 0 and abs(value) < 1e-3:
        return f"{value:.1e}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{places}f}"


def _median(values: list[float]) -> float:
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _seconds(entry: Row, rival: str) -> float | None:
    measured = entry.get("rivals", {}).get(rival)
    return measured["seconds"] if isinstance(measured, dict) else None


def _ratio(rival: float | None, ours: float) -> float | None:
    return None if rival is None else rival / ours


def _rival_cell(entry: Row, rival: str) -> str:
    measured = entry.get("rivals", {}).get(rival, "–")
    if not isinstance(measured, dict):
        return str(measured)
    scaled = measured["measured_fits"] < entry["case"]["m"]
    return number(measured["seconds"]) + (f" ({measured['measured_fits']} of {entry['case']['m']})" if scaled else "")


def _mark(entry: Row) -> str:
    return " ⚠" if disturbed(entry) else ""


def _case_cells(entry: Row) -> list[str]:
    case = entry["case"]
    stand_in = " (synthetic stand-in)" if "stand-in" in entry["data"] else ""
    return [f"{case['source']} n={case['n']:,} p={entry['p']}{stand_in}{_mark(entry)}", f"{case['C']:g}", str(case["m"])]


def _gap(ours: Row) -> float:
    return max(solve["gap"] for solve in [ours["first"], *ours["later"]])


def _iterations(ours: Row) -> str:
    return f"{ours['first']['iterations']} / {_median([solve['iterations'] for solve in ours['later']]):g}"


def cold_seconds(ours: Row) -> float:
    """Gram build plus first solve: what a user waits for the first answer."""
    return ours["gram_seconds"] + ours["first"]["seconds"]


def _main_cells(entry: Row) -> list[str]:
    ours, later = entry["kstonet"], entry["kstonet"]["later_seconds"]
    sklearn = entry.get("rivals", {}).get("sklearn", {})
    return [
        *_case_cells(entry),
        number(ours["setup"]["seconds"]),
        number(ours["first"]["seconds"]),
        number(later),
        _iterations(ours),
        number(_gap(ours)),
        *(_rival_cell(entry, rival) for rival in ("sklearn", "joblib", "intelex")),
        " / ".join(number(_ratio(_seconds(entry, rival), later)) for rival in ("sklearn", "joblib", "intelex")),
        number(_ratio(_seconds(entry, "sklearn"), cold_seconds(ours))),
        number(sklearn.get("gap")),
        f"{number(ours['peak_units'])} ({number(ours['nbytes_units'])})",
        number(ours["setup"]["ratio"]),
    ]


MAIN_HEADER = (
    "case", "C", "m", "set-up s", "first solve s", "later solve s", "iterations", "gap", "sklearn m fits s",
    "sklearn + joblib s", "intelex s", "later × vs sklearn / joblib / intelex", "cold × vs sklearn", "sklearn gap",
    "peak memory (n²·8 B)", "set-up ÷ (Cholesky + Gram)",
)  # fmt: skip


def _table(header: tuple[str, ...], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def _measured(entries: list[Row]) -> list[Row]:
    return [entry for entry in entries if "first" in entry.get("kstonet", {})]


def _tight_table(entries: list[Row]) -> str:
    rows = []
    for entry in entries:
        tight = entry["kstonet"].get("tight")
        if tight is not None:
            shown = [tight["iterations"], tight["newton_steps"]]
            rows.append([*_case_cells(entry), number(tight["seconds"]), *map(str, shown), number(tight["gap"])])
    if not rows:
        return ""
    header = ("case", "C", "m", "seconds", "iterations", "Newton steps, all targets", "gap")
    intro = "Relative gap 1e-6 of a feasible, sparse dual vector; cold start on a Gram that is already factored.\n"
    return f"\n## Tight mode\n\n{intro}\n{_table(header, rows)}"


def exponent(sizes: list[int], seconds: list[float]) -> float | None:
    """Least-squares slope of log seconds on log n."""
    if len(sizes) < 2:
        return None
    x, y = [math.log(n) for n in sizes], [math.log(s) for s in seconds]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    covariance = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return covariance / sum((a - mean_x) ** 2 for a in x)


def _scaling_times(entry: Row) -> list[float | None]:
    ours = entry["kstonet"]
    return [ours["setup"]["seconds"], ours["first"]["seconds"], ours["later_seconds"], _seconds(entry, "sklearn")]


def _scaling_table(entries: list[Row]) -> str:
    """Times of one data set by n, and the exponents fitted to them."""
    entries = sorted((entry for entry in entries if entry["scaling"]), key=lambda entry: entry["case"]["n"])
    if len(entries) < 2:
        return ""
    times = [_scaling_times(entry) for entry in entries]
    rows = []
    for entry, row in zip(entries, times, strict=True):
        ours = entry["kstonet"]
        rows.append([f"{entry['case']['n']:,}{_mark(entry)}", *map(number, row), _iterations(ours), number(ours["peak_units"])])
    fitted = []
    for column in zip(*times, strict=True):
        pairs = [(entry["case"]["n"], s) for entry, s in zip(entries, column, strict=True) if s is not None]
        fitted.append(exponent([n for n, _ in pairs], [s for _, s in pairs]))
    rows.append(["**exponent**", *(f"**{number(value)}**" if value is not None else "–" for value in fitted), "", ""])
    case = entries[0]["case"]
    intro = f"{case['source']}, C={case['C']:g}, m={case['m']}. Exponent: least squares of log seconds on log n.\n"
    header = ("n", "set-up s", "first solve s", "later solve s", "sklearn m fits s", "iterations", "peak memory (n²·8 B)")
    return f"\n## Scaling\n\n{intro}\n{_table(header, rows)}"


def _not_measured(entries: list[Row]) -> str:
    lines = []
    for name, entry in ((entry["name"], entry) for entry in entries):
        for part in ("kstonet", "rivals"):
            reason = entry.get(part, {}).get("skipped") or entry.get(part, {}).get("failed")
            if reason:
                lines.append(f"- {name}, {part}: {reason}\n")
    return "\n## Not measured\n\n" + "".join(lines) if lines else ""


def other_cores(entry: Row) -> float:
    """The most cores that other processes kept busy during any part of one case."""
    parts = [entry["kstonet"], *entry.get("rivals", {}).values()]
    return max(part["other_cores"] for part in parts if isinstance(part, dict))


def disturbed(entry: Row) -> bool:
    """Whether the machine was too busy for the times of one case to be compared."""
    return other_cores(entry) > BUSY


def problems(entry: Row) -> list[str]:
    """What a reader must not overlook in one result."""
    found, ours = [], entry.get("kstonet", {})
    if "first" not in ours:
        return [ours.get("skipped") or ours.get("failed") or "nothing measured"]
    rivals = entry.get("rivals", {})
    if disturbed(entry):
        found.append(f"other processes kept {number(other_cores(entry), 2)} cores busy; these times are no comparison")
    if not all(solve["converged"] for solve in [ours["first"], *ours["later"]]):
        found.append(f"a solve stopped at a gap of {number(_gap(ours))}")
    if "tight" in ours and not ours["tight"]["converged"]:
        found.append(f"tight mode stopped at a gap of {number(ours['tight']['gap'])}")
    if "failed" in rivals:
        found.append(f"rivals: {rivals['failed']}")
    for name, rival in rivals.items():
        # Weak duality: either side's dual value bounds the other's primal value, if the problem is the same.
        if isinstance(rival, dict) and "primal" in rival:
            slack = 1e-9 * abs(rival["primal"])
            if rival["dual"] > ours["first_target"]["primal"] + slack or ours["first_target"]["dual"] > rival["primal"] + slack:
                found.append(f"{name} and kstonet contradict each other: not the same problem")
    return found


def markdown(results: Row) -> str:
    """The whole report."""
    entries = [{"name": name} | entry for name, entry in results["cases"].items()]
    done = _measured(entries)
    machine = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    described = (
        f"{machine['system']} {machine['machine']}, {machine['usable_cpus']} of {machine['cpus']} cores usable, "
        f"{machine['memory_gib']} GiB; {versions}; BLAS: {'; '.join(machine['blas'])}."
    )
    warned = [f"- {entry['name']}: {text}\n" for entry in done for text in problems(entry)]
    if len({entry["kstonet"]["engine"] for entry in done}) > 1:
        warned.append("- the cases were not all measured with the same source of the engine (field `engine` of the results)\n")
    return "".join(
        [
            "# Multi-target SVR: kstonet beside its rivals\n\nMade by\n\n",
            "".join(f"    {command}\n" for command in results["commands"]),
            f"\nMachine: {described}\n\n{NOTES}\n",
            _table(MAIN_HEADER, [_main_cells(entry) for entry in done if entry["main"]]),
            "\n## Warnings\n\n" + "".join(warned) if warned else "",
            _tight_table(done),
            _scaling_table(done),
            _not_measured(entries),
        ]
    )


def compact(results: Row) -> str:
    """A table for the terminal."""
    header = (
        "case",
        "set-up",
        "first",
        "later",
        "gap",
        "sklearn",
        "joblib",
        "intelex",
        "later ×",
        "cold ×",
        "peak",
        "set-up ÷",
    )
    rows = [header]
    for name, entry in results["cases"].items():
        if "first" not in entry.get("kstonet", {}):
            rows.append((name, *"–" * (len(header) - 1)))
            continue
        ours, sklearn = entry["kstonet"], _seconds(entry, "sklearn")
        times = (ours["setup"]["seconds"], ours["first"]["seconds"], ours["later_seconds"], _gap(ours), sklearn)
        rest = (_ratio(sklearn, ours["later_seconds"]), _ratio(sklearn, cold_seconds(ours)))
        others = (_seconds(entry, "joblib"), _seconds(entry, "intelex"), *rest, ours["peak_units"], ours["setup"]["ratio"])
        rows.append((name + _mark(entry), *map(number, times + others)))
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    lines = ["  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(r, widths, strict=True))) for r in rows]
    return "\n".join(lines)
