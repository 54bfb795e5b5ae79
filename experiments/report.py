"""docs/results.md: one section per result of the paper, every figure taken from the results files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from experiments import conditional, full_row_rank, large_classification, measurement_error, qsar, simulated_knn, structure
from experiments.paths import Summary, parts_of

DOCUMENT = Path(__file__).parents[1] / "docs" / "results.md"
HEAD = """# Results

Every result of the paper, compared with the results of this library. "Paper's settings" are the settings printed in the paper;
"defaults" are the settings of this library, or values chosen by validation inside the training rows. This page is written by
`python -m experiments report` from the files in `experiments/results/`, which have the complete tables and pictures.
"""
# Table 4 of the paper: mean test RMSE.
UCI_PUBLISHED = {
    "yacht": 0.856, "bostonHousing": 2.987, "energy": 1.301, "concrete": 5.261, "wine-quality-red": 0.6214, "kin8nm": 0.0747,
    "power-plant": 3.952, "naval-propulsion-plant": 0.00098, "protein-tertiary-structure": 3.856,
    "YearPredictionMSD": 8.881,
}  # fmt: skip


def uci(parts: dict[str, Any]) -> list[Summary]:
    """UCI sets: what each column of :mod:`experiments.uci` found, beside the SVR tuned in the same way."""
    columns = {
        "paper": "C chosen",
        "defaults": "first call",
        "fixed": "fixed settings",
        "rbf": "C and γ chosen",
        "tuned": "everything chosen",
    }
    parts = {key: part for key, part in parts.items() if key.split("|")[-1] in columns}

    def cell(column: str) -> str:
        texts = []
        for name in shown:
            rows = [part for key, part in parts.items() if key.startswith(f"{name}|") and key.endswith(f"|{column}")]
            if rows:
                own, svr = (np.mean([row[field] for row in rows]) for field in ("rmse", "svr_rmse"))
                texts.append(f"{name} {own:.3g} ({svr:.3g})")
        return f"{columns[column]}: {', '.join(texts)}" if texts else ""

    shown = [name for name in UCI_PUBLISHED if any(key.startswith(f"{name}|") for key in parts)]
    splits = len({key.split("|")[1] for key in parts})
    if not shown:
        return []
    return [
        Summary(
            "UCI sets, test RMSE (Section 4.4)",
            "; ".join(f"{name} {UCI_PUBLISHED[name]:.3g}" for name in shown),
            cell("paper") or "–",
            "; ".join(filter(None, map(cell, ("defaults", "fixed", "rbf", "tuned")))),
            f"original splits, up to {splits} of them; in brackets the first layer alone with the same "
            "settings, or chosen in the same way (an SVR; beside the first call a kernel ridge regression); energy is heating "
            "load here, cooling load in the paper; on some of these splits the published code with the paper's settings gave "
            "Boston 3.06, concrete 5.68, wine 0.664, not the printed figures either",
        )
    ]


def coverage(parts: dict[str, Any]) -> list[Summary]:
    """Coverage of nominal 95 % intervals on simulated data."""
    rows = parts_of(parts, "simulated")

    def cell(setting: str) -> str:
        return f"{100 * np.mean([row[setting]['coverage_0.95'] for row in rows]):.2f} %"

    return [
        Summary(
            "Coverage of 95 % prediction intervals (Section 5.2)",
            "last iterate 93.81 %; averaged over 25 iterates 94.03 %",
            f"as printed: last iterate {cell('paper, last iterate')}; averaged over 25 {cell('paper, averaged over 25')}; "
            f"as the published code is called: {cell('published code, last iterate')}; "
            f"{cell('published code, averaged over 25')}",
            f"last iterate {cell('default, last iterate')}; averaged over 10 {cell('default')}",
            f"{len(rows)} training sets. The paper's formula takes the noise from training residuals, which are too small, and "
            "adds a variance of the first layer that does not know their size: intervals are too short with the printed "
            "C = 10, too long with the published code's C = 1. That code covered about 80 % as printed and 92 to 95 % with its "
            "own settings, the paper's figure",
        )
    ]


def probabilities(parts: dict[str, Any]) -> list[Summary]:
    """Calibration of class probabilities and coverage of their intervals; the paper has no such results."""
    names = list(dict.fromkeys(key.split("|")[0] for key in parts))

    def row(result: str, field: str, shown: list[str], digits: str, remarks: str) -> Summary:
        def cell(stage: str) -> str:
            means = {name: np.mean([part[f"{stage}_{field}"] for part in parts_of(parts, name)]) for name in shown}
            return "; ".join(f"{name.removeprefix('simulated ')} {mean:{digits}}" for name, mean in means.items())

        return Summary(result, "–", cell("paper"), cell("default"), remarks)

    simulated = [name for name in names if name.startswith("simulated ")]
    real = [name for name in names if name not in simulated]
    tables = [
        ("Calibration error of class probabilities", "ece", real, ".3f", "the default learns a temperature from hidden rows"),
        (
            "Coverage of 95 % intervals of class probabilities, simulated logits",
            "coverage",
            simulated,
            ".1%",
            "500 training rows; the variance of the logits follows from the noise of the labels (first call) or a bootstrap",
        ),
    ]
    return [row(result, field, shown, digits, remarks) for result, field, shown, digits, remarks in tables if shown]


SUMMARIES: dict[str, Callable[[dict[str, Any]], list[Summary]]] = {
    "full_row_rank": full_row_rank.summary,
    "simulated_knn": simulated_knn.summary,
    "measurement_error": measurement_error.summary,
    "qsar": qsar.summary,
    "large_classification": large_classification.summary,
    "uci": uci,
    "coverage": coverage,
    "conditional": conditional.summary,
    "structure": structure.summary,
    "probabilities": probabilities,
}


def report(results: Path) -> str:
    """The document; a result is in it once its experiment has written its table."""
    lines = []
    for name, summary in SUMMARIES.items():
        file = results / f"{name}.json"
        if not file.with_suffix(".md").exists():
            continue
        for row in summary(json.loads(file.read_text())["parts"]):
            cells = {
                "Paper": row.paper,
                "Paper's settings": row.paper_settings,
                "Defaults": row.defaults,
                "Remarks": row.note,
                "Table": f"[{name}.md](../experiments/results/{name}.md)",
            }
            shown = [_cell(title, text) for title, text in cells.items() if text not in ("", "–")]
            lines += ["", f"## {row.result}", "", *shown]
    return HEAD + "\n".join(lines) + "\n"


def _cell(title: str, text: str) -> str:
    """One item of a section. Several results become a list; those after "name:" belong to that name."""
    parts: list[str] = []
    for part in text.split("; "):
        if parts and ":" in parts[-1] and ":" not in part:
            parts[-1] += f"; {part}"
        else:
            parts.append(part)
    if title == "Remarks" or len(parts) == 1:
        return f"- **{title}:** {text}"
    return "\n".join([f"- **{title}:**", *(f"  - {part}" for part in parts)])
