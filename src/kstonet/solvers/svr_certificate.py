"""How far support vector regressions on an approximate Gram are from those with the kernel itself.

Let P_K and D_K be the primal and the dual objective with the kernel matrix K, K̂ the matrix that was solved with, and (x, β) its
primal-dual pair. One product with K, streamed over blocks of rows, gives two bounds of D_K* - D_K(β):

- P_K(x) - D_K(β), by weak duality, whatever K̂ is;
- ½ βᵀ(K - K̂)β + P_K̂(x) - D_K̂(β) where K - K̂ is positive semi-definite, as without leaves: then D_K* is at most D_K̂*.
"""

from __future__ import annotations

import numpy as np

from kstonet._arrays import to_numpy
from kstonet.gram import StructuredGram
from kstonet.solvers.svr_solution import SVRSolution


def kernel_gap(gram: StructuredGram, solution: SVRSolution) -> np.ndarray:
    """The smaller of the bounds for every target, relative to the primal value with the kernel itself.

    Parameters
    ----------
    gram : StructuredGram
        The Gram that the targets were solved on.
    solution : SVRSolution
        In NumPy.

    Returns
    -------
    ndarray of shape (m,)

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.gram import LowRank, make_gram, make_kernel
    >>> from kstonet.solvers.svr import solve_svr
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> kernel = make_kernel("rbf", X, gamma=1.0)
    >>> coarse, fine = (make_gram(X, kernel, solver=LowRank(rank, leaf_rows=0)) for rank in (5, 20))
    >>> gaps = [kernel_gap(gram, solve_svr(gram, np.sin(2 * X).T, 10.0, 0.1))[0] for gram in (coarse, fine)]
    >>> bool(gaps[1] < 2e-3 < gaps[0])
    True
    """
    problem = solution.problem
    feasible = np.asarray(problem.balance(solution.dual_state))
    both, m = np.concatenate([solution.coef, feasible]), len(feasible)
    exact = gram.exact_product(both)
    primal, _ = problem.primal(solution.coef, exact[:m])
    bound = primal - problem.dual(feasible, exact[m:])
    if gram.below:
        held = to_numpy(gram.product(gram.array(both)))
        left_out = 0.5 * (feasible * (exact[m:] - held[m:])).sum(axis=1)
        gap = problem.primal(solution.coef, held[:m])[0] - problem.dual(feasible, held[m:])
        bound = np.minimum(bound, left_out + gap)
    return np.asarray(np.maximum(bound, 0.0) / np.maximum(primal, 1e-300))
