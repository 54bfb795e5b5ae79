"""Work shared out among threads."""

import multiprocessing
import os
import pickle
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from kstonet import KStoNetClassifier, KStoNetRegressor, threads
from kstonet.gram.cholesky import BlockedCholesky
from kstonet.gram.inverted import inverse_of
from kstonet.threads import in_threads, single_threaded


def blas_threads():
    """Of libraries whose number holds for the whole process; PyTorch brings one where every thread has its own."""
    return {own.num_threads for own in threads._libraries(False).lib_controllers}


def test_every_item_is_worked_on_once_and_answers_keep_their_order():
    done = []
    found = in_threads(lambda k: (done.append(k), k**2)[1], range(50), 4)
    assert found == [k**2 for k in range(50)]
    assert sorted(done) == list(range(50))


def test_several_threads_work_at_the_same_time():
    together = threading.Barrier(3, timeout=30)
    assert len(set(in_threads(lambda _: (together.wait(), threading.get_ident())[1], range(3), 3))) == 3


def test_what_is_within_a_piece_stays_in_its_thread():
    def outer(_):
        return {threading.get_ident(), *in_threads(lambda _: threading.get_ident(), range(8), 4)}

    assert all(len(used) == 1 for used in in_threads(outer, range(4), 2))


def test_at_most_so_many_at_once():
    active, most, lock = 0, 0, threading.Lock()

    def work(_):
        nonlocal active, most
        with lock:
            active += 1
            most = max(most, active)
        threading.Event().wait(0.005)
        with lock:
            active -= 1

    in_threads(work, range(12), 4, most=2)
    assert most <= 2


def test_an_error_is_raised_where_the_work_was_asked_for_and_ends_it():
    begun = []

    def work(k):
        begun.append(k)
        threading.Event().wait(0.01)
        if k == 2:
            raise ZeroDivisionError("piece 2")

    with pytest.raises(ZeroDivisionError, match="piece 2"):
        in_threads(work, range(100), 2)
    assert len(begun) < 10
    assert in_threads(lambda k: k, range(3), 2) == [0, 1, 2]


def test_an_interruption_ends_the_work():
    begun = []

    def work(k):
        begun.append(k)
        threading.Event().wait(0.01)
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_threads(work, range(100), 2)
    assert len(begun) < 10


def test_without_memory_for_threads_one_does_it_all(monkeypatch):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_pool", refuse)
    assert in_threads(lambda k: k + 1, range(5), 4) == [1, 2, 3, 4, 5]


def test_matrix_libraries_have_one_thread_within_and_their_own_afterwards():
    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        with single_threaded() as available:
            assert available == max(before)
            assert blas_threads() == {1}
            with single_threaded():
                assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == before


def test_the_last_of_several_threads_gives_back_what_libraries_had():
    """Whichever enters first and leaves first: the second must not take the limit of the first for what was there."""
    with threadpool_limits(2, user_api="blas"):
        before, entered, leave = blas_threads(), threading.Event(), threading.Event()

        def other():
            with single_threaded():
                entered.set()
                leave.wait(30)

        with single_threaded():
            thread = threading.Thread(target=other)
            thread.start()
            assert entered.wait(30)
        assert blas_threads() == {1}
        leave.set()
        thread.join()
        assert blas_threads() == before


def test_work_is_shared_out_among_as_many_as_were_asked_for():
    with threadpool_limits(3, user_api="blas"), single_threaded(1):
        assert len(set(in_threads(lambda _: threading.get_ident(), range(20)))) == 1
        with single_threaded(2), single_threaded():
            together = threading.Barrier(2, timeout=30)
            assert len(set(in_threads(lambda _: (together.wait(), threading.get_ident())[1], range(2)))) == 2


def test_libraries_that_have_one_thread_leave_us_one():
    with threadpool_limits(1, user_api="blas"):
        assert len(set(in_threads(lambda _: threading.get_ident(), range(20)))) == 1


def _in_child(queue):
    queue.put(in_threads(lambda k: k**2, range(4), 2))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks beside threads
def test_a_forked_process_has_threads_of_its_own():
    in_threads(lambda k: k, range(4), 2)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == [0, 1, 4, 9]
    child.join(60)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_factors_solutions_and_inverses_are_the_same_for_any_number_of_threads(dtype):
    rng = np.random.default_rng(0)
    n = 1300
    A = rng.normal(size=(n, n))
    A = (A @ A.T / n + np.eye(n)).astype(dtype)
    right = rng.normal(size=(5, n)).astype(dtype)
    found = []
    for number in (1, 3):
        with threadpool_limits(number, user_api="blas"), single_threaded():
            factor = BlockedCholesky(A.copy())
            found.append((factor.solve(right), factor.inverse_diagonal(700), inverse_of(A.copy())))
    for one, three in zip(*found, strict=True):
        np.testing.assert_array_equal(one, three)
    solved, diagonal, inverse = found[0]
    exact = np.linalg.inv(A.astype(np.float64))
    tolerance = 1e-10 if dtype is np.float64 else 1e-3
    np.testing.assert_allclose(inverse, exact, atol=tolerance)
    np.testing.assert_allclose(diagonal, np.diagonal(exact)[-700:], rtol=tolerance)
    np.testing.assert_allclose(solved, right @ exact, atol=5 * tolerance)


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (KStoNetRegressor(tuning="none", max_iter=3, n_average=2, random_state=0), "predict_interval"),
        (KStoNetRegressor(max_iter=2, n_average=2, random_state=0), "predict_interval"),
        (KStoNetClassifier(max_iter=2, random_state=0), "predict_proba_interval"),
    ],
    ids=["one kernel", "first call", "classes"],
)
def test_a_copy_that_factors_for_itself_gives_the_same_digits(model, method):
    """A fit has one thread per product, a prediction as many as the library likes: what is kept must not depend on it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=400)
    with threadpool_limits(2, user_api="blas"):
        model.fit(X, y if isinstance(model, KStoNetRegressor) else y > 0)
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(getattr(copy, method)(X), getattr(model, method)(X))
