"""What is automatic in training: the noise of the layers above the first, their penalty, the temperature of the imputation.

A latent value of the first layer leaves the ε-tube of its SVR only where the pull of the output, |residual|·|∂out/∂Y₁|/σ²,
exceeds C: residuals below C·σ²/|∂out/∂Y₁| are a dead zone that training cannot see. So the variance follows C, not the
other way round: σ² = DEAD_ZONE·(typical residual)·(typical slope)/C keeps the dead zone a fixed fraction of the residual, and
raising C never blinds the training. Assumption 2-(v) (noise small enough that K-StoNet and KNN share their loss) points the
same way.
"""

from __future__ import annotations

import numpy as np

from kstonet.layers.dense import DenseLayer
from kstonet.layers.heads import CategoricalHead
from kstonet.network import Network
from kstonet.solvers.softmax import log_proba

DEAD_ZONE = 0.1
LATENT_NOISE = 0.1 * float(np.sqrt(2.0))  # standard deviation of the first layer's noise that training may bear
FIRST_LAYER = 10.0  # noise of a linear first layer, over that of the layers above: the residual is to move it, not them
PENALTY = 0.1  # validation rows cannot tell it from 0.01, which drifts; 1 is too strong where a network nearly interpolates
SMALLEST_RESIDUAL = 1e-3  # of standardised targets: below it a fit is an interpolation


def output_slopes(network: Network, values: tuple[np.ndarray, ...]) -> np.ndarray:
    """Largest |∂ output / ∂ Y₁| of every observation, by the chain rule through the layers above the first."""
    jacobian = None  # (n, outputs, units of the current layer)
    for i in range(len(network) - 1, 0, -1):
        layer = network.layers[i]
        through = layer.weights[None] * layer.activation.slope(values[i - 1])[:, None, :]
        jacobian = through if jacobian is None else jacobian @ through
    assert jacobian is not None
    return np.asarray(np.abs(jacobian).max(axis=(1, 2)))


def typical_residual(network: Network, values: tuple[np.ndarray, ...], outputs: np.ndarray) -> float:
    """Root mean squared residual of the current fit; of a classifier, what the true classes' probabilities lack to one."""
    if isinstance(network.layers[-1], CategoricalHead):
        probabilities = np.exp(log_proba(values[-1]))
        error = 1.0 - probabilities[np.arange(len(outputs)), outputs]
    else:
        error = outputs - values[-1]
    return max(float(np.sqrt(np.mean(error**2))), SMALLEST_RESIDUAL)


def automatic_alpha(residual: float, n: int, inputs: int) -> float:
    """Penalty of a regression layer: 0.1·residual·√(log(inputs)/n), the order the theory asks for.

    A layer's scale is not identified by the likelihood alone (smaller latent values, larger weights above them); a penalty that
    is too weak lets weights and noise creep up over hundreds of iterations, and the training error with them.
    """
    return PENALTY * residual * float(np.sqrt(np.log(max(inputs, 2)) / n))


def automatic_noise(network: Network, values: tuple[np.ndarray, ...], outputs: np.ndarray) -> float:
    """σ² (or the temperature of a classification head) for the current fit."""
    residual = typical_residual(network, values, outputs)
    if isinstance(network.layers[0], DenseLayer):  # Gaussian noise has no dead zone: a fraction of the residual will do
        return DEAD_ZONE * residual**2
    slope = max(float(np.sqrt(np.mean(output_slopes(network, values) ** 2))), 1e-6)
    return DEAD_ZONE * residual * slope / _typical_C(network)


def automatic_temperature(network: Network) -> float:
    """1 (the model's own noise) unless C is so small that this noise would swamp the first layer.

    At temperature T the noise of an SVR unit has standard deviation about √2·T/C, and the latent values have the scale one
    where training starts: a C below √2/LATENT_NOISE = 10 is cooled down to a share of LATENT_NOISE.
    """
    if isinstance(network.layers[0], DenseLayer):
        return 1.0
    return min(1.0, LATENT_NOISE * _typical_C(network) / float(np.sqrt(2.0)))


def _typical_C(network: Network) -> float:
    return float(np.exp(np.log(network.layers[0].C).mean()))


def with_noise(network: Network, variances: tuple[float, ...]) -> Network:
    """The network with the noise of the layers above the first replaced; the noise of an SVR layer is that of its C."""
    if isinstance(network.layers[0], DenseLayer):
        network = network.with_layer(0, variance=FIRST_LAYER * variances[0])
    for i, variance in zip(range(1, len(network)), variances, strict=True):
        name = "temperature" if isinstance(network.layers[i], CategoricalHead) else "variance"
        network = network.with_layer(i, **{name: variance})
    return network
