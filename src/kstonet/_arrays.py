"""The array namespace: NumPy on the CPU, PyTorch on a GPU, one algorithm for both.

Only what the two spell differently lives here. PyTorch is never imported: a tensor can exist only where the
caller imported it already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

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


def beside(reference: Array, values: Any) -> Array:
    """``values``, of their own dtype, where ``reference`` is: as they are beside NumPy, a tensor on the device of a tensor."""
    xp = namespace(reference)
    return values if xp is np else xp.as_tensor(values, device=reference.device)


def filled(reference: Array, shape: tuple[int, ...], fill: Callable[[np.ndarray], None]) -> Array:
    """An array of float64 beside ``reference`` whose values ``fill`` writes on the CPU."""
    xp = namespace(reference)
    if xp is np:
        values = np.empty(shape)
        fill(values)
        return values
    there = xp.empty(shape, dtype=xp.float64, pin_memory=reference.is_cuda)  # a GPU fetches it from there without waiting
    fill(there.numpy())
    return there.to(reference.device, non_blocking=True)


def to_numpy(array: Array) -> np.ndarray:
    """Return ``array`` as NumPy, from whatever device it is on."""
    return array.detach().cpu().numpy() if hasattr(array, "detach") else np.asarray(array)


def in_kind_of(reference: Array, array: Array) -> Array:
    """``array`` as NumPy where ``reference`` is, and as it is otherwise."""
    return to_numpy(array) if namespace(reference) is np else array


def widened(array: Array) -> Array:
    """``array`` in float64; itself where it is that already."""
    return astype(array, namespace(array).float64)


def floats(values: Any) -> Array:
    """``values`` in float64: a tensor stays where it is, everything else becomes a NumPy array."""
    return np.asarray(values, dtype=np.float64) if namespace(values) is np else widened(values)


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


def row_indices(array: Array) -> Array:
    """Indices of all rows, beside ``array``."""
    xp = namespace(array)
    return np.arange(len(array)) if xp is np else xp.arange(len(array), device=array.device)


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


def full(reference: Array, shape: tuple[int, ...], value: float) -> Array:
    """Values in float64 that are all the same, beside ``reference``."""
    xp = namespace(reference)
    return np.full(shape, value) if xp is np else xp.full(shape, value, dtype=xp.float64, device=reference.device)


def positive_part(array: Array) -> Array:
    """The larger of every value and zero."""
    return np.maximum(array, 0.0) if namespace(array) is np else array.clamp(min=0.0)


def deviation(array: Array) -> float:
    """Standard deviation of all values, divided by their number."""
    return float(array.std() if namespace(array) is np else array.std(correction=0))


def dots(left: Array, right: Array, axis: int) -> Array:
    """Products of the vectors along ``axis`` of two matrices."""
    if namespace(left) is np:
        return np.einsum("ij,ij->j" if axis == 0 else "ij,ij->i", left, right)
    return (left * right).sum(axis)  # what einsum makes of it, a product of many tiny matrices, is slow on a GPU


def special(array: Array) -> Any:
    """The module with the special functions, expit and ndtr among them, for ``array``."""
    xp = namespace(array)
    return scipy.special if xp is np else xp.special


def on_gpu(array: Array) -> bool:
    """Whether an array is on a GPU for which there is code of its own, in Triton.

    Examples
    --------
    >>> on_gpu(np.zeros(3))
    False
    """
    return getattr(getattr(array, "device", None), "type", None) == "cuda"


def takes_tensors(kind: type) -> bool:
    """Whether a class says of itself that it computes with whatever arrays it is given, NumPy's or PyTorch's.

    What a base class says does not count: a subclass from outside may be written for NumPy alone.

    Examples
    --------
    >>> class Both:
    ...     takes_tensors = True
    >>> class Own(Both):
    ...     pass
    >>> takes_tensors(Both), takes_tensors(Own)
    (True, False)
    """
    return bool(vars(kind).get("takes_tensors", False))


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
