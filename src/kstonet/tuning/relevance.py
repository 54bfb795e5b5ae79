"""Length scales per feature, by the evidence of a Gaussian process.

A unit of the first layer is a function of the reproducing space of its kernel; the Gaussian process with that kernel is the
Bayesian model of such functions, and the evidence (marginal likelihood) of the targets is smooth in the length scales. It is
climbed by L-BFGS with exact derivatives. A feature that does not matter gets a long scale.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize

from kstonet.gram import kernel_names, make_kernel
from kstonet.gram.kernels import Stationary

MOST_ROWS = 1000  # an evaluation costs rows³; with 400 the scales of eight features differ much from draw to draw
MOST_DIFFERENCES = 2**25  # pairs of rows · features, a quarter of a gigabyte: with many features fewer rows
MAX_ITER = 60
PRIOR = 0.5  # inverse standard deviation of log scales around their common start: holds scales that the data do not know
BOUNDS = ((-4.0, 5.0), (-3.0, 6.0), (-12.0, 1.0))  # log scale over its start, log amplitude, log noise


def reference_kernel(kernel: str) -> Stationary | None:
    """The kernel of a name with the gamma that makes a length scale of one its standard form; None where there is no such form.

    The evidence needs a sum over the features and its derivative, which :class:`~kstonet.gram.kernels.Stationary` kernels have.
    """
    made = make_kernel(kernel, np.empty((0, 1)), gamma=1.0)
    return replace(made, gamma=1.0 / made.gamma_power) if isinstance(made, Stationary) else None


def evidence_kernels() -> tuple[str, ...]:
    """Names of the kernels whose length scales can be learned.

    Examples
    --------
    >>> "rbf" in evidence_kernels(), "poly" in evidence_kernels()
    (True, False)
    """
    return tuple(name for name in kernel_names() if reference_kernel(name) is not None)


@dataclass(frozen=True)
class Pairs:
    """The pairs i > j of some rows, and how far apart they are in every feature.

    Parameters
    ----------
    i, j : ndarray of int, shape (pairs,)
    differences : ndarray of shape (p, pairs)
        Absolute, to the power that the kernel sums.
    """

    i: np.ndarray
    j: np.ndarray
    differences: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, power: int) -> Pairs:
        """Make the pairs of the rows of X."""
        i, j = np.tril_indices(len(X), -1)
        differences = np.abs(X.T[:, i] - X.T[:, j])
        if power == 2:
            differences *= differences
        return cls(i, j, differences)


def negative_evidence(
    parameters: np.ndarray, pairs: Pairs, Y: np.ndarray, kernel: Stationary, start: float
) -> tuple[float, np.ndarray]:
    """Minus the log evidence of all columns of ``Y`` (with the prior), and its gradient.

    Parameters
    ----------
    parameters : ndarray of shape (p + 2,)
        Logarithms of the length scales, of the amplitude and of the noise variance.
    pairs : Pairs
    Y : ndarray of shape (n, k)
    kernel : Stationary
        From :func:`reference_kernel`.
    start : float
        Log length scale the prior is centred at.
    """
    p, (n, k) = len(pairs.differences), Y.shape
    weights = np.exp(-kernel.power * parameters[:p])
    amplitude, noise = np.exp(parameters[p:])
    below, slope = kernel.slopes(weights @ pairs.differences)  # k(x, x) = 1
    covariance = np.diag(np.full(n, amplitude + noise))
    covariance[pairs.i, pairs.j] = amplitude * below
    factor = cho_factor(covariance, lower=True, overwrite_a=True)  # of the lower half alone
    solved, inverse = cho_solve(factor, Y), dpotri(factor[0], lower=1)[0]
    away = parameters[:p] - start
    value = 0.5 * (Y * solved).sum() + k * np.log(np.diagonal(factor[0])).sum() + 0.5 * PRIOR**2 * (away @ away)
    # d log evidence / dθ = ½ tr(outer · dA/dθ) with outer = solved·solvedᵀ - k·A⁻¹; the pairs below the diagonal count twice
    outer = np.einsum("ik,ik->i", solved[pairs.i], solved[pairs.j]) - k * inverse[pairs.i, pairs.j]
    trace = (solved * solved).sum() - k * np.trace(inverse)
    gradient = np.empty(p + 2)
    gradient[:p] = kernel.power * amplitude * weights * (pairs.differences @ (outer * slope)) + PRIOR**2 * away
    gradient[p] = -amplitude * (outer @ below + 0.5 * trace)
    gradient[p + 1] = -0.5 * noise * trace
    return float(value), gradient


def evidence_length_scales(X: np.ndarray, Y: np.ndarray, kernel: str, gamma: float = 1.0, seed: int = 0) -> np.ndarray:
    """Length scale of every feature, such that ``gamma`` gives the kernel of largest evidence.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Standardised features.
    Y : ndarray of shape (n, k)
        Standardised targets.
    kernel : str
        One of :func:`evidence_kernels`.
    gamma : float, default=1.0
        What the kernel will be given beside the scales.
    seed : int
        Seed of the choice of rows, where there are many.

    Returns
    -------
    ndarray of shape (p,)

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> scales = evidence_length_scales(X, np.sin(2 * X[:, :1]), "rbf")  # the second feature does nothing
    >>> bool(scales[1] > 5 * scales[0])
    True
    """
    reference = reference_kernel(kernel)
    if reference is None:
        raise ValueError(f"kernel={kernel!r} has no length scales to learn; use one of {', '.join(evidence_kernels())}.")
    p = X.shape[1]
    rows = np.random.default_rng(seed).permutation(len(X))[: min(MOST_ROWS, int(np.sqrt(2 * MOST_DIFFERENCES / p)))]
    start = np.log(p) / reference.power  # the sum of p features is then of order one: gamma = 1/(2p) of the RBF kernel
    scale_bounds, *others = BOUNDS
    found = minimize(
        negative_evidence,
        np.concatenate([np.full(p, start), [0.0, np.log(0.1)]]),
        args=(Pairs.of(X[rows], reference.power), Y[rows], reference, start),
        jac=True,
        method="L-BFGS-B",
        bounds=[(start + scale_bounds[0], start + scale_bounds[1])] * p + others,
        options={"maxiter": MAX_ITER},
    )
    ratio = gamma / reference.gamma
    return np.asarray(np.exp(found.x[:p]) * (ratio if reference.gamma_power == 1 else np.sqrt(ratio)))
