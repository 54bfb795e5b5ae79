"""The measurement-error example (Section 3.2): training paths over 1,000 epochs, and support vectors against epsilon.

    python -m experiments.measurement_error [--epsilons 0.01 0.05 ...]

500 training and 500 test rows; networks with one hidden layer of 5 units and with three of 20. KNN and DNN have the same
structure and are trained by SGD with momentum (rate 0.005, batches of 100). K-StoNet has the paper's network (tanh, C = 1,
Lasso) with the appendix's noise and step size, or with automatic noise, step size and penalty; and this library's defaults.
The table of epsilon has the paper's settings. Its networks with three layers cost several minutes per value of epsilon; a
stopped run goes on where it was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from experiments.baselines import DNNRegressor, KernelNetworkRegressor
from experiments.common import Results, parser
from experiments.figures import draw_paths, legend_below, new_figure, save
from experiments.paths import Summary, training_path, write_report
from kstonet import KStoNetRegressor
from kstonet.datasets import make_measurement_error

PAPER, AUTOMATIC, DEFAULTS = "K-StoNet, paper's settings", "K-StoNet, automatic noise", "K-StoNet, defaults"
NETWORKS: dict[str, tuple[int, ...]] = {"one layer": (5,), "three layers": (20, 20, 20)}
EPSILONS = tuple(round(0.01 * k, 2) for k in range(1, 11))
PATH_EPSILON = 0.05  # of the paper's networks in the picture; that of the published commands
NETWORK: dict[str, Any] = {"activation": "tanh", "C": 1.0}
# The appendix, "Measurement error data": noise 0.001 in hidden layers and 0.01 at the output, steps of 5e-5. Half of each is
# meant: the published code moves by half its step and has no ½ in the exponent. Its λ is twice this alpha, its kernel has
# gamma = 1/p on raw inputs.
HIDDEN_NOISE, OUTPUT_NOISE = 0.0005, 0.005
PAPER_SETTINGS: dict[str, Any] = NETWORK | {
    "step_size": 2.5e-5, "friction": 1.0, "temperature": 1.0, "alpha": 5e-5, "standardize": False, "gamma": "auto",
}  # fmt: skip
SGD: dict[str, Any] = {
    "activation": "tanh", "solver": "momentum", "learning_rate": 0.005, "momentum": 0.9, "batch_size": 100,
    "standardize": False, "random_state": 0,
}  # fmt: skip
# Table 1 of the paper: support vectors, training and test MSE.
PUBLISHED: dict[str, dict[float, tuple[float, float, float]]] = {
    "one layer": {
        0.01: (473.6, 6.6786, 9.0852), 0.02: (428.6, 6.7382, 9.0387), 0.03: (416.2, 6.6917, 9.0531),
        0.04: (381.0, 6.7301, 9.0742), 0.05: (361.4, 6.5158, 9.3358), 0.06: (342.6, 6.5041, 9.1498),
        0.07: (347.2, 6.4878, 9.1893), 0.08: (313.6, 6.5083, 9.0639), 0.09: (317.0, 6.4130, 9.0330),
        0.10: (290.2, 6.4676, 9.0308),
    },
    "three layers": {
        0.01: (409.0, 4.6552, 10.1387), 0.02: (320.2, 4.7257, 9.9422), 0.03: (235.8, 4.9850, 9.8192),
        0.04: (165.4, 5.2578, 9.3949), 0.05: (113.2, 5.6594, 9.0195), 0.06: (69.6, 6.1869, 8.7551),
        0.07: (37.8, 6.8884, 9.0565), 0.08: (17.6, 7.8616, 9.5882), 0.09: (16.2, 9.1655, 9.9940), 0.10: (8.2, 10.5946, 10.7611),
    },
}  # fmt: skip


@dataclass(frozen=True)
class Size:
    """How much of everything; the default is the paper's."""

    rows: int = 500
    epochs: int = 1000


def one_run(model: Any, size: Size) -> dict[str, Any]:
    """The path of one training, and of a K-StoNet the support vectors of its last iteration: mean and deviation over units."""
    X, y = make_measurement_error(2 * size.rows, random_state=0)
    X, y, X_test, y_test = X[: size.rows], y[: size.rows], X[size.rows :], y[size.rows :]
    last: deque[Any] = deque(maxlen=1)
    path = training_path(model, X, y, X_test, y_test, look=last.append)
    path |= {"train_variance": float(y.var()), "test_variance": float(y_test.var())}
    if isinstance(model, KStoNetRegressor):
        support = last[0].network.layers[0].n_support
        path |= {"support": float(support.mean()), "support_deviation": float(support.std(ddof=1))}
        path |= {"model_test": float(np.mean((y_test - model.predict(X_test)) ** 2))}
    return path


def kstonet(sizes: tuple[int, ...], size: Size, **settings: Any) -> KStoNetRegressor:
    """A K-StoNet without intervals."""
    return KStoNetRegressor(sizes, tuning="none", max_iter=size.epochs, residuals=None, random_state=0, **settings)


def paper_network(sizes: tuple[int, ...], size: Size, epsilon: float) -> KStoNetRegressor:
    """With the paper's settings: every layer has its own noise."""
    noise = (*(HIDDEN_NOISE,) * (len(sizes) - 1), OUTPUT_NOISE)
    return kstonet(sizes, size, epsilon=epsilon, noise_variance=[noise], **PAPER_SETTINGS)


def run(results: Results, size: Size, epsilons: Sequence[float] = EPSILONS, networks: Sequence[str] = tuple(NETWORKS)) -> None:
    """Run what is missing: the paths first, then the table, the cheap network first."""
    planned: dict[str, Any] = {}
    for network in networks:
        sizes = NETWORKS[network]
        models = {
            "DNN": DNNRegressor(sizes, max_epochs=size.epochs, **SGD),
            "KNN": KernelNetworkRegressor(sizes, max_epochs=size.epochs, standardize_kernel=True, **SGD),
            f"{AUTOMATIC}|{PATH_EPSILON}": kstonet(sizes, size, epsilon=PATH_EPSILON, **NETWORK),
            f"{PAPER}|{PATH_EPSILON}": paper_network(sizes, size, PATH_EPSILON),
            DEFAULTS: kstonet(sizes, size),
        }
        planned |= {f"{network}|{name}": model for name, model in models.items()}
    for network, epsilon in product(networks, epsilons):
        planned[f"{network}|{PAPER}|{epsilon}"] = paper_network(NETWORKS[network], size, epsilon)
    results.run_all({key: lambda model=model: one_run(model, size) for key, model in planned.items()})


def paths_of(parts: dict[str, Any], network: str) -> dict[str, dict[str, Any]]:
    """The paths of the picture, by model."""
    keys = {"DNN": "DNN", "KNN": "KNN", DEFAULTS: DEFAULTS}
    keys |= {name: f"{name}|{PATH_EPSILON}" for name in (PAPER, AUTOMATIC)}
    return {name: parts[f"{network}|{key}"] for name, key in keys.items() if f"{network}|{key}" in parts}


def at_epoch(part: dict[str, Any], epoch: int) -> str:
    """The test error at an epoch of the path."""
    return f"{part['test'][part['epoch'].index(epoch)]:.2f}" if epoch in part["epoch"] else "–"


def path_table(parts: dict[str, Any]) -> str:
    """Ends of the paths, as Markdown."""
    lines = [
        "| network | model | epochs | training MSE, last | test MSE, last | best | at epoch 40 | mean of 10 iterates | "
        "CPU seconds |",
        "|---" * 9 + "|",
    ]
    for network in NETWORKS:
        for name, part in paths_of(parts, network).items():
            cells = [network, name, str(part["epoch"][-1])]
            cells += [f"{part[key]:.2f}" for key in ("final_train", "final_test", "best_test")]
            cells += [at_epoch(part, 40), f"{part['model_test']:.2f}" if "model_test" in part else "–"]
            cells += [f"{part['elapsed'][-1]:.0f}"]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def epsilon_table(parts: dict[str, Any]) -> str:
    """Support vectors and errors by epsilon, ours and the paper's, as Markdown."""
    lines = [
        "| network | ε | support vectors | training MSE | test MSE | paper: support vectors | training | test |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for network in NETWORKS:
        for epsilon in EPSILONS:
            part = parts.get(f"{network}|{PAPER}|{epsilon}")
            if part is None:
                continue
            theirs = PUBLISHED[network][epsilon]
            ours = [f"{part['support']:.1f} ({part['support_deviation']:.1f})", f"{part['final_train']:.2f}"]
            ours += [f"{part['final_test']:.2f}", f"{theirs[0]:.1f}", f"{theirs[1]:.2f}", f"{theirs[2]:.2f}"]
            lines.append(f"| {network} | {epsilon:.2f} | " + " | ".join(ours) + " |")
    return "\n".join(lines)


def picture(parts: dict[str, Any], out: Path) -> None:
    """The paper's figure: one-layer networks above, three-layer networks below."""
    figure, axes = new_figure(2, 2, 9.0, 6.6)
    for row, network in zip(axes, NETWORKS, strict=True):
        paths = paths_of(parts, network)
        for ax, which in zip(row, ("train", "test"), strict=True):
            draw_paths(ax, paths, which, ylabel=f"{which}ing MSE", ylim=(0, 25))
            ax.set_title(network, fontsize="medium")
    legend_below(figure, axes, 3)
    save(figure, out)


def summary(parts: dict[str, Any]) -> list[Summary]:
    """The line of this result."""

    def ends(name: str) -> str:
        found = {network: paths_of(parts, network).get(name) for network in NETWORKS}
        return "; ".join(f"{k} {v['final_train']:.2f} / {v['final_test']:.2f}" for k, v in found.items() if v)

    def support() -> str:
        texts = []
        for network in NETWORKS:
            found = [parts[key]["support"] for e in EPSILONS if (key := f"{network}|{PAPER}|{e}") in parts]
            if len(found) == len(EPSILONS):
                texts.append(f"{network} {found[0]:.0f} → {found[-1]:.0f} support vectors")
        return "; ".join(texts)

    def early() -> str:
        found = {network: paths_of(parts, network).get(DEFAULTS) for network in NETWORKS}
        return "; ".join(f"{network} {at_epoch(part, 40)}" for network, part in found.items() if part)

    paper = ends(PAPER) + (f"; ε 0.01 → 0.10: {support()}" if support() else "")
    return [
        Summary(
            "Measurement error, training / test MSE after 1,000 iterations (Section 3.2)",
            "one layer 6.52 / 9.34; three layers 5.66 / 9.02 (ε = 0.05); support vectors 474 → 290 and 409 → 8",
            f"{paper}; automatic noise: {ends(AUTOMATIC)}; DNN: {ends('DNN')}; KNN: {ends('KNN')}",
            f"{ends(DEFAULTS)}; test MSE at iteration 40, where the defaults stop: {early()}",
            NOTE,
        )
    ]


NOTE = (
    "other draws of the same data, on which one layer trains further than in the paper and three layers less far. Support "
    "vectors fall with ε as in the paper. Three layers need a noise of their own for every layer, as the paper prints it: with "
    "one value for all (automatic noise) most rows stay support vectors. Their errors are larger than in the paper, from "
    "another start. The defaults with three layers are not stable over 1,000 iterations"
)


def main() -> None:
    """Run what is missing; write tables and picture."""
    arguments = parser(__doc__ or "", "measurement_error")
    arguments.add_argument("--epsilons", nargs="*", type=float, choices=EPSILONS, default=EPSILONS)
    arguments.add_argument("--networks", nargs="*", choices=tuple(NETWORKS), default=tuple(NETWORKS))
    given = arguments.parse_args()
    results = Results(given.out)
    run(results, Size(), given.epsilons, given.networks)
    text = (
        f"## Paths (ε = {PATH_EPSILON} for the paper's network)\n\n{path_table(results.parts)}\n\n## Sparsity\n\n"
        f"The paper's settings, last of 1,000 iterations; in brackets the deviation over units.\n\n"
        f"{epsilon_table(results.parts)}"
    )
    write_report(given.out, "Measurement error (Section 3.2)", "python -m experiments.measurement_error", text)
    picture(results.parts, given.out)


if __name__ == "__main__":
    main()
