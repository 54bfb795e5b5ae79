"""Where a regression starts whose units are kernel ridge regressions: as their mean. Mostly it rests there, too.

Several kernels were chosen because their mean errs less than the best of them on rows that were left out
(:mod:`kstonet.tuning.stacking`), and each has as many units as its share of that mean. The latent values of all units start as
the targets, so a head that is fitted on them cannot tell the kernels apart: a lasso would keep a few units, whichever, and
later refits would prefer the kernel that follows its own training rows most closely. So the head is anchored: its weights start
equal within the units of either sign, and a penalty holds them there unless the latent values ask for something else.

Units of both signs alternate within every kernel, because for the activations with one flat end ψ(z) - ψ(-z) = z (softplus,
ReLU, GELU): the anchored head is then the mean itself.

Where iterations lead from here can be said in a formula. Without noise, the imputation moves the latent values of every unit by
a share c of the residual r = y - f, and the ridge regression with kernel matrix K and ridge λ answers α = (K + λ)⁻¹(Kα + c·r).
At rest α = c·r/λ: the network is one ridge regression with the sum of all kernels, each over its own λ, and the kernel with
the smallest ridge outweighs the others. On training rows of 43 real tables (one draw of 250 and one of 800 rows) six iterations
made errors on other rows 1.016 times those of the mean, and 1.3 times at worst. So a chain goes on only where rows that are
hidden from it say that this helps (:mod:`kstonet.resting`). The noise of the output is then small beside that of the units,
which take up all of the residual: with equal noise, twenty units with a weight of 1/20 each would take up a third of it, as if
the ridge were three times as large.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kstonet.imputation.base import Latents
from kstonet.initialisation import TrainingRows
from kstonet.layers.activations import Activation
from kstonet.layers.dense import DenseLayer
from kstonet.layers.ridge import RidgeLayer
from kstonet.network import Network
from kstonet.scaling import Scaler

STACKED_SHARE = 0.999  # correlation of an initial latent value with several targets: units differ by their kernels
ANCHOR_PENALTY = 1e-6  # a ridge that divides weights equally between units that say the same
NOISE_RATIO = 100.0  # noise of the units over that of the output
NOISE_SHARE = 0.01  # noise of the output over the mean squared residual


def has_several_kernels(network: Network) -> bool:
    """Whether the units of a first layer of ridge regressions differ by their kernels."""
    return isinstance(network.first, RidgeLayer) and len(network.first.groups) > 1


def is_stacked(network: Network) -> bool:
    """Whether a network is the mean of kernel ridge regressions: one layer of such units, and a regression above.

    There is one target, and a unit of either sign for every kernel: units of several targets start as mixtures of these, which
    equal weights would not take apart.
    """
    if not isinstance(network.first, RidgeLayer) or len(network.uppers) > 1:
        return False
    enough = network.head.n_inputs >= 2 * len(network.first.groups)
    return enough and isinstance(network.head, DenseLayer) and network.head.n_outputs == 1


def keeps_means(activation: Activation) -> bool:
    """Whether ψ(z) - ψ(-z) = z: units of both signs are then together a straight line, and the start is the mean itself.

    Examples
    --------
    >>> from kstonet.layers.activations import get_activation
    >>> [name for name in ("softplus", "gelu", "tanh") if keeps_means(get_activation(name))]
    ['softplus', 'gelu']
    """
    values = np.array([0.5, 3.0])
    return bool(np.allclose(activation.value(values) - activation.value(-values), values))


def stacked_start(network: Network, rows: TrainingRows) -> tuple[Network, Latents]:
    """The network after its first refit, and the latent values it was fitted on: the standardised target, or minus it."""
    first, head = network.first, network.head
    assert isinstance(first, RidgeLayer)
    assert isinstance(head, DenseLayer)
    standard = Scaler.fit(rows.outputs, rows.weights).forward(rows.outputs)
    values = standard * _alternating([group.units for group in first.groups])
    first = replace(first, ratio=NOISE_RATIO, noise_share=NOISE_SHARE)
    head = head.anchored(values, rows.outputs, rows.weights, ANCHOR_PENALTY)
    return rows.refitted(Network((first, head)), (values,)), (values,)


def _alternating(groups: list[np.ndarray]) -> np.ndarray:
    """Signs of the units, with which they rise and fall with the target in turn, within every group that shares a kernel.

    Examples
    --------
    >>> _alternating([np.array([0, 2]), np.array([1, 3])]).tolist()
    [1.0, 1.0, -1.0, -1.0]
    """
    signs = np.empty(sum(map(len, groups)))
    for group in groups:
        signs[group] = np.where(np.arange(len(group)) % 2 == 0, 1.0, -1.0)
    return signs
