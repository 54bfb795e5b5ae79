"""The softmax likelihood: log-probabilities of the classes, and the loss of a linear model of the logits with its derivatives.

K classes have K logits; two classes share one, that of class 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from kstonet.solvers.penalties import Floats


def log_proba(logits: ArrayLike) -> Floats:
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
    z = np.asarray(logits, dtype=np.float64)
    if z.ndim != 2 or z.shape[1] == 0:
        raise ValueError(f"logits has shape {z.shape}; it must be (n, K), or (n, 1) for two classes.")
    if z.shape[1] == 1:
        return -np.logaddexp(0.0, np.hstack([z, -z]))
    z = z - z.max(1, keepdims=True)
    return np.asarray(z - np.log(np.exp(z).sum(1, keepdims=True)))


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

    def __init__(self, design: Floats, labels: NDArray[np.intp], n_logits: int, weights: Floats) -> None:
        self.design, self.labels, self.n_logits, self.weights = design, labels, n_logits, weights
        self.rows = np.arange(len(labels))
        # Curvature of the likelihood in the logits never exceeds this (Böhning 1992; 1/4 is the binary case).
        self.bound = 0.25 if n_logits == 1 else 0.5

    def evaluate(self, theta: Floats) -> tuple[float, Floats]:
        """The loss, and the probabilities (r, n) that its derivatives need."""
        logits = theta.T @ self.design.T
        if self.n_logits == 1:
            losses = np.logaddexp(0.0, logits[0]) - self.labels * logits[0]
            return float(self.weights @ losses), expit(logits)
        logits -= logits.max(0)
        of_label = logits[self.labels, self.rows]
        np.exp(logits, out=logits)
        total = logits.sum(0)
        logits /= total
        return float(self.weights @ (np.log(total) - of_label)), logits

    def gradient(self, proba: Floats) -> Floats:
        """Derivative by the parameters, shape (p, r)."""
        error = proba * self.weights
        if self.n_logits == 1:
            error -= self.weights * self.labels
        else:
            error[self.labels, self.rows] -= self.weights
        return np.asarray((error @ self.design).T)

    def hessian_product(self, proba: Floats, direction: Floats) -> Floats:
        """Second derivative times a direction of shape (p, r)."""
        change = direction.T @ self.design.T
        if self.n_logits == 1:
            change *= proba * (1.0 - proba)
        else:
            change -= np.einsum("ij,ij->j", proba, change)
            change *= proba
        change *= self.weights
        return np.asarray((change @ self.design).T)
