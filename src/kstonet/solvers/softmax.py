"""The softmax likelihood: log-probabilities of the classes, and the loss of a linear model of the logits with its derivatives.

K classes have K logits; two classes share one, that of class 1. Arrays with a value for every row are NumPy arrays, or tensors
on a device; parameters are always NumPy's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kstonet._arrays import Array, beside, dots, floats, namespace, row_indices, special, to_numpy
from kstonet.solvers.penalties import Floats


def log_proba(logits: ArrayLike | Array) -> Array:
    """Log-probabilities of the classes.

    Parameters
    ----------
    logits : array of shape (n, K), or (n, 1)
        Logits of the classes. One column means two classes and holds the logit of class 1.

    Returns
    -------
    array of shape (n, K), or (n, 2)

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.solvers.softmax import log_proba
    >>> np.exp(log_proba([[0.0], [1000.0]]))
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    z = floats(logits)
    xp = namespace(z)
    if z.ndim != 2 or z.shape[1] == 0:
        raise ValueError(f"logits has shape {tuple(z.shape)}; it must be (n, K), or (n, 1) for two classes.")
    if z.shape[1] == 1:
        return -xp.logaddexp(beside(z, np.zeros(())), xp.hstack([z, -z]))
    z = z - xp.amax(z, 1, keepdims=True)
    return z - xp.log(xp.exp(z).sum(1, keepdims=True))


class SoftmaxLoss:
    """Weighted mean negative log-likelihood as a function of parameters (p, r), one column per logit.

    Parameters
    ----------
    design : array of shape (n, p)
        Design matrix, including the column of the intercept.
    labels : int array of shape (n,)
        Class of every row, from 0.
    n_logits : int
        Number of classes, or 1 for two classes.
    weights : array of shape (n,)
        Weights of the rows, which sum to one.
    """

    def __init__(self, design: Array, labels: NDArray[np.intp], n_logits: int, weights: Floats) -> None:
        self.design, self.n_logits = design, n_logits
        self.labels, self.weights = beside(design, labels), beside(design, weights)
        self.rows = row_indices(design)
        # Curvature of the likelihood in the logits never exceeds this (Böhning 1992; 1/4 is the binary case).
        self.bound = 0.25 if n_logits == 1 else 0.5

    def evaluate(self, theta: Floats) -> tuple[float, Array]:
        """The loss, and the probabilities (r, n) that its derivatives need."""
        xp = namespace(self.design)
        logits = beside(self.design, theta).T @ self.design.T
        if self.n_logits == 1:
            losses = xp.logaddexp(beside(logits, np.zeros(())), logits[0]) - self.labels * logits[0]
            return float(self.weights @ losses), special(logits).expit(logits)
        logits -= xp.amax(logits, 0)
        of_label = logits[self.labels, self.rows]
        xp.exp(logits, out=logits)
        total = logits.sum(0)
        logits /= total
        return float(self.weights @ (xp.log(total) - of_label)), logits

    def spread(self, proba: Array) -> Floats:
        """Curvature p(1 - p) of every logit, averaged over the rows, shape (r,)."""
        return to_numpy((proba * (1.0 - proba)) @ self.weights)

    def gradient(self, proba: Array) -> Floats:
        """Derivative by the parameters, shape (p, r)."""
        error = proba * self.weights
        if self.n_logits == 1:
            error -= self.weights * self.labels
        else:
            error[self.labels, self.rows] -= self.weights
        return to_numpy((error @ self.design).T)

    def hessian_product(self, proba: Array, direction: Floats) -> Floats:
        """Second derivative times a direction of shape (p, r)."""
        change = beside(self.design, direction).T @ self.design.T
        if self.n_logits == 1:
            change *= proba * (1.0 - proba)
        else:
            change -= dots(proba, change, axis=0)
            change *= proba
        change *= self.weights
        return to_numpy((change @ self.design).T)
