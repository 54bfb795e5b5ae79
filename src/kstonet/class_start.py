"""Where the training of a classifier starts: as the one-vs-rest machine its first layer is made of.

Every class has a unit, whose latent values start as the standardised indicator of the class. A first layer with a squared loss
makes a kernel ridge regression of it, which estimates its mean, a probability. The head is fitted on what these regressions say
of every row with the row itself left out: fitted on latent values that know their labels, it would be certain of all of them.
Its penalty keeps many weights out of few rows and makes all of them too small; half of what the left-out rows then ask for is
given back by one factor (half way between a lasso and a relaxed one, Meinshausen 2007).

The imputation then moves latent values by the pull of the labels, and the refit answers with f = K·(pull)/ridge: at rest the
network is a kernel logistic regression. The noise of the two layers decides how much a pull counts; it is set so that pulls
have the size of the residuals of the ridge regressions, so that the network stays as smooth as these are. Whether that makes a
network better is seen on rows that are hidden from it: the chain goes on as long as it does (:mod:`kstonet.resting`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kstonet.imputation.base import Latents
from kstonet.initialisation import TrainingRows
from kstonet.layers.activations import Activation
from kstonet.layers.regression import automatic_alpha
from kstonet.layers.ridge import RidgeLayer
from kstonet.network import Network, forward_above
from kstonet.uncertainty.tempering import best_temperature

MOST_UNITS = 64  # so many classes have a unit each; more share them
LATENT_NOISE = 0.01  # standard deviation of the latent noise over the spread of the latent values
LEAST_RESIDUAL = 1.0  # for the penalty of the head: few rows that are told apart are no reason for large weights
RELAXED = 0.5  # power of the temperature that left-out rows ask for where the head is not certain enough
HIDDEN = 5  # one in so many rows of a class is hidden to see whether iterations help
FEWEST_HIDDEN = 5
MANY_ROWS, SEEN = 6_000, 4_000  # from so many rows on, this many show whether iterations help
STRAIGHT = {"softplus": 3.0, "relu": 3.0, "gelu": 3.0}  # where activations with a flat end are nearly straight lines


def class_units(n_classes: int, ordinal: bool = False) -> int:
    """Units for a number of classes: one for two, one each for more, ``MOST_UNITS`` for very many.

    Ordered classes have one for every step of the order.

    Examples
    --------
    >>> [class_units(k) for k in (2, 3, 26, 1000)], class_units(5, ordinal=True)
    ([1, 3, 26, 64], 4)
    """
    return min(n_classes - 1 if ordinal or n_classes == 2 else n_classes, MOST_UNITS)


def residual_share(n_classes: int) -> float:
    """Standard deviation of the indicator of one class among many, over that of one of two.

    A logit of K classes has residuals of the size √((1 - 1/K)/K) at most on average, and its gradients are as small; a penalty
    made for residuals of 1/2 would leave no weights for very many classes.

    Examples
    --------
    >>> [round(residual_share(k), 3) for k in (2, 10, 1000)]
    [1.0, 0.6, 0.063]
    """
    return 2.0 * float(np.sqrt(n_classes - 1)) / n_classes


def class_latents(
    rng: np.random.Generator, indicators: np.ndarray, weights: np.ndarray | None, units: int, activation: Activation
) -> np.ndarray:
    """Latent values (n, units): standardised indicators, or mixtures of them where there are more or fewer units.

    Parameters
    ----------
    rng : Generator
        Source of the mixtures.
    indicators : ndarray of shape (n, k)
        One column per class; one alone for two classes; for ordered classes, one per step: whether a row is above it.
    weights : ndarray of shape (n,), optional
        Sample weights.
    units : int
        As many as columns: one each. Fewer: random orthogonal mixtures of all columns. More: the others are random mixtures,
        where the activation bends.
    activation : Activation
        The values of a class lie where it is nearly straight.
    """
    frequency = np.average(indicators, axis=0, weights=weights)
    spread = np.sqrt(np.maximum(frequency * (1.0 - frequency), 1.0 / len(indicators) ** 2))
    values = (indicators - frequency) / spread
    k = values.shape[1]
    if units < k:
        mixtures, _ = np.linalg.qr(rng.normal(size=(k, units)))
    else:
        more = rng.normal(size=(k, units - k))
        mixtures = np.hstack([np.eye(k), more / np.linalg.norm(more, axis=0)])
    offset = np.where(np.arange(units) < k, STRAIGHT.get(activation.name, 0.0), 0.0)
    return np.asarray(values @ mixtures + offset)


def class_start(
    rng: np.random.Generator, network: Network, rows: TrainingRows, indicators: np.ndarray, activation: Activation
) -> tuple[Network, Latents]:
    """The network after its first refit, and the latent values it was fitted on.

    Parameters
    ----------
    rng : Generator
        Source of the mixtures of classes.
    network : Network
        Before its first refit: a :class:`~kstonet.layers.ridge.RidgeLayer` and a head.
    rows : TrainingRows
        The training rows.
    indicators : ndarray of shape (n, k)
        As in :func:`class_latents`.
    activation : Activation
        Activation function of the head's inputs.

    Returns
    -------
    tuple of Network and tuple of ndarray
    """
    latents = class_latents(rng, indicators, rows.weights, network.first.n_outputs, activation)
    network = network.with_layer(0, left_out=True)
    share = residual_share(network.head.n_outputs)
    alpha = network.head.alpha  # type: ignore[attr-defined]
    if _is_automatic(alpha, network, rows):
        alpha *= share
    network = network.with_layer(1, least_residual=LEAST_RESIDUAL, residual_share=share, alpha=alpha)
    fitted = _relaxed(rows.refitted(network, (latents,)), latents, rows)
    first = fitted.first
    assert isinstance(first, RidgeLayer)
    values = first.mean()
    pull = fitted.head.with_noise(1.0).score_input(values, rows.outputs)
    ratio = _size(latents - values, rows.weights) / max(_size(pull, rows.weights), 1e-6)
    noise = LATENT_NOISE * max(_spread(values, rows.weights), 1e-6)
    return Network((replace(first, ratio=max(ratio, 1e-3), latent_noise=noise), *fitted.uppers)), (latents,)


def _relaxed(network: Network, latents: np.ndarray, rows: TrainingRows) -> Network:
    """The network with a larger head where the left-out values of the first layer ask for more certain probabilities."""
    counted = slice(None) if rows.weights is None else rows.weights > 0
    logits = forward_above(network.uppers, network.first.values_above(latents, rows.weights))[-1][counted]
    weights = None if rows.weights is None else rows.weights[counted]
    factor = min(1.0, best_temperature(logits, rows.outputs[counted], weights)) ** -RELAXED
    head = network.head
    return network.with_layer(1, weights=factor * head.weights, intercept=factor * head.intercept)  # type: ignore[attr-defined]


def _is_automatic(alpha: float, network: Network, rows: TrainingRows) -> bool:
    """Whether the penalty of a head before its first refit follows from its sizes: it was not given."""
    return alpha == automatic_alpha(1.0, len(rows.X), network.head.n_inputs)


def some_of_many(rng: np.random.Generator, network: Network, rows: TrainingRows) -> tuple[Network, TrainingRows]:
    """A network before its first refit and its rows; where these are many, on some of them.

    Whether iterations help is a question of the kernel and the head. With all rows, the answer would cost as much as the
    training itself.
    """
    first, counted = network.first, np.arange(len(rows.outputs))
    if rows.weights is not None:
        counted = np.flatnonzero(rows.weights > 0)
    if len(counted) <= MANY_ROWS or any(group.gram.kernel.precomputed for group in first.groups):  # type: ignore[attr-defined]
        return network, rows
    order = rng.permutation(counted)
    _, one_of_each = np.unique(rows.outputs[order], return_index=True)
    some = np.union1d(order[:SEEN], order[one_of_each])
    weights = None if rows.weights is None else rows.weights[some]
    alpha = network.head.alpha  # type: ignore[attr-defined]
    if _is_automatic(alpha, network, rows):
        alpha = automatic_alpha(1.0, len(some), network.head.n_inputs)
    fewer = Network((first.among(rows.X, some), *network.uppers)).with_layer(1, alpha=alpha)  # type: ignore[attr-defined]
    return fewer, TrainingRows(rows.X[some], rows.inputs, rows.outputs[some], weights)


def hidden_rows(rng: np.random.Generator, outputs: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Whether a row is hidden, (n,): one in five of every class; the others know all classes.

    Examples
    --------
    >>> import numpy as np
    >>> hidden = hidden_rows(np.random.default_rng(0), np.repeat([0, 1, 2], [10, 5, 1]), None)
    >>> [int(hidden[part].sum()) for part in (slice(10), slice(10, 15), slice(15, 16))]
    [2, 1, 0]
    """
    hidden = np.zeros(len(outputs), dtype=bool)
    counted = np.ones(len(outputs), dtype=bool) if weights is None else weights > 0
    for label in np.unique(outputs):
        own = rng.permutation(np.flatnonzero((outputs == label) & counted))
        hidden[own[: len(own) // HIDDEN]] = True
    return hidden


def _size(values: np.ndarray, weights: np.ndarray | None) -> float:
    """Root mean square."""
    return float(np.sqrt(np.average((values**2).mean(axis=1), weights=weights)))


def _spread(values: np.ndarray, weights: np.ndarray | None) -> float:
    """Mean standard deviation of the columns."""
    centred = values - np.average(values, axis=0, weights=weights)
    return float(np.sqrt(np.average(centred**2, axis=0, weights=weights)).mean())
