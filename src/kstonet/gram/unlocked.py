"""Routines of BLAS and LAPACK that run without the lock of the interpreter.

SciPy's wrappers hold it, so threads that factor matrices wait for each other: two took as long as one after the other. Here the
same routines are called through the pointers that SciPy publishes for Cython, by ctypes, which lets go of the lock. Parts of a
matrix are worked on in place, where the wrappers would copy them.
"""

from __future__ import annotations

import ctypes
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cython_blas, cython_lapack

_name, _pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


@cache
def _routine(name: str) -> tuple[Any, int, type]:
    """A routine by its name with the letter of its precision, its number of arguments, and the type of its integers."""
    published = {**cython_lapack.__pyx_capi__, **cython_blas.__pyx_capi__}
    signature = _name(published[name])
    arguments = signature.count(b"*")
    routine = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(_pointer(published[name], signature))
    return routine, arguments, ctypes.c_int64 if b"int64" in signature else ctypes.c_int


@cache
def _letter(letter: str) -> Any:
    return ctypes.byref(ctypes.c_char(letter.encode()))


@lru_cache(4096)
def _integer(value: int, kind: type) -> Any:
    return ctypes.byref(kind(value))


class Matrix(NamedTuple):
    """An array in the order of Fortran, by what its routines need of it."""

    address: int
    rows: int
    columns: int
    leading: int  # from one column to the next, in numbers
    single: bool

    @classmethod
    def of(cls, array: np.ndarray) -> Matrix:
        """An array, or a part of one, in float32 or float64; it has to outlive the matrix."""
        rows, columns = array.shape
        if rows > 1 and array.strides[0] != array.itemsize:
            raise ValueError("the array does not have the order of Fortran.")
        leading = max(1, rows, array.strides[1] // array.itemsize if columns > 1 else 0)
        return cls(array.ctypes.data, rows, columns, leading, array.dtype == np.float32)

    def part(self, rows: slice, columns: slice) -> Matrix:
        """Some rows and columns, whose first and last are given."""
        address = self.address + (4 if self.single else 8) * (rows.start + self.leading * columns.start)
        return Matrix(address, rows.stop - rows.start, columns.stop - columns.start, self.leading, self.single)


def call(name: str, *arguments: str | int | float | Matrix) -> int:
    """Call a routine, without the letter of its precision: that is the matrices'.

    Parameters
    ----------
    name : str
        For example "potrf".
    *arguments
        In the order of the routine: letters, integers, numbers, and matrices, each of which stands for its leading dimension as
        well; the last one is a matrix.

    Returns
    -------
    int
        LAPACK's ``info``; 0 for routines of BLAS.

    Examples
    --------
    >>> import numpy as np
    >>> L = np.array([[4.0, 2.0], [2.0, 5.0]], order="F")
    >>> call("potrf", "L", 2, Matrix.of(L)), L[:, 0].tolist(), float(L[1, 1])
    (0, [2.0, 1.0], 2.0)
    """
    single = arguments[-1].single  # type: ignore[union-attr]
    routine, count, integer = _routine(("s" if single else "d") + name)
    number: Any = ctypes.c_float if single else ctypes.c_double
    given: list[Any] = []
    for each in arguments:
        kind = type(each)
        if kind is Matrix:
            given += (each.address, _integer(each.leading, integer))  # type: ignore[union-attr]
        elif kind is str:
            given.append(_letter(each))
        elif kind is float:
            given.append(ctypes.byref(number(each)))
        else:
            given.append(_integer(each, integer))
    if len(given) == count:
        routine(*given)
        return 0
    info = integer(0)
    routine(*given, ctypes.byref(info))
    return int(info.value)
