"""LAPACK's work on triangles, by halves and in place, whose products are shared out among threads.

LAPACK shares out products among threads of the matrix library, which wait for each other busily (:mod:`kstonet.threads`), and
its own inverse of a triangle is twice as slow as one by halves. Its factorisation, handed a whole matrix of 20,000 rows, was
seen to crash inside OpenBLAS with two threads.
"""

from __future__ import annotations

from kstonet.gram.unlocked import Matrix, call
from kstonet.threads import PIECE, in_threads, pieces

FACTORED, INVERTED, SQUARED = 512, 100, 256  # rows up to which LAPACK is as fast


def factor(A: Matrix, half: str) -> int:
    """The Cholesky factor of a symmetric matrix over its "U"pper or "L"ower half; the number of the first bad pivot, or 0.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[4.0, 0.0], [2.0, 5.0]], order="F")
    >>> factor(Matrix.of(A), "L"), A.tolist()
    (0, [[2.0, 0.0], [1.0, 2.0]])
    """
    n, upper = A.rows, half == "U"
    if n <= FACTORED:
        return call("potrf", half, n, A)
    middle = _middle(n)
    first, rest = slice(0, middle), slice(middle, n)
    corner = A.part(first, first)
    bad = factor(corner, half)
    if bad:
        return bad
    places = pieces(middle, n)
    beside = [A.part(first, place) if upper else A.part(place, first) for place in places]

    def solve(part: Matrix) -> None:
        call("trsm", "L" if upper else "R", half, "T", "N", part.rows, part.columns, 1.0, corner, part)

    def reduce(pair: tuple[int, int]) -> None:
        i, j = pair
        own, left, right = A.part(places[i], places[j]), beside[i], beside[j]
        if i == j:
            call("syrk", half, "T" if upper else "N", own.rows, middle, -1.0, left, 1.0, own)
        else:
            call("gemm", *("TN" if upper else "NT"), own.rows, own.columns, middle, -1.0, left, right, 1.0, own)

    in_threads(solve, beside)
    count = range(len(places))
    in_threads(reduce, [(i, j) for i in count for j in count if (i <= j if upper else i >= j)])
    bad = factor(A.part(rest, rest), half)
    return bad + middle if bad else 0


def invert(L: Matrix) -> None:
    """The inverse of a lower triangle."""
    n = L.rows
    if n <= INVERTED:
        call("trtri", "L", "N", n, L)
        return
    first, second = slice(0, n // 2), slice(n // 2, n)
    upper, lower = L.part(first, first), L.part(second, second)
    if n <= PIECE:
        invert(upper)
        invert(lower)
    else:
        in_threads(invert, (upper, lower))

    def times_lower(columns: slice) -> None:
        part = L.part(second, columns)
        call("trmm", "L", "L", "N", "N", part.rows, part.columns, -1.0, lower, part)

    def times_upper(rows: slice) -> None:
        part = L.part(rows, first)
        call("trmm", "R", "L", "N", "N", part.rows, part.columns, 1.0, upper, part)

    in_threads(times_lower, pieces(0, n // 2))
    in_threads(times_upper, pieces(n // 2, n))


def square(L: Matrix) -> None:
    """The lower half of LᵀL over the lower triangle L."""
    n = L.rows
    if n <= SQUARED:
        call("lauum", "L", n, L)
        return
    first, second = slice(0, n // 2), slice(n // 2, n)
    lower, places = L.part(second, second), pieces(0, n // 2)
    square(L.part(first, first))

    def add(pair: tuple[int, int]) -> None:
        i, j = pair
        own, left, right = L.part(places[i], places[j]), L.part(second, places[i]), L.part(second, places[j])
        if i == j:
            call("syrk", "L", "T", own.rows, left.rows, 1.0, left, 1.0, own)
        else:
            call("gemm", "T", "N", own.rows, own.columns, left.rows, 1.0, left, right, 1.0, own)

    def times_lower(columns: slice) -> None:
        part = L.part(second, columns)
        call("trmm", "L", "L", "T", "N", part.rows, part.columns, 1.0, lower, part)

    in_threads(add, [(i, j) for i in range(len(places)) for j in range(i + 1)])
    in_threads(times_lower, places)
    square(lower)


def _middle(n: int) -> int:
    """Half of the rows, up to whole blocks that LAPACK factors at once."""
    return (n // 2 + FACTORED - 1) // FACTORED * FACTORED
