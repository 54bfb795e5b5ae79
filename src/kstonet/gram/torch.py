"""The same Gram on PyTorch tensors, on whatever device they live."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from copy import copy
from typing import Any

import numpy as np
import torch

from kstonet._arrays import Array, astype
from kstonet.gram.cholesky import COLUMNS, NotPositiveDefiniteError
from kstonet.gram.dense import DenseGram
from kstonet.gram.expansion import Expansion
from kstonet.gram.kernels import Kernel
from kstonet.gram.memory import available_memory

_LOADING = threading.Lock()
DEVICE_BLOCK_BYTES = 2**30  # of kernel values that a prediction computes at once: fewer, larger products suit a device
BLOCKS_IN_MEMORY = 16  # so many times the block must fit: distances, kernel values and their products lie side by side


class _TorchCholesky:
    """torch's Cholesky factor, with solves for stacked rows."""

    def __init__(self, A: torch.Tensor) -> None:
        factor, info = torch.linalg.cholesky_ex(A)
        if int(info) != 0:
            raise NotPositiveDefiniteError(f"pivot {int(info)} of {A.shape[0]} is not positive")
        self.factor = factor

    def leading(self, size: int) -> _TorchCholesky:
        part = copy(self)
        part.factor = self.factor[:size, :size]
        return part

    @property
    def nbytes(self) -> int:
        return int(self.factor.nbytes)

    def solve(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.cholesky_solve(astype(rows, self.factor.dtype).T, self.factor).T

    def inverse_diagonal(self, last: int) -> torch.Tensor:
        """Column sums of squares of L⁻¹, a block of columns at a time: they are zero above their own rows."""
        factor = self.factor[len(self.factor) - last :, len(self.factor) - last :]
        diagonal = torch.zeros_like(factor[0])
        for begin in range(0, len(factor), COLUMNS):
            own = diagonal[begin : begin + COLUMNS]
            below = factor[begin:, begin:]
            unit = torch.zeros((len(below), len(own)), dtype=factor.dtype, device=factor.device)
            unit.fill_diagonal_(1.0)
            own[:] = torch.linalg.solve_triangular(below, unit, upper=False).square_().sum(0)
        return diagonal


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


def expansion_on(expansion: Expansion, device: str) -> Expansion:
    """An expansion with its arrays on a device, and blocks of kernel values that use a small part of its memory."""
    block = min(DEVICE_BLOCK_BYTES, free_memory(usable(device)) // BLOCKS_IN_MEMORY)
    return expansion.placed(placing(device), block)


def torch_gram(
    X: np.ndarray, kernel: Kernel, device: str, max_memory: float | None = None, dtype: str = "float64"
) -> TorchGram:
    """A Gram of NumPy rows on a device that torch knows by name ("cpu", "cuda", "cuda:1")."""
    return TorchGram(placing(device)(X), kernel, dtype=dtype, max_memory=max_memory)


class TorchGram(DenseGram):
    """A :class:`DenseGram` whose rows are a PyTorch tensor: the solver then runs on that tensor's device.

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

    block = 1024

    @staticmethod
    def _each(work: Callable[[slice], None], blocks: Iterable[slice]) -> None:
        for rows in blocks:  # the device shares out its own work
            work(rows)

    def product(self, rows: Array) -> Array:
        """K applied to every row, at once where precisions agree."""
        return rows @ self._matrix if rows.dtype == self.dtype else super().product(rows)

    def _cholesky(self, work: Array) -> Any:
        return _TorchCholesky(work)

    @staticmethod
    def _available_memory(X: Array) -> int:
        return free_memory(X.device)
