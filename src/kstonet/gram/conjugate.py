"""Systems whose matrix is known by its products alone: preconditioned conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kstonet._arrays import Array, namespace, widened

LEFT = 1e-3  # of a right-hand side, after conjugate gradients
MOST_STEPS = 100
SMALLEST = 1e-300


class Solved(NamedTuple):
    """Solutions, and whether they are good enough."""

    rows: Array
    enough: bool


def conjugate_gradients(
    right: Array,
    product: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    enough: Callable[[Array], bool] | None = None,
    most: int = MOST_STEPS,
) -> Solved:
    """A⁻¹ applied to every row, for all rows at once.

    Parameters
    ----------
    right : array of shape (m, n)
        Right-hand sides.
    product, precondition : callable
        Apply the symmetric, positive definite A and nearly its inverse to every row of an array.
    enough : callable, optional
        Whether what solutions leave over is little enough; by default where the worst leaves 0.001 of itself over.
    most : int
        Largest number of steps.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> solved = conjugate_gradients(np.array([[3.0, 4.0]]), lambda rows: rows @ A, lambda rows: rows / np.diag(A))
    >>> solved.rows.round(6)
    array([[1., 1.]])
    """
    xp, left = namespace(right), right
    solved, direction, before = left * 0.0, left * 0.0, left[:, 0] * 0.0 + 1.0
    size = (left**2).sum(1)

    def reached() -> bool:
        return bool(((left**2).sum(1) <= LEFT**2 * size).all()) if enough is None else enough(left)

    for _ in range(most):
        if reached():
            return Solved(solved, True)
        preconditioned = widened(precondition(left))
        now = (left * preconditioned).sum(1)
        direction = preconditioned + (now / before)[:, None] * direction
        image = product(direction)
        step = (now / xp.clip((direction * image).sum(1), SMALLEST, None))[:, None]  # zero for what is solved already
        solved, left = solved + step * direction, left - step * image
        before = xp.clip(now, SMALLEST, None)
    return Solved(solved, reached())
