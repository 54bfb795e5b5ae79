"""The settings of a training. A search replaces some of them, and never touches an estimator."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from kstonet._checks import require
from kstonet.gram import Gram, Kernel, Plan, make_kernel
from kstonet.gram.footprint import Workload
from kstonet.gram.planning import plan_training
from kstonet.iro import IROSettings, scheduled
from kstonet.layers import UPPER_LAYERS
from kstonet.layers.activations import get_activation
from kstonet.layers.base import FirstLayer, UpperLayer
from kstonet.layers.kernel import KernelLayer, UnitGroup
from kstonet.layers.linear import LinearFirstLayer
from kstonet.layers.regression import automatic_alpha
from kstonet.layers.ridge import RidgeLayer
from kstonet.network import Network
from kstonet.problem import Grams, Problem

#: What a parameter of a K-StoNet is that is left out and not chosen.
FIXED: dict[str, Any] = {
    "hidden_layer_sizes": (5,),
    "kernel": "rbf",
    "gamma": "scale",
    "length_scale": None,
    "C": 10.0,
    "loss": "epsilon_insensitive",
    "epsilon": 0.01,
    "max_iter": 40,
    "n_average": 10,
}

LARGEST = 1e30  # of C and epsilon, on standardised data; one over it is the smallest C


class FirstLayerSettings(Protocol):
    """How the first layer is made."""

    def build(self, problem: Problem, units: int) -> FirstLayer:
        """The layer before its first refit."""
        ...

    def inputs(self, problem: Problem) -> Any:
        """What the layer is handed as its inputs."""
        ...

    def schedules(self) -> dict[str, Any]:
        """Settings of the loop that belong to this layer and change with the iteration."""
        ...

    def plan(self, grams: Grams, work: Workload, iterations: int) -> Plan | None:
        """What a training on these Grams will hold and cost; None for a layer without a kernel matrix."""
        ...


@dataclass(frozen=True)
class KernelLayerSettings:
    """A layer of support vector regressions; every value is one for all units, or one per unit."""

    kernel: Any = FIXED["kernel"]
    gamma: Any = FIXED["gamma"]
    length_scale: Any = FIXED["length_scale"]
    C: Any = FIXED["C"]
    epsilon: Any = FIXED["epsilon"]
    tol: float = 1e-3
    loss: str = FIXED["loss"]

    def inputs(self, problem: Problem) -> None:
        """The rows of a kernel layer are fixed: it asks for none."""

    def schedules(self) -> dict[str, Any]:
        """C may be a function of the iteration."""
        return {"C": self.C} if callable(self.C) else {}

    def plan(self, grams: Grams, work: Workload, iterations: int) -> Plan:
        """The Gram that serves this loss, its memory and its time."""
        own = replace(work, squared=self.loss == "squared", groups=max(work.groups, self._groups()))
        n, p = grams.X.shape
        return plan_training(
            n,
            p,
            own,
            iterations=iterations,
            solver=grams.solver,
            pairwise=isinstance(self.kernel, str) and self.kernel == "precomputed",
            device=grams.device,
            max_memory=grams.max_memory,
        )

    def _groups(self) -> int:
        """How many matrices the values for the units ask for, as far as these are known before there are rows."""
        several = [self.kernel, self.gamma, *([self.C] if self.loss == "squared" else [])]
        lists = [list(value) for value in several if not isinstance(value, str) and np.ndim(value) == 1]
        return len({tuple(map(repr, values)) for values in zip(*lists, strict=False)}) or 1

    def build(self, problem: Problem, units: int) -> KernelLayer | RidgeLayer:
        """One Gram per distinct kernel."""
        if self.loss == "squared":
            return self._ridge_layer(problem, units)
        require("svr_tol", self.tol, lambda v: v > 0, "positive; it is a relative duality gap, such as 1e-3")
        first_C = np.full(units, float(self.C(0))) if callable(self.C) else per_unit("C", self.C, units)
        epsilon = per_unit("epsilon", self.epsilon, units, zero_allowed=True)
        members: dict[Kernel, list[int]] = {}
        for unit, kernel in enumerate(self.kernels(problem, units)):
            members.setdefault(kernel, []).append(unit)
        problem.grams.share(len(members), pairwise=problem.rows.pairwise, squared=False)
        groups = tuple(UnitGroup(problem.grams.of(kernel), np.array(own)) for kernel, own in members.items())
        return KernelLayer(groups, first_C, epsilon, tol=self.tol)

    def _ridge_layer(self, problem: Problem, units: int) -> RidgeLayer:
        """One Gram per distinct kernel and C: with a squared loss, C is one over the ridge."""
        if callable(self.C):
            raise ValueError("C is a function of the iteration, which loss='squared' does not take; give numbers.")
        members: dict[tuple[Kernel, float], list[int]] = {}
        values = per_unit("C", self.C, units).tolist()
        for unit, pair in enumerate(zip(self.kernels(problem, units), values, strict=True)):
            members.setdefault(pair, []).append(unit)
        problem.grams.share(len(members), pairwise=problem.rows.pairwise, squared=True)
        groups = tuple(UnitGroup(problem.grams.of(kernel, squared=True), np.array(own)) for (kernel, _), own in members.items())
        maps = tuple(problem.grams.ridge_map(kernel, 1.0 / C, problem.weights) for kernel, C in members)
        return RidgeLayer(groups, maps)

    def kernels(self, problem: Problem, units: int) -> list[Kernel]:
        """The kernel of every unit, with gamma resolved on the rows of the problem."""
        kernels = list(self.kernel) if isinstance(self.kernel, list | tuple) else [self.kernel] * units
        gammas = [self.gamma] * units if isinstance(self.gamma, str) or np.ndim(self.gamma) == 0 else list(self.gamma)
        scales = list(self.length_scale) if np.ndim(self.length_scale) == 2 else [self.length_scale] * units
        if {len(kernels), len(gammas), len(scales)} != {units}:
            raise ValueError(
                f"length_scale={self.length_scale!r}, kernel={self.kernel!r} and gamma={self.gamma!r}: each must be one value, "
                f"or one for each of the {units} first-layer units of hidden_layer_sizes."
            )
        each = zip(kernels, gammas, scales, strict=True)
        weights = problem.weights
        return [make_kernel(name, problem.X, gamma=own, length_scale=scale, sample_weight=weights) for name, own, scale in each]


@dataclass(frozen=True)
class LinearLayerSettings:
    """A layer of penalised regressions, linear in the features or, with a kernel, in the rows of the kernel matrix."""

    kernel: Any = None
    gamma: Any = "scale"
    penalty: str = "lasso"
    alpha: Any = "auto"

    def schedules(self) -> dict[str, Any]:
        """There are none."""
        return {}

    def plan(self, grams: Grams, work: Workload, iterations: int) -> None:
        """There is none."""

    def _gram(self, problem: Problem) -> Gram:
        kernel = make_kernel(self.kernel, problem.X, gamma=self.gamma, sample_weight=problem.weights)
        return problem.grams.of(kernel)

    def inputs(self, problem: Problem) -> np.ndarray:
        """The standardised features, or the kernel matrix."""
        return problem.X if self.kernel is None else self._gram(problem).columns(np.arange(len(problem.X)))

    def build(self, problem: Problem, units: int) -> LinearFirstLayer:
        """The layer before its first refit; features enter as they are."""
        n, p = problem.X.shape
        inputs = p if self.kernel is None else n
        gram = None if self.kernel is None else self._gram(problem)
        alpha, identity = first_alpha(self.alpha, n, inputs), get_activation("identity")
        weights, intercept = np.zeros((units, inputs)), np.zeros(units)
        return LinearFirstLayer(weights, intercept, 1.0, identity, self.penalty, alpha, gram=gram)


@dataclass(frozen=True)
class TrainingSettings:
    """Everything that training needs to know beside the problem.

    Parameters
    ----------
    first : KernelLayerSettings or LinearLayerSettings
        The first layer.
    hidden_layer_sizes : tuple of int
        Units of every hidden layer.
    activation, upper_layer, penalty : str
        Activation function, kind of the layers above the first, and their penalty.
    iro : IROSettings
        Settings of the loop.
    residuals : str or None
        Which residuals the intervals are learnt from; None for means only.
    max_iter, n_average, n_chains : int
        Iterations, how many of the last ones are averaged, and trainings from different starts.
    seed : int
        Seed of the starts and the imputation.
    chosen, choice : dict
        Which of the parameters were chosen by validation, and how; the trained network says so.
    """

    first: FirstLayerSettings
    hidden_layer_sizes: tuple[int, ...] = (5,)
    activation: str = "softplus"
    upper_layer: str = "dense"
    penalty: str = "lasso"
    iro: IROSettings = field(default_factory=IROSettings)
    residuals: str | None = "crossfit"
    max_iter: int = 40
    n_average: int = 10
    n_chains: int = 1
    seed: int = 0
    chosen: dict[str, Any] = field(default_factory=dict)
    choice: dict[str, Any] = field(default_factory=dict)

    @property
    def loop(self) -> IROSettings:
        """The settings of the loop, with the schedules of the first layer."""
        return replace(self.iro, **self.first.schedules())

    def plan(self, grams: Grams, work: Workload | None = None) -> Plan | None:
        """What a training on these Grams will hold and cost; ``work`` says what is done beside it."""
        own = replace(
            work or Workload(squared=False),
            units=self.hidden_layer_sizes[0],
            averages=self.n_average * self.n_chains,
            intervals=self.residuals is not None,
        )
        return self.first.plan(grams, own, self.max_iter * self.n_chains)

    def new_network(self, problem: Problem) -> Network:
        """The network before its first refit."""
        sizes, activation, n = self.hidden_layer_sizes, get_activation(self.activation), len(problem.X)
        uppers = [
            UPPER_LAYERS[self.upper_layer](below, size, activation, self.penalty, first_alpha(self.iro.alpha, n, below))
            for below, size in pairwise(sizes)
        ]
        alpha = first_alpha(self.iro.alpha, n, sizes[-1])
        head = problem.targets.new_head(self.upper_layer, sizes[-1], activation, self.penalty, alpha)
        above: tuple[UpperLayer, ...] = (*uppers, head)
        return Network((self.first.build(problem, sizes[0]), *above))

    def with_parameters(self, parameters: dict[str, Any]) -> TrainingSettings:
        """The settings with values for parameters of the estimator that a search chooses."""
        given = dict(parameters)
        changes: dict[str, Any] = {}
        if "hidden_layer_sizes" in given:
            changes["hidden_layer_sizes"] = layer_sizes(given.pop("hidden_layer_sizes"))
        changes |= {name: given.pop(name) for name in ("max_iter", "n_average", "residuals") if name in given}
        given.pop("target_transform", None)  # concerns the problem
        if "noise_variance" in given:
            changes["iro"] = replace(self.iro, noise_variance=given.pop("noise_variance"))
        return replace(self, first=replace(self.first, **given), **changes)  # type: ignore[type-var]


def units_given(parameters: dict[str, Any]) -> int | None:
    """How many first-layer units the parameters are given for: as many as one of them has values, if any has several.

    Examples
    --------
    >>> units_given({"kernel": ["rbf", "laplacian"], "C": 10.0}), units_given({"C": None})
    (2, None)
    """
    axes = {"length_scale": 1}  # one value has an axis of its own
    several = (value for name, value in parameters.items() if not isinstance(value, str) and np.ndim(value) > axes.get(name, 0))
    return next((len(value) for value in several), None)


def layer_sizes(given: Any) -> tuple[int, ...]:
    """``hidden_layer_sizes`` as a tuple."""
    return tuple(int(size) for size in np.atleast_1d(given).tolist())


def first_alpha(alpha: Any, n: int, inputs: int) -> float:
    """Penalty of a regression layer before anything is fitted: standardised targets are residuals of size one."""
    value = scheduled(alpha, 0)
    return automatic_alpha(1.0, n, inputs) if value == "auto" else float(value)


def per_unit(name: str, given: Any, units: int, *, zero_allowed: bool = False) -> np.ndarray:
    """One value per first-layer unit from a number or a sequence of them."""

    def valid(value: Any) -> bool:
        values = np.asarray(value, dtype=np.float64)
        positive = (values >= 0) if zero_allowed else (values >= 1.0 / LARGEST)
        return values.size in (1, units) and bool(((values <= LARGEST) & positive).all())

    demand = "non-negative" if zero_allowed else "positive"
    reason = f"one {demand} number, or one for each of the {units} first-layer units, and within 1/{LARGEST:g} and {LARGEST:g}"
    require(name, given, valid, reason)
    return np.broadcast_to(np.asarray(given, dtype=np.float64), (units,)).copy()
