"""Products with a kernel matrix that is never written down, on a GPU, by one kernel in Triton.

PyTorch's own operations would pass over the n² values half a dozen times, each time through the memory of the device. Here a
tile of Euclidean distances becomes kernel values and is multiplied while it is in registers, which takes a third to a fifth of
the time. Distances in the 1-norm (:mod:`kstonet.gram.torch_distances`) are work enough to hide those passes: fusing their
products was measured to gain nothing.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kstonet.gram.kernels.distance import Radial

ROWS, COLUMNS, FEATURES = 128, 32, 16  # of a tile of distances, and features that are multiplied at a time
UNITS = 64  # rows of right-hand sides at most, whose sums a program holds
ROUNDING = 4e-6  # of |x|² + |y|²: squared distances below it are errors, which the root of a rough kernel would enlarge
PARTS = 8  # of the sums over rows, added up in float64


@triton.jit  # type: ignore[untyped-decorator]
def _pass(  # type: ignore[no-untyped-def]
    Z, S, V, out, n, p, part, factor, exponent, first, second, rounding,
    root: tl.constexpr, linear: tl.constexpr,
    rows: tl.constexpr, columns: tl.constexpr, features: tl.constexpr, units: tl.constexpr,
):  # fmt: skip
    """Sums over one part of the columns for one block of rows: features Z (p, n), their squares' sums S, V (n, units)."""
    i = tl.program_id(0).to(tl.int64) * rows + tl.arange(0, rows)
    begin = tl.program_id(1).to(tl.int64) * part
    unit, f = tl.arange(0, units), tl.arange(0, features).to(tl.int64)
    total = tl.zeros((rows, units), dtype=tl.float32)
    own = tl.load(S + i, mask=i < n, other=0.0)
    for start in range(0, part, columns):
        j = begin + start + tl.arange(0, columns)
        inside = (j < n) & (j < begin + part)
        s = tl.zeros((rows, columns), dtype=tl.float32)
        for feature in range(0, p, features):
            x = tl.load(Z + (feature + f)[None, :] * n + i[:, None], mask=(i < n)[:, None], other=0.0)
            y = tl.load(Z + (feature + f)[:, None] * n + j[None, :], mask=inside[None, :], other=0.0)
            s = tl.dot(x, y, s, input_precision="tf32x3")
        squares = own[:, None] + tl.load(S + j, mask=inside, other=0.0)[None, :]
        s = squares - 2.0 * s
        r = tl.where((s <= rounding * squares) | (i[:, None] == j[None, :]), 0.0, factor * s)
        if root:
            r = tl.sqrt(r)
        elif not linear:
            r = tl.where(r > 0.0, tl.exp2(exponent * tl.log2(tl.maximum(r, 1e-37))), 0.0)
        k = (1.0 + r * (first + r * second)) * tl.exp(-r)
        v = tl.load(V + j[:, None] * units + unit[None, :], mask=inside[:, None], other=0.0)
        total = tl.dot(k, v, total, input_precision="tf32x3")
    place = (tl.program_id(1).to(tl.int64) * n + i)[:, None] * units + unit[None, :]
    tl.store(out + place, total, mask=(i < n)[:, None])


class FusedProduct:
    """K applied to rows, for a kernel k = (1 + first·r + second·r²)·exp(-r), r = (factor·s)^exponent, of distances s.

    Parameters
    ----------
    Z : tensor of shape (n, p)
        Features as the kernel sees them: scaled and projected.
    radial : Radial
        The kernel.
    """

    def __init__(self, Z: torch.Tensor, radial: Radial) -> None:
        self.n, self._radial = len(Z), radial
        features = torch.zeros((-(-Z.shape[1] // FEATURES) * FEATURES, self.n), dtype=torch.float32, device=Z.device)
        features[: Z.shape[1]] = (Z - Z.mean(0)).T  # the expansion of squares cancels badly far from the origin
        self._squares = (features.double() ** 2).sum(0).float()
        self._features = features

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return int(self._features.nbytes + self._squares.nbytes)

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """K applied to every row, in float64."""
        image = torch.empty_like(rows)
        for start in range(0, len(rows), UNITS):
            image[start : start + UNITS] = self._some(rows[start : start + UNITS])
        return image

    def _some(self, rows: torch.Tensor) -> torch.Tensor:
        units = max(16, triton.next_power_of_2(len(rows)))  # the least that a product of tiles takes
        V = torch.zeros((self.n, units), dtype=torch.float32, device=rows.device)
        V[:, : len(rows)] = rows.T
        part = triton.cdiv(triton.cdiv(self.n, PARTS), COLUMNS) * COLUMNS
        sums = torch.empty((PARTS, self.n, units), dtype=torch.float32, device=rows.device)
        shape = self._radial
        _pass[triton.cdiv(self.n, ROWS), PARTS](
            self._features, self._squares, V, sums, self.n, len(self._features), part,
            shape.factor, shape.exponent, shape.first, shape.second, ROUNDING,
            root=shape.exponent == 0.5, linear=shape.exponent == 1.0,
            rows=ROWS, columns=COLUMNS, features=FEATURES, units=units,
        )  # fmt: skip
        return sums[:, :, : len(rows)].double().sum(0).T
