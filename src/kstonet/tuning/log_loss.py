"""The log loss of left-out rows: what kernels are judged by where the targets are classes.

Kernel ridge regressions on indicators estimate probabilities, and say of every row what they would say without it. Squared
errors of these values do not do kernels justice: a kernel that makes many small errors smaller and few large ones larger wins
by them and loses by every measure that counts for a classifier. So the values become logits, a·p (and for two classes a·p + b,
whose threshold need not be at one half), with the numbers that suit the left-out rows best, and their log loss is the judge.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kstonet.solvers.softmax import log_proba
from kstonet.targets import ClassTargets

SLOPE = 5.0  # of logits in probabilities: where the prior is centred
PRIOR = 0.01  # its weight: it decides where classes are told apart without an error, whose best slope is infinite
STEEPEST, FLATTEST = 1e3, 1e-2
MOST_STEPS, MOST_HALVINGS = 30, 12
ENOUGH = 1e-3  # relative change of the slope


@dataclass(frozen=True)
class LeftOutLogLoss:
    """Log loss of left-out values of standardised indicators, over that of the frequencies of the classes.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        The classes.
    level : ndarray of shape (k,)
        Means of the indicators, or of that of the second of two classes.
    unit : float
        What the indicators were divided by.
    entropy : float
        Log loss of the frequencies.
    """

    codes: np.ndarray
    level: np.ndarray
    unit: float
    entropy: float

    @classmethod
    def of(
        cls, targets: ClassTargets, codes: np.ndarray, columns: np.ndarray, weights: np.ndarray | None
    ) -> LeftOutLogLoss | None:
        """For the columns of :meth:`~kstonet.targets.ClassTargets.judged`; None where these are not one per class.

        Examples
        --------
        >>> import numpy as np
        >>> codes = np.arange(40) % 3
        >>> targets = ClassTargets(np.arange(3))
        >>> columns = targets.judged(codes, None)
        >>> loss = LeftOutLogLoss.of(targets, codes, columns, None)
        >>> bool(loss(columns) < 0.1), round(loss(0 * columns), 2)
        (True, 1.0)
        """
        contrasts = targets.contrasts(codes)
        if targets.ordinal or contrasts.shape != columns.shape:
            return None
        level = np.average(contrasts, axis=0, weights=weights)
        centred = contrasts - level
        unit = float(np.sqrt(np.average((centred**2).mean(axis=1), weights=weights)))
        frequency = np.bincount(codes, weights=weights, minlength=targets.n_outputs)
        frequency = frequency[frequency > 0] / frequency.sum()
        return cls(codes, level, unit, float(-frequency @ np.log(frequency)))

    def take(self, rows: np.ndarray) -> LeftOutLogLoss:
        """For some of the rows."""
        return replace(self, codes=self.codes[rows])

    def __call__(self, values: np.ndarray, weights: np.ndarray | None = None) -> float:
        """The loss of left-out values (n, k)."""
        return self._fitted(values, weights)[0]

    def of_rows(self, values: np.ndarray, weights: np.ndarray | None = None) -> tuple[float, np.ndarray]:
        """The loss, and that of every row (n,)."""
        loss, _, own, _, _ = self._fitted(values, weights)
        return loss, own / self.entropy

    def with_slope(self, values: np.ndarray, weights: np.ndarray | None = None) -> tuple[float, np.ndarray]:
        """The loss, and its derivative with respect to the values (n, k)."""
        loss, slope, _, towards, share = self._fitted(values, weights)
        return loss, towards * (share * slope * self.unit / self.entropy)[:, None]

    def _fitted(
        self, values: np.ndarray, weights: np.ndarray | None
    ) -> tuple[float, float, np.ndarray, np.ndarray, np.ndarray]:
        """The loss, the slope of the logits, the rows' losses, their derivatives in the logits, and the rows' shares."""
        n = len(self.codes)
        share = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
        p = values.astype(np.float64) * self.unit + self.level
        best = _two_classes if p.shape[1] == 1 else _more_classes
        slope, log_p = best(p, self.codes, share)
        own = -log_p[np.arange(n), self.codes]
        towards = np.exp(log_p[:, -p.shape[1] :])
        towards -= np.eye(log_p.shape[1])[self.codes][:, -p.shape[1] :]
        loss = float(share @ own) + _prior(slope, n)[0]
        return float(loss / self.entropy), slope, own, towards, share


def _prior(slope: float, n: int) -> tuple[float, float, float]:
    """Value, derivative and curvature in the slope; worth the same against any number of rows."""
    return 0.5 * PRIOR * (slope - SLOPE) ** 2 / n, PRIOR * (slope - SLOPE) / n, PRIOR / n


def _more_classes(p: np.ndarray, codes: np.ndarray, share: np.ndarray) -> tuple[float, np.ndarray]:
    """The slope a that makes the logits a·p most likely, and log-probabilities with it."""
    n, rows = len(p), np.arange(len(p))
    own, slope = p[rows, codes], SLOPE
    for _ in range(MOST_STEPS):  # Newton's steps on a convex function
        proba = np.exp(log_proba(slope * p))
        mean = (proba * p).sum(axis=1)
        _, pull, curvature = _prior(slope, n)
        pull += float(share @ (mean - own))
        curvature += float(share @ ((proba * p**2).sum(axis=1) - mean**2))
        step = float(np.clip(slope - pull / curvature, max(slope / 3.0, FLATTEST), min(3.0 * slope, STEEPEST)))
        done, slope = abs(step - slope) <= ENOUGH * slope, step
        if done:
            break
    return slope, log_proba(slope * p)


def _two_classes(p: np.ndarray, codes: np.ndarray, share: np.ndarray) -> tuple[float, np.ndarray]:
    """The same for the logit a·p + b of the second class."""
    n, second = len(p), codes == 1
    design = np.column_stack([p[:, 0], np.ones(n)])

    def at(theta: np.ndarray) -> tuple[float, np.ndarray]:
        log_p = log_proba((design @ theta)[:, None])
        return float(-share @ np.where(second, log_p[:, 1], log_p[:, 0])) + _prior(theta[0], n)[0], np.exp(log_p[:, 1])

    theta = np.array([SLOPE, -SLOPE * float(share @ p[:, 0])])
    value, proba = at(theta)
    for _ in range(MOST_STEPS):
        _, pull, curvature = _prior(theta[0], n)
        gradient = design.T @ (share * (proba - second)) + np.array([pull, 0.0])
        hessian = design.T @ ((share * proba * (1.0 - proba) + 1e-12)[:, None] * design) + np.diag([curvature, 0.0])
        step = np.linalg.solve(hessian, gradient)
        for _ in range(MOST_HALVINGS):
            tried, tried_proba = at(theta - step)
            if tried <= value:
                break
            step = 0.5 * step
        else:
            break
        theta, proba, gained, value = theta - step, tried_proba, value - tried, tried
        if gained <= 1e-9 * value:
            break
    return float(theta[0]), log_proba((design @ theta)[:, None])
