"""The same Gram on PyTorch tensors, on whatever device they live."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import torch

from kstonet._arrays import Array, astype
from kstonet.gram.cholesky import NotPositiveDefiniteError
from kstonet.gram.dense import DenseGram
from kstonet.gram.kernels import Kernel
from kstonet.gram.memory import available_memory

_LOADING = threading.Lock()


class _TorchCholesky:
    """torch's Cholesky factor, with solves for stacked rows."""

    def __init__(self, A: torch.Tensor) -> None:
        factor, info = torch.linalg.cholesky_ex(A)
        if int(info) != 0:
            raise NotPositiveDefiniteError(f"pivot {int(info)} of {A.shape[0]} is not positive")
        self._factor = factor

    @property
    def nbytes(self) -> int:
        return int(self._factor.nbytes)

    def solve(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.cholesky_solve(astype(rows, self._factor.dtype).T, self._factor).T


def torch_gram(
    X: np.ndarray, kernel: Kernel, device: str, max_memory: float | None = None, dtype: str = "float64"
) -> TorchGram:
    """A Gram of NumPy rows on a device that torch knows by name ("cpu", "cuda", "cuda:1")."""
    try:
        rows = torch.as_tensor(X, device=device)
        with _LOADING:  # the first factorisation loads libraries, which torch cannot do in two threads at once
            _TorchCholesky(torch.eye(2, device=device)).solve(torch.ones(1, 2, device=device))
    except (RuntimeError, AssertionError) as error:  # torch without CUDA raises the latter
        raise ValueError(f"device={device!r} is not usable here ({error}); use None for the CPU without torch.") from error
    return TorchGram(rows, kernel, dtype=dtype, max_memory=max_memory)


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

    def _cholesky(self, work: Array) -> Any:
        return _TorchCholesky(work)

    @staticmethod
    def _available_memory(X: Array) -> int:
        return int(torch.cuda.mem_get_info(X.device)[0]) if X.is_cuda else available_memory()
