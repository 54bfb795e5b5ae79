"""Where a regression starts whose units are kernel ridge regressions: as their mean.

Several kernels were chosen because their mean errs less than the best of them on rows that were left out
(:mod:`kstonet.tuning.stacking`), and each has as many units as its share of that mean. The latent values of all units start as
the targets, so a head that is fitted on them cannot tell the kernels apart: a lasso would keep a few units, whichever, and
later refits would prefer the kernel that follows its own training rows most closely. On validation rows that cost two
percent of the error. Units that share one kernel came to errors of 1.002 of the regression with this kernel (21 draws of
training rows of nine sets), and come to 0.993 from here. So the head is anchored: its weights start equal within the units of
either sign, and a penalty holds them there unless the latent values ask for something else.

Units of both signs alternate within every kernel, because for the activations with one flat end ψ(z) - ψ(-z) = z (softplus,
ReLU, GELU): the anchored head is then the mean itself. The noise of the output is small beside that of the units, which take
up all of the residual: with equal noise, twenty units with a weight of 1/20 each would take up a third of it, as if the ridge
were three times as large.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kstonet.imputation.base import Latents
from kstonet.initialisation import TrainingRows, initial_latents
from kstonet.layers.activations import Activation
from kstonet.layers.dense import DenseLayer
from kstonet.layers.ridge import RidgeLayer
from kstonet.network import Network

STACKED_SHARE = 0.999  # correlation of an initial latent value with the targets: units differ by their kernels
ANCHOR_PENALTY = 0.01  # a ridge that divides weights equally between units that say the same
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


def stacked_start(
    rng: np.random.Generator, network: Network, rows: TrainingRows, activation: Activation
) -> tuple[Network, Latents]:
    """The network after its first refit, and the latent values it was fitted on."""
    first, head = network.first, network.head
    assert isinstance(first, RidgeLayer)
    assert isinstance(head, DenseLayer)
    (values,) = initial_latents(rng, rows.X, rows.outputs, network.hidden_sizes, activation, STACKED_SHARE)
    values = values * _alternating([group.units for group in first.groups], values.T @ rows.outputs[:, 0])
    first = replace(first, ratio=NOISE_RATIO, noise_share=NOISE_SHARE)
    head = head.anchored(values, rows.outputs, rows.weights, ANCHOR_PENALTY)
    return rows.refitted(Network((first, head)), (values,)), (values,)


def _alternating(groups: list[np.ndarray], along: np.ndarray) -> np.ndarray:
    """Factors ±1 of the units, with which they rise and fall with a target in turn, within every group.

    Parameters
    ----------
    groups : list of ndarray of int
        Units that share a kernel.
    along : ndarray of shape (units,)
        How far a unit rises with the target.

    Examples
    --------
    >>> _alternating([np.array([0, 2]), np.array([1, 3])], np.array([1.0, 1.0, 1.0, -1.0])).tolist()
    [1.0, 1.0, -1.0, 1.0]
    """
    wanted = np.empty(len(along))
    for group in groups:
        wanted[group] = np.where(np.arange(len(group)) % 2 == 0, 1.0, -1.0)
    return np.where(along * wanted < 0.0, -1.0, 1.0)
