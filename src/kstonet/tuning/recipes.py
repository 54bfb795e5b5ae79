"""Kernels as a search thinks of them: a rule, made into a kernel on whatever rows it is to serve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kstonet.gram import Kernel, make_kernel
from kstonet.gram.kernels import resolve_gamma, takes_gamma
from kstonet.tuning.relevance import evidence_kernels, evidence_length_scales

EVIDENCE = "evidence"


@dataclass(frozen=True)
class KernelRecipe:
    """A kernel (name, object or function), its gamma and length scales; "evidence" stands for scales learned from the rows.

    ``kernel`` and ``gamma`` are tuples where the user gave every unit its own.
    """

    kernel: Any
    gamma: Any = "scale"
    length_scale: Any = None

    @property
    def possible(self) -> bool:
        """Whether length scales can be learned, if they are to be."""
        return self.length_scale != EVIDENCE or self.kernel in evidence_kernels()

    @property
    def finished(self) -> bool:
        """Whether gamma has no say: the kernel brings its own, or has none."""
        return not self.per_unit and not (isinstance(self.kernel, str) and takes_gamma(self.kernel))

    @property
    def per_unit(self) -> bool:
        """Whether units have kernels of their own."""
        return isinstance(self.kernel, tuple) or isinstance(self.gamma, tuple)

    def describe(self) -> dict[str, Any]:
        """What a table of candidates says of it."""
        gamma = None if self.finished else self.gamma
        return {"kernel": self.kernel, "gamma": gamma, "length_scale": self.length_scale}


class Kitchen:
    """Recipes made into kernels on one set of rows; length scales are learned once per kernel.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Standardised features.
    Y : ndarray of shape (n, k)
        Standardised targets.
    weights : ndarray of shape (n,), optional
    seed : int
    """

    def __init__(self, X: np.ndarray, Y: np.ndarray, weights: np.ndarray | None, seed: int) -> None:
        self.X, self.Y, self.weights, self.seed = X, Y, weights, seed
        self._scales: dict[str, tuple[float, ...]] = {}

    def parameters(self, recipe: KernelRecipe) -> dict[str, Any]:
        """The estimator's ``kernel``, ``gamma`` and ``length_scale``."""
        kernel, gamma, length_scale = recipe.kernel, recipe.gamma, recipe.length_scale
        if length_scale == EVIDENCE:
            length_scale = self._learned(kernel)
            # of the features as they are: the scales come on top
            gamma = tuple(map(self._number, gamma)) if isinstance(gamma, tuple) else self._number(gamma)
        return {"kernel": kernel, "gamma": gamma, "length_scale": length_scale}

    def kernels(self, recipe: KernelRecipe) -> list[Kernel]:
        """The kernels themselves: one, or the different ones of units with their own."""
        made = self.parameters(recipe)
        kernels, gammas = (value if isinstance(value, tuple) else (value,) for value in (made["kernel"], made["gamma"]))
        units = max(len(kernels), len(gammas))
        pairs = zip(kernels * (units // len(kernels)), gammas * (units // len(gammas)), strict=False)
        given: dict[str, Any] = {"length_scale": made["length_scale"], "sample_weight": self.weights}
        return list(dict.fromkeys(make_kernel(kernel, self.X, gamma=gamma, **given) for kernel, gamma in pairs))

    def _number(self, gamma: Any) -> float:
        return resolve_gamma(gamma, self.X, self.weights)

    def _learned(self, kernel: str) -> tuple[float, ...]:
        """Scales for which gamma="scale" has the largest evidence."""
        if kernel not in self._scales:
            scales = evidence_length_scales(self.X, self.Y, kernel, self._number("scale"), self.seed)
            self._scales[kernel] = tuple(scales.tolist())
        return self._scales[kernel]
