"""The array namespace: NumPy on the CPU, PyTorch on a GPU, one algorithm for both.

Only what the two spell differently lives here. PyTorch is never imported: a tensor can exist only where the
caller imported it already.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

Array = Any  # numpy.ndarray or torch.Tensor: the code never asks which


def namespace(array: Array) -> Any:
    """Return the module (numpy or torch) that owns ``array``."""
    if type(array).__module__.partition(".")[0] == "torch":
        return sys.modules["torch"]
    return np


def astype(array: Array, dtype: Any) -> Array:
    """Cast without copying when nothing changes."""
    if array.dtype == dtype:
        return array
    return array.to(dtype) if hasattr(array, "to") else array.astype(dtype)


def like(reference: Array, values: Any) -> Array:
    """Return ``values`` as an array of the namespace, dtype and device of ``reference``."""
    xp = namespace(reference)
    if xp is np:
        return np.asarray(values, dtype=reference.dtype)
    return xp.as_tensor(values, dtype=reference.dtype, device=reference.device)


def to_numpy(array: Array) -> np.ndarray:
    """Return ``array`` as NumPy, from whatever device it is on."""
    return array.detach().cpu().numpy() if hasattr(array, "detach") else np.asarray(array)


def in_kind_of(reference: Array, array: Array) -> Array:
    """``array`` as NumPy where ``reference`` is, and as it is otherwise."""
    return to_numpy(array) if namespace(reference) is np else array


def widened(array: Array) -> Array:
    """``array`` in float64; itself where it is that already."""
    return astype(array, namespace(array).float64)


def contiguous(array: Array) -> Array:
    """``array`` with its rows one after the other in memory."""
    return array.contiguous() if hasattr(array, "contiguous") else np.ascontiguousarray(array)


def argsort_rows(array: Array) -> Array:
    """Indices that sort every row."""
    xp = namespace(array)
    return np.argsort(array, axis=-1) if xp is np else xp.argsort(array, dim=-1)


def take_along_rows(array: Array, indices: Array) -> Array:
    """Gather ``indices`` within every row."""
    xp = namespace(array)
    return np.take_along_axis(array, indices, -1) if xp is np else xp.gather(array, -1, indices)


def indices_where(mask: Array) -> Array:
    """Positions at which a one-dimensional mask is true."""
    xp = namespace(mask)
    return np.flatnonzero(mask) if xp is np else xp.nonzero(mask, as_tuple=True)[0]


def copy(array: Array) -> Array:
    """An independent copy."""
    return array.clone() if hasattr(array, "clone") else array.copy()


def zeros(reference: Array, shape: tuple[int, ...], dtype: Any = None) -> Array:
    """Zeros beside ``reference``: its namespace, its device and, unless given, its dtype."""
    xp = namespace(reference)
    dtype = reference.dtype if dtype is None else dtype
    if xp is np:
        return np.zeros(shape, dtype=dtype)
    return xp.zeros(shape, dtype=dtype, device=reference.device)


def low_precision(reference: Array) -> Any:
    """The float32 of the namespace."""
    return namespace(reference).float32


def machine_epsilon(dtype: Any) -> float:
    """Unit round-off of a NumPy or torch floating dtype."""
    return 2.0**-23 if "float32" in str(dtype) else 2.0**-52


def rows_in(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Which rows are equal to one of others; standardising rounds equal rows in the same way.

    Examples
    --------
    >>> import numpy as np
    >>> rows_in(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[3.0, 4.0]]))
    array([False,  True])
    """
    known = {row.tobytes() for row in np.ascontiguousarray(others)}
    return np.array([row.tobytes() in known for row in np.ascontiguousarray(rows)])
