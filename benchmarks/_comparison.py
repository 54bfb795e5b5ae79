"""What the comparisons with other models share: parts in processes of their own, a file that is resumed, tables, a picture."""

from __future__ import annotations

import hashlib
import json
import math
import multiprocessing
import os
import resource
import shlex
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import kstonet
from _report import number
from kstonet._files import write_whole

Record = dict[str, Any]
KEY = ("set", "n", "fold", "model")
FREE_OPTIONS = {"--data": "DIR", "--tables": "DIR", "--out": "FILE", "--picture": "FILE"}  # their values are somebody's paths
REFERENCE = "CatBoost"
BUSY = 1.15  # wall over CPU seconds of a process with one thread, from which the machine was not its own
SHOWN_PACKAGES = ("kstonet", "numpy", "scipy", "scikit-learn", "catboost", "lightgbm", "ngboost", "xrfm")
#: One thread everywhere: CPU seconds of waiting threads would otherwise be counted as work.
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def cpu_seconds() -> float:
    """CPU time of this process and of those it has started and waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def timed_fit(fit: Callable[[], Any]) -> tuple[Any, Record]:
    """The fitted model, CPU and wall seconds of the fit, and the warnings it gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cpu, wall = cpu_seconds(), time.perf_counter()
        model = fit()
        record = {"cpu_s": cpu_seconds() - cpu, "wall_s": time.perf_counter() - wall}
    texts = {f"{one.category.__name__}: {str(one.message)[:200]}" for one in caught}
    return model, record | ({"warnings": sorted(texts)} if texts else {})


def fingerprint() -> str:
    """Digest of the library's source: a resumed run may meet a changed one under the same version number."""
    files = sorted(Path(kstonet.__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]


def missing_package(module: str | None) -> bool:
    """Whether a model cannot be measured here."""
    return module is not None and find_spec(module) is None


def rounded(value: Any) -> Any:
    """Five significant digits: the rest is noise, and makes the file hard to read and compare."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def key_of(record: Record) -> tuple[Any, ...]:
    """What identifies a part."""
    return tuple(record[name] for name in KEY)


def command_line(script: str) -> str:
    """The command as typed, without anybody's paths."""
    words = ["python", f"benchmarks/{script}"]
    for before, word in zip(["", *sys.argv[1:]], sys.argv[1:], strict=False):
        words.append(FREE_OPTIONS.get(before, shlex.quote(word)))
    return " ".join(words)


class Results:
    """A file of JSON lines: commands and versions first, then one line per finished part."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
        self.head: Record = lines[0] if lines else {"commands": []}
        self.records = {key_of(line): line for line in lines[1:]}

    def add(self, record: Record) -> None:
        """Replace or append one part, and write the file."""
        self.records[key_of(record)] = rounded(record)
        self.save()

    def describe(self, script: str) -> None:
        """Note the command and the versions."""
        versions = {"python": sys.version.split()[0]}
        for package in SHOWN_PACKAGES:
            try:
                versions[package] = version(package)
            except PackageNotFoundError:
                continue
        self.head["versions"] = versions
        if command_line(script) not in self.head["commands"]:
            self.head["commands"].append(command_line(script))

    def save(self) -> None:
        """Write the file, whole or not at all."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [self.head, *self.records.values()]
        write_whole(self.path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))

    def finished(self) -> list[Record]:
        """The parts that have figures."""
        return [record for record in self.records.values() if "failed" not in record]


def run_part(script: Path, part: Record, data: str | None, limit_s: float) -> Record:
    """Measure one part in a fresh process with one thread; a crash is a result too."""
    command = [sys.executable, str(script), "--worker", json.dumps(part)] + (["--data", data] if data else [])
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=False, timeout=limit_s, env=os.environ | ONE_THREAD
        )
    except subprocess.TimeoutExpired:
        return part | {"failed": f"not finished after {limit_s:g} s"}
    if done.returncode != 0:
        return part | {"failed": f"the process ended with exit code {done.returncode}"}
    return part | json.loads(done.stdout.splitlines()[-1])


def run_all(
    script: Path, parts: Iterable[Record], results: Results, data: str | None, *, redo: bool, limit_s: float, jobs: int = 1
) -> None:
    """Measure the parts that the file does not have, so many at a time; failed ones are tried again."""
    parts = list(parts)
    stored = [results.records.get(key_of(part)) for part in parts]
    todo = [part for part, old in zip(parts, stored, strict=True) if redo or old is None or "failed" in old]
    results.describe(script.name)
    pool = ThreadPoolExecutor(jobs)
    try:
        waiting = [pool.submit(run_part, script, part, data, limit_s) for part in todo]
        for position, done in enumerate(as_completed(waiting), start=1):
            record = done.result()
            results.add(record)
            shown = ", ".join(f"{k} {number(v)}" for k, v in record.items() if isinstance(v, float))
            name = " ".join(map(str, key_of(record)))
            print(f"[{position}/{len(todo)}] {name}: {record.get('failed', shown)}", flush=True)
            for text in record.get("warnings", ()):
                print(f"    {text}", flush=True)
    finally:
        pool.shutdown(cancel_futures=True)  # an interruption waits for the parts that run, and begins no other


def run_tables(
    script: Path, measure: Callable[[Path, Record], Record], parts: Iterable[tuple[Path, Record]], results: Results, jobs: int
) -> None:
    """Measure the parts of tables in folders that the file does not have, so many at a time."""
    os.environ |= ONE_THREAD
    todo = [(folder, part) for folder, part in parts if key_of(part) not in results.records]
    results.describe(script.name)
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=20) as pool:
        waiting = [pool.apply_async(measure, each) for each in todo]
        for position, each in enumerate(waiting, start=1):
            record = each.get()
            results.add(record)
            print(f"[{position}/{len(todo)}] {' '.join(map(str, key_of(record)))}", record.get("failed", ""), flush=True)


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean."""
    return sum(values) / len(values)


def geometric_mean(values: Sequence[float]) -> float:
    """Exponential of the mean logarithm."""
    return math.exp(mean([math.log(value) for value in values]))


def by_set(records: Iterable[Record], field: str, *, n: int, model: str) -> dict[str, float]:
    """Means over the folds of one field, for every set that has it."""
    found: dict[str, list[float]] = {}
    for record in records:
        if record["model"] == model and record["n"] == n and record.get(field) is not None:
            found.setdefault(record["set"], []).append(record[field])
    return {name: mean(values) for name, values in found.items()}


def pairs(records: list[Record], field: str, *, n: int, model: str, reference: str) -> dict[str, tuple[float, float]]:
    """Means of a model and of the reference by set, over the folds that both have."""
    here = [record for record in records if record["n"] == n]
    done = [{(r["set"], r["fold"]) for r in here if r["model"] == name} for name in (model, reference)]
    both = [record for record in here if (record["set"], record["fold"]) in done[0] & done[1]]
    values, base = (by_set(both, field, n=n, model=name) for name in (model, reference))
    return {name: (values[name], base[name]) for name in values if name in base}


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def ratio_rows(
    records: list[Record],
    field: str,
    models: Sequence[str],
    sets: Sequence[str],
    *,
    n: int,
    floor: float = 0.0,
    reference: str = REFERENCE,
) -> list[list[str]]:
    """Per model: field by set, geometric mean of its ratio to the reference, sets won; ``floor`` is added to both."""
    rows = []
    for model in models:
        values = by_set(records, field, n=n, model=model)
        if not values:
            continue
        compared = pairs(records, field, n=n, model=model, reference=reference)
        shared = [compared[name] for name in sets if name in compared]
        ratios = [(value + floor) / (base + floor) for value, base in shared if min(value, base) + floor > 0]
        equal = sum(value == base for value, base in shared)
        wins = f"{sum(value < base for value, base in shared)} of {len(shared)}" + (f", {equal} equal" if equal else "")
        cells = [number(values.get(name)) for name in sets]
        rows.append([model, *cells, f"{geometric_mean(ratios):.3f}" if ratios else "–", "–" if model == reference else wins])
    return rows


def median(values: Sequence[float]) -> float:
    """Median."""
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def notes(results: Results, absent: Iterable[str]) -> str:
    """What a reader must not overlook: models not measured, failures, warnings, changed sources."""
    lines = [f"- {text}\n" for text in (*absent, *results.head.get("remarks", ()))]  # remarks are written by hand
    failed = [record for record in results.records.values() if "failed" in record]
    lines += [f"- {' '.join(map(str, key_of(record)))}: {record['failed']}.\n" for record in failed]
    warned: dict[str, list[str]] = {}
    for record in results.finished():
        for text in record.get("warnings", ()):
            warned.setdefault(f"{record['model']}: {text}", []).append(f"{record['set']} n={record['n']} fold {record['fold']}")
    lines += [f"- {text} ({len(where)} fits, first {where[0]})\n" for text, where in warned.items()]
    waits = [record["wall_s"] / record["cpu_s"] for record in results.finished() if record["cpu_s"] > 1.0]
    if waits and median(waits) > BUSY:
        times = number(median(waits), 2)
        lines.append(
            f"- Other processes used the machine meanwhile: wall seconds were {times} times the CPU seconds in the\n"
            "  median. CPU seconds are inflated by it, too.\n"
        )
    digests = {record["source"] for record in results.finished() if "source" in record}
    if len(digests) > 1:
        lines.append("- The figures of kstonet come from several versions of its source (field `source` of the results).\n")
    return "\n## Notes\n\n" + "".join(lines) if lines else ""


def remarks(results: Results) -> str:
    """The section of what was written by hand; empty where nothing was."""
    lines = "".join(f"- {remark}\n" for remark in results.head.get("remarks", ()))
    return f"\n## Notes\n\n{lines}" if lines else ""


def opening(results: Results, title: str) -> str:
    """Title, commands and versions."""
    commands = "".join(f"    {command}\n" for command in results.head["commands"])
    versions = ", ".join(f"{name} {value}" for name, value in results.head.get("versions", {}).items())
    return f"# {title}\n\nMade by\n\n{commands}\nwith {versions}; BLAS and OpenMP limited to one thread.\n\n"


def draw_ratios(
    records: list[Record], field: str, models: Sequence[str], sets: Sequence[str], path: Path, label: str, *, n: int
) -> None:
    """Dots of every model's ratio to the reference by set, and a bar at its geometric mean."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = []
    for model in models:
        compared = pairs(records, field, n=n, model=model, reference=REFERENCE)
        ratios = [compared[name][0] / compared[name][1] for name in sets if name in compared and compared[name][1] > 0]
        if ratios and model != REFERENCE and min(ratios) > 0:
            rows.append((geometric_mean(ratios), model, ratios))
    rows.sort(reverse=True)
    figure, axes = pyplot.subplots(figsize=(7.5, 0.42 * len(rows) + 1.4), layout="constrained")
    for height, (centre, model, ratios) in enumerate(rows):
        colour = "#c0392b" if model.startswith("kstonet") else "#4a5a6a"
        axes.plot(ratios, [height] * len(ratios), "o", color=colour, alpha=0.45, markersize=5, markeredgewidth=0)
        axes.plot([centre, centre], [height - 0.32, height + 0.32], color=colour, linewidth=3)
        axes.annotate(f"{centre:.2f}", (1.01, height), xycoords=("axes fraction", "data"), va="center", color=colour)
    axes.set_yticks(range(len(rows)), [model for _, model, _ in rows])
    axes.set_xscale("log")
    ticks = [t for t in (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20) if axes.get_xlim()[0] <= t <= axes.get_xlim()[1]]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.axvline(1.0, color="#999999", linewidth=1, linestyle="--", zorder=0)
    axes.set_xlabel(label)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
