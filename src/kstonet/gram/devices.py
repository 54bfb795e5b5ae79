"""Devices that PyTorch knows: reached without importing PyTorch where none is asked for."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kstonet._arrays import Array, on_gpu
from kstonet.gram.kernels import Kernel
from kstonet.gram.kernels.distance import Stationary
from kstonet.gram.memory import DEFAULT_FRACTION, GramTooLargeError, available_memory


def torch_side(device: str) -> Any:
    """The module that knows PyTorch."""
    try:
        return importlib.import_module("kstonet.gram.torch")
    except ImportError as error:
        raise ImportError(f"device={device!r} needs PyTorch: pip install kstonet[gpu].") from error


def placing(device: str | None) -> Callable[[np.ndarray], Array]:
    """What puts NumPy arrays on a device; None leaves them where they are.

    Examples
    --------
    >>> placing(None)([1.0, 2.0])
    array([1., 2.])
    """
    place: Callable[[np.ndarray], Array] = np.asarray if device is None else torch_side(device).placing(device)
    return place


def memory_limit(max_memory: float | None, device: str | None = None) -> float:
    """Bytes that may be taken: those given, or a share of what is available on the CPU or on a device.

    Examples
    --------
    >>> memory_limit(1e9)
    1000000000.0
    """
    if max_memory is not None:
        return max_memory
    if device is None:
        return DEFAULT_FRACTION * available_memory()
    side = torch_side(device)
    return float(DEFAULT_FRACTION * side.free_memory(side.usable(device)))


def block_bytes(device: str | None) -> int | None:
    """Bytes of kernel values to compute at once where they are forgotten; None for what suits the CPU.

    Examples
    --------
    >>> block_bytes(None)
    """
    return None if device is None else int(torch_side(device).block_bytes(device))


def fused_product(kernel: Kernel, X: Array) -> Callable[[Array], Array] | None:
    """What applies the kernel matrix of these rows to rows of right-hand sides without writing it down, where a GPU can.

    Examples
    --------
    >>> from kstonet.gram.kernels import RBF
    >>> fused_product(RBF(), np.zeros((3, 1)))
    """
    # A subclass from outside may have another profile than the one that it inherits.
    if not isinstance(kernel, Stationary) or "radial" not in vars(type(kernel)) or kernel.power != 2:
        return None
    if not on_gpu(X):
        return None
    with contextlib.suppress(ImportError):  # no Triton: PyTorch has it on Linux
        made: Callable[[Array], Array] = importlib.import_module("kstonet.gram.torch_products").FusedProduct(
            kernel.scaled(X), kernel.radial
        )
        return made
    return None


@contextlib.contextmanager
def within_memory(device: str | None) -> Iterator[None]:
    """A device that runs out of memory in the block, because others use it too, raises an error with a remedy.

    Examples
    --------
    >>> class OutOfMemoryError(RuntimeError):
    ...     "PyTorch has one of this name."
    >>> with within_memory("cuda"):  # doctest: +ELLIPSIS
    ...     raise OutOfMemoryError("tried to allocate 20 GiB")
    Traceback (most recent call last):
    kstonet.gram.memory.GramTooLargeError: device='cuda' ran out of memory (tried to allocate 20 GiB). Others may use it too...
    """
    try:
        yield
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
        raise GramTooLargeError(
            f"device={device!r} ran out of memory ({str(error).partition('. ')[0]}). Others may use it too: wait for them, set "
            "max_memory to the bytes that are yours, use fewer rows or solver='low_rank', or device=None for the CPU."
        ) from error
