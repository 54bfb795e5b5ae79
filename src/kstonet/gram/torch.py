"""The same Gram on PyTorch tensors, on whatever device they live."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch

from kstonet._arrays import Array, astype, machine_epsilon, zeros
from kstonet.gram.base import EVERY_ROW
from kstonet.gram.blocks import row_blocks
from kstonet.gram.cholesky import BlockedCholesky, NotPositiveDefiniteError
from kstonet.gram.dense import PRECISE, DenseGram
from kstonet.gram.expansion import Expansion
from kstonet.gram.factored import CorrectedSolver, FactoredSolver
from kstonet.gram.footprint import DEVICE_BLOCK, DEVICE_BLOCK_BYTES, factor_bytes
from kstonet.gram.inverted import INVALID
from kstonet.gram.kernels import Kernel
from kstonet.gram.memory import available_memory

_LOADING = threading.Lock()
BLOCKS_IN_MEMORY = 16  # so many times the block must fit: distances, kernel values and their products lie side by side


def _in_turn(work: Callable[[Any], Any], items: Iterable[Any], most: int | None = None) -> list[Any]:
    """``work`` of every item, one after the other: a device shares out its own work."""
    return [work(item) for item in items]


class _TorchCholesky(BlockedCholesky):
    """A Cholesky factor in the memory of its matrix, made by torch; torch's own solve would copy the factor first."""

    @staticmethod
    def _factored(A: torch.Tensor) -> tuple[torch.Tensor, int]:
        factor, info = A.T, torch.empty((), dtype=torch.int32, device=A.device)  # in the order of LAPACK nothing is copied
        torch.linalg.cholesky_ex(factor, out=(factor, info))
        return factor, int(info)

    @staticmethod
    def _inverse(corner: torch.Tensor) -> torch.Tensor:
        unit = torch.eye(len(corner), dtype=corner.dtype, device=corner.device)
        return torch.linalg.solve_triangular(corner, unit, upper=False)

    _each = staticmethod(_in_turn)

    @staticmethod
    def _shares(begin: int, end: int) -> Sequence[slice]:
        return [slice(begin, end)]


def usable(device: str) -> torch.device:
    """The device of this name, after a first computation on it; a ValueError says why there is none."""
    try:
        with _LOADING:  # the first factorisation loads libraries, which torch cannot do in two threads at once
            _TorchCholesky(torch.eye(2, device=device)).solve(torch.ones(1, 2, device=device))
    except (RuntimeError, AssertionError) as error:  # torch without CUDA raises the latter
        why = str(error).partition("\n")[0]  # CUDA adds lines of advice for programmers
        raise ValueError(f"device={device!r} is not usable here ({why}); use None for the CPU without torch.") from error
    return torch.device(device)


def free_memory(device: torch.device) -> int:
    """Bytes free on a device, those that PyTorch keeps for its next arrays included."""
    if device.type != "cuda":
        return available_memory()
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0] + kept)


def placing(device: str) -> Callable[[np.ndarray], torch.Tensor]:
    """What puts NumPy arrays on a device."""
    there = usable(device)
    return lambda values: torch.as_tensor(values, device=there)


def block_bytes(device: str) -> int:
    """Bytes of kernel values that are computed at once: a small part of the memory."""
    return min(DEVICE_BLOCK_BYTES, free_memory(usable(device)) // BLOCKS_IN_MEMORY)


def expansion_on(expansion: Expansion, device: str) -> Expansion:
    """An expansion with its arrays on a device, and blocks of kernel values that use a small part of its memory."""
    return expansion.placed(placing(device), block_bytes(device))


def torch_gram(
    X: np.ndarray, kernel: Kernel, device: str, max_memory: float | None = None, dtype: str = "float64"
) -> TorchGram:
    """A Gram of NumPy rows on a device that torch knows by name ("cpu", "cuda", "cuda:1")."""
    return TorchGram(placing(device)(X), kernel, dtype=dtype, max_memory=max_memory)


class TorchGram(DenseGram):
    """A :class:`DenseGram` whose rows are a PyTorch tensor: the solver then runs on that tensor's device.

    Where matrix and factor do not fit into its memory together, the factor alone is held, and kernel values are computed anew
    for every product.

    Examples
    --------
    >>> import torch
    >>> from kstonet.gram import make_kernel
    >>> from kstonet.gram.torch import TorchGram
    >>> X = torch.linspace(0, 1, 4, dtype=torch.float64)[:, None]
    >>> gram = TorchGram(X, make_kernel("rbf", X, gamma=1.0))
    >>> [round(float(v), 3) for v in gram.product(torch.ones(1, 4, dtype=torch.float64))[0]]
    [2.904, 3.431, 3.431, 2.904]
    """

    largest_inverse = 0  # factors are cheap there, and NumPy's inverses are not at hand

    block = DEVICE_BLOCK

    def _least_bytes(self, dtype: str) -> int:
        whole = super()._least_bytes(dtype)
        return min(factor_bytes(self.n), whole) if self._forgets else whole

    @property
    def _forgets(self) -> bool:
        """Whether kernel values may be computed anew for every product, instead of being held."""
        return self._mixed and self.kernel.positive_semidefinite  # others come from outside, and are checked

    def _build(self) -> Array | None:
        """The matrix, or None where the device holds no more than a factor of it."""
        whole = self.bytes_needed(self.n) <= self._limit
        return super()._build() if whole or not self._forgets else None

    def _work_copy(self, precision: Any, shift: float | np.ndarray, chosen: np.ndarray | None = None) -> Array:
        """As for arrays of NumPy; where the values leave no room for it they are given up, and computed anew from then on."""
        size = self.n if chosen is None else len(chosen)
        if self._forgets and self._matrix is not None and self._matrix.nbytes + precision.itemsize * size**2 > self._limit:
            self._matrix = None
        return super()._work_copy(precision, shift, chosen)

    def _factored(self, ridges: np.ndarray, chosen: np.ndarray) -> FactoredSolver:
        """As for arrays of NumPy; a factor in float32 has to do where there is no room for float64.

        Rounding makes the matrix of a wide kernel indefinite. A factor with a jitter is then corrected by conjugate gradients.
        """
        if not self._forgets or 8 * len(chosen) ** 2 <= self._limit:
            return super()._factored(ridges, chosen)
        rounding = machine_epsilon(torch.float32) * self._norm_bound
        for jitter in (0.0, *(rounding * 4.0**power for power in range(5))):
            with contextlib.suppress(NotPositiveDefiniteError):
                factor = self._cholesky(self._work_copy(torch.float32, ridges[chosen] + jitter, chosen))
                if jitter == 0.0 and self._left_by(factor, ridges, chosen) < PRECISE:
                    return FactoredSolver(ridges, chosen, factor, self.array)
                return CorrectedSolver(ridges, chosen, factor, self.array, self.product, jitter)
        raise NotPositiveDefiniteError(INVALID)

    def _values(self, rows: Any, columns: Any = EVERY_ROW) -> Array:
        if self._matrix is not None:
            return super()._values(rows, columns)
        return astype(self.kernel(self._X[rows], self._X[columns]), self.dtype)

    def product(self, rows: Array) -> Array:
        """K applied to every row, at once where precisions agree and the values are held."""
        if self._matrix is not None:
            return rows @ self._matrix if rows.dtype == self.dtype else super().product(rows)
        image = zeros(rows, tuple(rows.shape))
        for block in row_blocks(self.n, self.n, most=self.block, block_bytes=DEVICE_BLOCK_BYTES):
            image[:, block] = rows @ astype(self._values(block), rows.dtype).T
        return image

    def diagonal(self) -> Array:
        """k(x, x) for every training row."""
        return super().diagonal() if self._matrix is not None else astype(self.kernel.diagonal(self._X), self.dtype)

    @staticmethod
    def _each(work: Callable[[slice], None], blocks: Iterable[slice]) -> None:
        _in_turn(work, blocks)

    def _cholesky(self, work: Array) -> Any:
        return _TorchCholesky(work)

    @staticmethod
    def _available_memory(X: Array) -> int:
        return free_memory(X.device)
