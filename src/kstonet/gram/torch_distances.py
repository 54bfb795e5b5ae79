"""Distances in the 1-norm on a GPU, by one kernel in Triton, which PyTorch brings along on Linux.

PyTorch's own operations would pass over all pairs of rows once for every feature. Euclidean distances need nothing of the kind:
they are a matrix product, and fusing it with what follows was measured to save a fifth of its time at most.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK = 64  # rows on each side of a tile, which stays in registers while the features are summed


@triton.jit  # type: ignore[untyped-decorator]
def _tile(X, Y, D, n, q, p, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """One tile of D (n, q) from the features of X (p, n) and Y (p, q)."""
    i = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    j = tl.program_id(1).to(tl.int64) * block + tl.arange(0, block)
    total = tl.zeros((block, block), dtype=D.dtype.element_ty)
    for feature in range(p):
        x = tl.load(X + feature * n + i, mask=i < n, other=0.0)
        y = tl.load(Y + feature * q + j, mask=j < q, other=0.0)
        total += tl.abs(x[:, None] - y[None, :])
    tl.store(D + i[:, None] * q + j[None, :], total, mask=(i < n)[:, None] & (j < q)[None, :])


def absolute_distances(X: torch.Tensor, Y: torch.Tensor) -> torch.Tensor:
    """Distances in the 1-norm of all pairs of rows."""
    (n, p), q = X.shape, len(Y)
    D = torch.empty((n, q), dtype=X.dtype, device=X.device)
    if n and q:
        _tile[triton.cdiv(n, BLOCK), triton.cdiv(q, BLOCK)](X.T.contiguous(), Y.T.contiguous(), D, n, q, p, block=BLOCK)
    return D
