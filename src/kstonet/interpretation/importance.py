"""Importance of the columns: how much of the prediction's variance they can cause, by derivatives.

With the gradient g of the prediction and the covariance Σ of the columns, a group G of columns has the importance

    √ E[g_Gᵀ Σ_GG g_G],      of one column: standard deviation times root mean squared derivative,

and all of them are divided by their sum. Its square is a derivative-based global sensitivity measure: for normal, independent
columns a bound of the variance that the prediction owes to the group, alone or with others (Sobol' & Kucherenko 2009,
"Derivative based global sensitivity measures and their link with global sensitivity indices"). The columns that stand for the
categories of one column of a table are a group: a step that moves all of them together is none that rows can make, and Σ_GG
leaves it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kstonet.gram.blocks import row_blocks
from kstonet.targets import NumericTargets
from kstonet.trained import TrainedNetwork


@dataclass(frozen=True)
class FeatureImportance:
    """Importances of the columns of X, non-negative numbers that sum to one.

    Parameters
    ----------
    names : tuple of str
        Names of the columns of X.
    importances : ndarray of shape (n_features,)
        Importance of every column for the prediction.
    std : ndarray of shape (n_features,)
        Standard deviation of the importances over the averaged iterates; zero for a single iterate.
    units : ndarray of shape (n_units, n_features)
        Importance of every column for each unit of the first hidden layer, in the last iterate.
    encoded_names : tuple of str
        Names of the columns that X becomes: categories and indicators of missing values have columns of their own.
    encoded_importances : ndarray of shape (n_encoded,)
        Importance of each of these columns, taken alone.
    encoded_std : ndarray of shape (n_encoded,)
        Their standard deviation over the iterates.
    n_rows : int
        Number of rows that gradients were averaged over.
    """

    names: tuple[str, ...]
    importances: np.ndarray
    std: np.ndarray
    units: np.ndarray
    encoded_names: tuple[str, ...]
    encoded_importances: np.ndarray
    encoded_std: np.ndarray
    n_rows: int


def outer_product(network: TrainedNetwork, rows: np.ndarray) -> np.ndarray:
    """The average gradient outer product E Σₖ ∇fₖ∇fₖᵀ of the outputs fₖ, shape (p, p).

    Parameters
    ----------
    network : TrainedNetwork
        The network.
    rows : ndarray of shape (n, p)
        Standardised rows.

    Returns
    -------
    ndarray of shape (p, p)
        In the units of standardised rows and targets; of a classifier, for its probabilities.
    """
    targets = network.targets
    size = targets.spread if isinstance(targets, NumericTargets) else np.ones(targets.n_outputs)
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for block in row_blocks(len(rows), 2 * len(size) * rows.shape[1]):
        gradients = network.standard_gradient(rows[block]) / size[:, None]
        total += _summed(gradients)
    return total / len(rows)


def unit_outer_products(network: TrainedNetwork, rows: np.ndarray) -> np.ndarray:
    """The same for every unit of the first hidden layer of the last iterate, shape (units, p, p)."""
    last = network.expansion.iterate(len(network.uppers) - 1)
    units = last.intercept.shape[1]
    total = np.zeros((units, rows.shape[1], rows.shape[1]))
    width = max(part.width for part in last.parts)
    for block in row_blocks(len(rows), units * (4 * width + rows.shape[1])):
        pull = np.broadcast_to(np.eye(units), (1, block.stop - block.start, units, units))
        gradients = last.pulled(rows[block], pull)
        total += np.stack([_summed(gradients[:, unit : unit + 1]) for unit in range(units)])
    return total / len(rows)


def _summed(gradients: np.ndarray) -> np.ndarray:
    flat = gradients.reshape(-1, gradients.shape[2])
    return np.asarray(flat.T @ flat)


def feature_importance(
    network: TrainedNetwork, rows: np.ndarray, owners: np.ndarray, names: Sequence[str], encoded_names: Sequence[str]
) -> FeatureImportance:
    """Importances overall, over the iterates and of the units.

    Parameters
    ----------
    network : TrainedNetwork
        The network.
    rows : ndarray of shape (n, p)
        Standardised rows.
    owners : ndarray of int, shape (p,)
        For each of their columns, the number of the column of X that it comes from.
    names, encoded_names : sequence of str
        Names of the columns of X, and of the p columns.

    Returns
    -------
    FeatureImportance
    """
    groups, alone = owners, np.arange(rows.shape[1])
    covariance = np.atleast_2d(np.cov(rows, rowvar=False, bias=True))
    overall = outer_product(network, rows)
    iterates = [outer_product(network.iterate(t), rows) for t in range(len(network.uppers))]
    units = unit_outer_products(network, rows)

    def spread(owner: np.ndarray, columns: int) -> np.ndarray:
        each = np.stack([shares(one, covariance, owner, columns) for one in iterates])
        return np.asarray(each.std(axis=0, ddof=1 if len(each) > 1 else 0))

    return FeatureImportance(
        names=tuple(names),
        importances=shares(overall, covariance, groups, len(names)),
        std=spread(groups, len(names)),
        units=np.stack([shares(one, covariance, groups, len(names)) for one in units]),
        encoded_names=tuple(encoded_names),
        encoded_importances=shares(overall, covariance, alone, len(alone)),
        encoded_std=spread(alone, len(alone)),
        n_rows=len(rows),
    )


def shares(product: np.ndarray, covariance: np.ndarray, owners: np.ndarray, columns: int) -> np.ndarray:
    """√ Σ (E ggᵀ ∘ Σ) of the columns of every owner, over the sum of them; zeros where nothing matters.

    Examples
    --------
    >>> import numpy as np
    >>> shares(np.diag([4.0, 1.0, 0.0]), np.eye(3), np.arange(3), 3).round(3)
    array([0.667, 0.333, 0.   ])
    """
    within = owners[:, None] == owners
    rows = np.where(within, product * covariance, 0.0).sum(axis=1)
    variances = np.bincount(owners, weights=rows, minlength=columns)
    sizes = np.sqrt(np.maximum(variances, 0.0))
    return np.asarray(sizes / (sizes.sum() or 1.0))
