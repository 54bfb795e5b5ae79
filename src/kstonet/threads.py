"""Work shared out among threads that sleep while they wait.

A matrix library shares out every product among threads of its own, and these wait for each other by asking again and again. On
a machine with other work to do, half of the time goes into asking: beside two busy processes on two cores, ten iterations of
6,000 rows took twelve times as long as alone. Here the library has one thread, pieces of a product are handed to whichever of
our threads is free, and one that has nothing to do sleeps. The pieces are the same for any number of threads, and so is the
result.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import cache
from typing import Any, TypeVar

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Found = TypeVar("Found")

PIECE = 512  # columns of a product that one thread makes at a time


@cache
def _libraries(by_thread: bool) -> ThreadpoolController:
    """The matrix libraries of this process, whose number of threads holds for all of it, or for the thread that sets it.

    To find them takes milliseconds.
    """
    found = ThreadpoolController().select(user_api="blas")
    openmp = {own.filepath: getattr(own, "threading_layer", None) == "openmp" for own in found.lib_controllers}
    return found.select(filepath=[path for path, own in openmp.items() if own == by_thread])


def _let_any_thread_limit() -> None:
    """Threadpoolctl obeys the thread that has set a limit for the process, until it is told that this one is done."""
    for library in _libraries(False).lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


def available_threads() -> int:
    """How many threads matrix libraries have.

    Examples
    --------
    >>> available_threads() >= 1
    True
    """
    libraries = _libraries(False).lib_controllers or _libraries(True).lib_controllers
    return max((library.num_threads for library in libraries), default=1)


def _have_one_thread() -> None:
    """In a thread that matrix libraries count by itself."""
    _libraries(True).limit(limits=1)


class _Shared:
    """What all threads of the process share: how many may work, and those that wait for work."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0  # how many are within single_threaded()
        self.limit: Any = None
        self.threads = 1
        self.pool: ThreadPoolExecutor | None = None


_shared = _Shared()
_own = threading.local()  # whether this thread does a piece of something larger, and how many its work may be shared out among


def _forget() -> None:
    """A forked process has none of its parent's threads."""
    global _shared
    _shared = _Shared()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@contextmanager
def single_threaded(n_jobs: int | None = None) -> Iterator[int]:
    """Within it, matrix libraries have one thread; gives the number they had. May be entered by several threads at once.

    Work of this thread is shared out among as many, or among ``n_jobs``, as joblib counts.
    """
    shared, here = _shared, None
    before = getattr(_own, "n_jobs", None)
    _own.n_jobs = before if n_jobs is None else effective_n_jobs(n_jobs)
    with shared.lock:
        if not shared.inside:
            shared.threads = available_threads()
            shared.limit = _libraries(False).limit(limits=1) if shared.threads > 1 else None
        shared.inside += 1
    try:
        here = _libraries(True).limit(limits=1)
        yield shared.threads
    finally:
        _own.n_jobs = before
        if here is not None:
            here.restore_original_limits()
        with shared.lock:
            shared.inside -= 1
            if not shared.inside and shared.limit is not None:
                _let_any_thread_limit()
                shared.limit.restore_original_limits()
                _let_any_thread_limit()
                shared.limit = None


def in_threads(
    work: Callable[[Item], Found], items: Iterable[Item], n_jobs: int | None = None, *, most: int | None = None
) -> list[Found]:
    """What ``work`` makes of every item, by as many threads as matrix libraries have, or ``n_jobs`` (:func:`single_threaded`).

    Within ``work``, everything is done by the thread that does it. At most ``most`` items are worked on at once.

    Examples
    --------
    >>> in_threads(lambda k: k**2, range(4))
    [0, 1, 4, 9]
    """
    given = list(items)
    if len(given) < 2 or getattr(_own, "busy", False):
        return [work(item) for item in given]
    with single_threaded(n_jobs) as available:
        threads = min(_own.n_jobs or available, len(given), most or len(given))
        return _shared_out(work, given, threads) if threads > 1 else [work(item) for item in given]


def _shared_out(work: Callable[[Item], Found], items: Sequence[Item], threads: int) -> list[Found]:
    found: list[Any] = [None] * len(items)
    left = iter(range(len(items)))  # one step of it is never interrupted
    stopped = False

    def some() -> None:
        nonlocal stopped
        _own.busy = True
        try:
            for k in left:
                if stopped:
                    break
                found[k] = work(items[k])
        except BaseException:
            stopped = True
            raise
        finally:
            _own.busy = False

    helpers: list[Future[None]] = []
    try:
        with suppress(RuntimeError):  # where there is no memory for threads, this one does it all
            for _ in range(threads - 1):
                helpers.append(_pool(threads - 1).submit(copy_context().run, some))
        some()
    finally:
        begun = [one for one in helpers if not one.cancel()]  # there was nothing left for the others
        for one in begun:
            one.exception()
    for one in begun:
        one.result()
    return found


def _pool(threads: int) -> ThreadPoolExecutor:
    """At least so many threads that sleep until there is work."""
    with _shared.lock:
        if _shared.pool is None or _shared.pool._max_workers < threads:
            _shared.pool = ThreadPoolExecutor(threads, thread_name_prefix="kstonet", initializer=_have_one_thread)
        return _shared.pool


def pieces(begin: int, end: int, size: int = PIECE) -> list[slice]:
    """A range in pieces of at most ``size``.

    Examples
    --------
    >>> pieces(0, 5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + size, end)) for start in range(begin, end, size)]
