"""The order of the examples: what most readers look for comes first, and new ones last."""

from __future__ import annotations

from pathlib import Path

ORDER = [
    "intervals_on_a_curve",
    "classification",
    "pipeline",
    "tuning",
    "residuals",
    "more_rows",
    "compare_models",
    "multi_output",
    "report",
    "conformal_with_mapie",
    "units_with_own_kernels",
    "string_kernel",
    "sparse_network",
    "sufficient_reduction",
    "training_path",
    "grid_search",
    "optuna_search",
]


class Place:
    """Sort key of sphinx-gallery."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, filename: str) -> int:
        """Where an example stands."""
        name = Path(filename).stem.removeprefix("plot_")
        return ORDER.index(name) if name in ORDER else len(ORDER)
