"""What a search chooses from: the grids of values, and the candidates made of them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kstonet.gram import make_kernel
from kstonet.tuning.recipes import EVIDENCE, KernelRecipe, Kitchen
from kstonet.tuning.relevance import evidence_kernels

TUNABLE = ("kernel", "gamma", "length_scale", "C", "hidden_layer_sizes", "noise_variance")

KERNELS = ("rbf", "matern32", "laplacian")
GAMMA_MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of gamma="scale"
LENGTH_SCALES = (None, EVIDENCE)
CS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
SIZES = ((5,), (20,), (20, 5))
NOISES = ("auto", 1e-4, 1e-3, 1e-2)  # variances of standardised targets


def is_tune(value: Any) -> bool:
    """Whether a parameter asks to be chosen."""
    return isinstance(value, str) and value == "tune"


def hashable(value: Any) -> Any:
    """One value per unit or feature as a tuple.

    Examples
    --------
    >>> import numpy as np
    >>> hashable(np.array([1.0, 2.0])), hashable("scale")
    ((1.0, 2.0), 'scale')
    """
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return tuple(value) if isinstance(value, list | tuple) else value


def first_units(hidden_layer_sizes: Any) -> int:
    """Units of the first layer."""
    return int(np.atleast_1d(hidden_layer_sizes)[0])


@dataclass(frozen=True)
class Grids:
    """The values to choose from; one value is no choice."""

    kernel: tuple[Any, ...]
    gamma: tuple[Any, ...]
    length_scale: tuple[Any, ...]
    C: tuple[Any, ...]  # ascending
    hidden_layer_sizes: tuple[Any, ...]
    noise_variance: tuple[Any, ...]

    @property
    def recipes(self) -> list[KernelRecipe]:
        """All kernels, each once."""
        every = itertools.starmap(KernelRecipe, itertools.product(self.kernel, self.gamma, self.length_scale))
        recipes = (replace(recipe, gamma="scale") if recipe.finished else recipe for recipe in every if recipe.possible)
        return list(dict.fromkeys(recipes))


def gamma_grid(X: np.ndarray, weights: np.ndarray | None, length_scale: Any = None) -> tuple[float, ...]:
    """Multiples of gamma="scale" for standardised features."""
    scale = make_kernel("rbf", X, length_scale=length_scale, sample_weight=weights).gamma  # type: ignore[attr-defined]
    return tuple(multiple * scale for multiple in GAMMA_MULTIPLES)


def default_grids(given: dict[str, Any], X: np.ndarray, weights: np.ndarray | None) -> Grids:
    """The choices for parameters that are "tune".

    Parameters
    ----------
    given : dict
        The estimator's values of ``TUNABLE`` and of ``epsilon``.
    X : ndarray of shape (n, p)
        Standardised training rows.
    weights : ndarray of shape (n,), optional
    """
    values = {name: hashable(given[name]) for name in TUNABLE}
    asked = {name for name, value in values.items() if is_tune(value)}
    if "length_scale" in asked and "kernel" not in asked and values["kernel"] not in evidence_kernels():
        raise ValueError(
            f"length_scale='tune' needs a kernel among {', '.join(evidence_kernels())}, or 'tune'; with "
            f"kernel={given['kernel']!r} give the scales yourself."
        )
    own = [name for name in ("kernel", "gamma", "C", "epsilon") if isinstance(hashable(given[name]), tuple)]
    if "hidden_layer_sizes" in asked and own:
        raise ValueError(
            f"hidden_layer_sizes='tune' tries first layers of different sizes: {own[0]}={given[own[0]]!r} must be one value "
            "for all units."
        )
    choices: dict[str, tuple[Any, ...]] = {
        "kernel": KERNELS,
        "length_scale": LENGTH_SCALES,
        "C": CS,
        "hidden_layer_sizes": SIZES,
        "noise_variance": NOISES,
    }
    if "gamma" in asked:
        choices["gamma"] = gamma_grid(X, weights, None if "length_scale" in asked else values["length_scale"])
    return Grids(**{name: choices[name] if name in asked else (value,) for name, value in values.items()})


@dataclass(frozen=True)
class Candidate:
    """A network to train: kernels that share the units of its first layer, with a C each, and what else is chosen.

    Without sizes it is the first layer alone.
    """

    recipes: tuple[KernelRecipe, ...]
    C: tuple[Any, ...]
    hidden_layer_sizes: Any = None
    noise_variance: Any = None

    @property
    def mixed(self) -> bool:
        """Whether several kernels share the layer."""
        return len(self.recipes) > 1

    def parameters(self, kitchen: Kitchen) -> dict[str, Any]:
        """Of the estimator; kernels that share the layer take turns."""
        each = [kitchen.parameters(recipe) for recipe in self.recipes]
        if len({made["length_scale"] for made in each}) > 1:  # the estimator's serve all units: put them into the kernels
            kernels = [kitchen.kernels(recipe)[0] for recipe in self.recipes]
            each = [{"kernel": kernel, "gamma": "scale", "length_scale": None} for kernel in kernels]
        each = [made | {"C": C} for made, C in zip(each, self.C, strict=True)]
        units = first_units(self.hidden_layer_sizes)
        first_layer = {name: _in_turn([made[name] for made in each], units) for name in each[0]}
        return first_layer | {"hidden_layer_sizes": self.hidden_layer_sizes, "noise_variance": self.noise_variance}

    def describe(self) -> dict[str, Any]:
        """One row of the table; lists where kernels share the layer."""
        each = [recipe.describe() | {"C": C} for recipe, C in zip(self.recipes, self.C, strict=True)]
        first_layer = each[0] if not self.mixed else {name: [one[name] for one in each] for name in each[0]}
        return first_layer | {"hidden_layer_sizes": self.hidden_layer_sizes, "noise_variance": self.noise_variance}

    def __str__(self) -> str:
        text = " and ".join(_in_words(recipe, C) for recipe, C in zip(self.recipes, self.C, strict=True))
        if self.hidden_layer_sizes is not None:
            text += f", units {self.hidden_layer_sizes}, noise {_value(self.noise_variance)}"
        return text


def _in_turn(values: list[Any], units: int) -> Any:
    """One value where all are the same, else a list for the units."""
    same = all(value == values[0] for value in values)
    return values[0] if same else [values[unit % len(values)] for unit in range(units)]


def _in_words(recipe: KernelRecipe, C: Any) -> str:
    text = _value(recipe.kernel)
    if not recipe.finished:
        text += f", gamma {_value(recipe.gamma)}"
    if recipe.length_scale is not None:
        text += ", a length scale per feature"
    return f"{text}, C {_value(C)}"


def _value(value: Any) -> str:
    """A number, name, schedule, kernel, or several of them, in a few characters."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_value, value))})"
    if isinstance(value, str):
        return value
    if isinstance(value, float | int | np.number):
        return f"{value:.4g}"
    return str(getattr(value, "__name__", type(value).__name__))
