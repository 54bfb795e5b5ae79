"""Which Gram to use: :func:`make_gram` chooses and makes one, :func:`register_gram` adds one from outside the package."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from kstonet._registry import require_free
from kstonet.gram.base import Gram
from kstonet.gram.dense import DenseGram
from kstonet.gram.devices import torch_side
from kstonet.gram.expansion import Expansion
from kstonet.gram.iterative_options import Iterative
from kstonet.gram.kernels import Kernel
from kstonet.gram.low_rank_options import LowRank
from kstonet.gram.planning import choose_solver


class GramFactory(Protocol):
    """Makes a Gram of NumPy training rows; refuses with a ValueError what it cannot do, such as a device it does not know."""

    def __call__(self, X: np.ndarray, kernel: Kernel, *, device: str | None, dtype: str, max_memory: float | None) -> Gram:
        """Make the Gram."""
        ...


def expansion_on(expansion: Expansion, device: str | None) -> Expansion:
    """The expansion, with the kernel values of its predictions on a device; None is NumPy on the CPU."""
    placed: Expansion = expansion if device is None else torch_side(device).expansion_on(expansion, device)
    return placed


def _dense(X: np.ndarray, kernel: Kernel, *, device: str | None, dtype: str, max_memory: float | None) -> Gram:
    """The whole matrix in memory: NumPy on the CPU, or PyTorch on a device."""
    if device is None:
        return DenseGram(X, kernel, dtype=dtype, max_memory=max_memory)
    gram: Gram = torch_side(device).torch_gram(X, kernel, device, max_memory, dtype)
    return gram


AUTO = "auto"
_GRAMS: dict[str, GramFactory] = {"dense": _dense, "low_rank": LowRank(), "iterative": Iterative()}


def register_gram(name: str, factory: GramFactory) -> None:
    """Make a Gram available as ``solver=name``.

    Parameters
    ----------
    name : str
        The name users write.
    factory : callable
        ``factory(X, kernel, *, device, dtype, max_memory)`` returns a :class:`Gram` of NumPy training rows; a class with such a
        constructor is one. It has to refuse what it cannot do: a device it does not know, memory it would exceed.

    Raises
    ------
    ValueError
        Where the name belongs to another Gram.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.gram import DenseGram, make_gram, make_kernel, register_gram
    >>> class Verbose(DenseGram):
    ...     def __init__(self, X, kernel, *, device, dtype, max_memory):
    ...         super().__init__(X, kernel, dtype=dtype, max_memory=max_memory)
    ...         print(f"{len(X)} rows")
    >>> register_gram("verbose", Verbose)
    >>> X = np.zeros((3, 1))
    >>> gram = make_gram(X, make_kernel("rbf", X), solver="verbose")
    3 rows
    """
    require_free("solver", name, AUTO if name == AUTO else _GRAMS.get(name), factory)
    _GRAMS[name] = factory


def gram_names() -> tuple[str, ...]:
    """Names that ``solver`` takes.

    Examples
    --------
    >>> gram_names()[:2]
    ('auto', 'dense')
    """
    return (AUTO, *_GRAMS)


def make_gram(
    X: np.ndarray,
    kernel: Kernel,
    *,
    solver: str | GramFactory = AUTO,
    device: str | None = None,
    dtype: str = "float64",
    max_memory: float | None = None,
) -> Gram:
    """Choose and make the Gram matrix of some training rows.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Training rows; the matrix itself for a precomputed kernel.
    kernel : Kernel
        From :func:`kstonet.gram.make_kernel`.
    solver : str or callable, default="auto"
        "dense" keeps the whole matrix in memory; "low_rank" an approximation whose size grows like n (a :class:`LowRank` is the
        same with a rank of its own); "iterative" the exact kernel at the same size, whose values are computed anew for every
        product (:class:`Iterative`); other names are those of :func:`register_gram`, and a factory as described there is taken
        as it is. "auto" is "dense" where that fits into memory, and "low_rank" beyond (:mod:`kstonet.gram.planning`).
    device : str, optional
        None is NumPy on the CPU; "cuda" a GPU, or any other device name that PyTorch knows.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the stored values.
    max_memory : float, optional
        Bytes the Gram and its factor may take; default 80 % of the available memory.

    Returns
    -------
    Gram

    Raises
    ------
    GramTooLargeError
        Before anything is allocated.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.gram import make_gram, make_kernel
    >>> X = np.linspace(0, 1, 4)[:, None]
    >>> make_gram(X, make_kernel("rbf", X, gamma=1.0)).product(np.ones((1, 4))).round(3)
    array([[2.904, 3.431, 3.431, 2.904]])
    """
    if isinstance(solver, str) and solver == AUTO:
        solver, _ = choose_solver(len(X), pairwise=kernel.precomputed, device=device, dtype=dtype, max_memory=max_memory)
    return gram_factory(solver)(X, kernel, device=device, dtype=dtype, max_memory=max_memory)


def gram_factory(solver: Any) -> GramFactory:
    """What makes the Gram that a name stands for; a factory is its own."""
    if isinstance(solver, str) and solver in _GRAMS:
        return _GRAMS[solver]
    if callable(solver):
        return solver  # type: ignore[no-any-return]
    raise ValueError(
        f"solver={solver!r} is unknown; use one of {', '.join(gram_names())}, or a LowRank(rank=...) or Iterative(rank=...)."
    )
