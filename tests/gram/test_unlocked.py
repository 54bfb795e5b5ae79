"""Routines of BLAS and LAPACK without the lock of the interpreter."""

import threading
import time

import numpy as np
import pytest

from kstonet.gram.unlocked import Matrix, call


@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_parts_of_a_matrix_are_worked_on_in_place(dtype, atol):
    rng = np.random.default_rng(0)
    whole = np.asfortranarray(rng.normal(size=(9, 8)).astype(dtype))
    before = whole.astype(np.float64)
    part, triangle = whole[2:6, 5:8], np.asfortranarray(np.tril(rng.normal(size=(4, 4))).astype(dtype))
    assert call("trmm", "L", "L", "N", "N", *part.shape, -2.0, Matrix.of(triangle), Matrix.of(part)) == 0
    assert Matrix.of(whole).part(slice(2, 6), slice(5, 8)) == Matrix.of(part)
    before[2:6, 5:8] = -2.0 * triangle.astype(np.float64) @ before[2:6, 5:8]
    np.testing.assert_allclose(whole, before, atol=atol)


def test_lapack_says_where_a_matrix_is_not_positive_definite():
    assert call("potrf", "L", 3, Matrix.of(np.asfortranarray(np.diag([1.0, -1.0, 1.0])))) == 2


def test_single_columns_and_empty_matrices():
    solved = np.array([[2.0], [8.0]], order="F")
    factor = np.asfortranarray(np.diag([1.0, 2.0]))
    assert call("potrs", "L", 2, 1, Matrix.of(factor), Matrix.of(solved)) == 0
    assert solved[:, 0].tolist() == [2.0, 2.0]
    assert call("potrf", "L", 0, Matrix.of(np.empty((0, 0), order="F"))) == 0


def test_arrays_in_another_order_are_refused():
    with pytest.raises(ValueError, match="order of Fortran"):
        Matrix.of(np.ones((2, 3)))


def test_other_threads_go_on_in_the_meantime():
    """Something of this thread happens well within a factorisation by another one; a busy machine has several tries."""
    A = np.asfortranarray(np.eye(1500))
    ends = []

    def work():
        own = A.copy(order="F")
        begun = time.perf_counter()
        call("potrf", "L", len(own), Matrix.of(own))
        ends.append((begun, time.perf_counter()))

    def seen():
        thread, moments = threading.Thread(target=work), []
        thread.start()
        while thread.is_alive():
            moments.append(time.perf_counter())
            time.sleep(1e-4)
        begun, ended = ends[-1]
        return any(0.3 < (moment - begun) / (ended - begun) < 0.9 for moment in moments)

    assert any(seen() for _ in range(20))
