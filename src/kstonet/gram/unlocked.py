"""Routines of BLAS and LAPACK that run without the lock of the interpreter.

SciPy's wrappers hold it, so threads that factor matrices wait for each other: two took as long as one after the other. Here the
same routines are called through the pointers that SciPy publishes for Cython, by ctypes, which lets go of the lock. Parts of a
matrix are worked on in place, where the wrappers would copy them.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

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


def call(name: str, *arguments: str | int | float | np.ndarray) -> int:
    """Call a routine, without the letter of its precision: that is the arrays'.

    Parameters
    ----------
    name : str
        For example "potrf".
    *arguments
        In the order of the routine: letters, integers, numbers, and arrays in the order of Fortran or parts of such arrays,
        each of which stands for its leading dimension as well.

    Returns
    -------
    int
        LAPACK's ``info``; 0 for routines of BLAS.

    Examples
    --------
    >>> import numpy as np
    >>> L = np.array([[4.0, 2.0], [2.0, 5.0]], order="F")
    >>> call("potrf", "L", 2, L), L[:, 0].tolist(), float(L[1, 1])
    (0, [2.0, 1.0], 2.0)
    """
    single = next(each for each in arguments if isinstance(each, np.ndarray)).dtype == np.float32
    routine, count, integer = _routine(("s" if single else "d") + name)
    number = ctypes.c_float if single else ctypes.c_double
    info = integer(0)
    given: list[Any] = []
    for each in arguments:
        if isinstance(each, str):
            given.append(_letter(each))
        elif isinstance(each, int):
            given.append(ctypes.byref(integer(each)))
        elif isinstance(each, float):
            given.append(ctypes.byref(number(each)))
        else:
            given += [each.ctypes.data, ctypes.byref(integer(_leading(each)))]
    routine(*given, *[ctypes.byref(info)] * (count - len(given)))
    return int(info.value)


def _leading(matrix: np.ndarray) -> int:
    """From one column to the next, in numbers."""
    rows, columns = matrix.shape
    between: int = matrix.strides[1] // matrix.itemsize
    if rows > 1 and matrix.strides[0] != matrix.itemsize:
        raise ValueError("the array does not have the order of Fortran.")
    return int(max(1, rows, between if columns > 1 else 0))
