"""Kernels by name: :func:`make_kernel` turns what a user writes into a kernel, :func:`register_kernel` adds a name."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kstonet._arrays import Array, like, to_numpy
from kstonet._records import RECORDS, storable
from kstonet._registry import require_free
from kstonet.gram.kernels.base import Kernel, UserKernel, squared_distances


@dataclass(frozen=True)
class _Entry:
    make: Callable[..., Kernel]
    fixed: dict[str, Any] = field(default_factory=dict)

    @property
    def parameters(self) -> set[str]:
        """What a user may choose, apart from what is done to the features first."""
        return set(inspect.signature(self.make).parameters) - {"length_scale", "squash", "projection"} - self.fixed.keys()


_KERNELS: dict[str, _Entry] = {}


def register_kernel(name: str, kernel: Callable[..., Kernel], **fixed: Any) -> None:
    """Make a kernel available as ``kernel=name`` in every estimator.

    Parameters
    ----------
    name : str
        The name users write.
    kernel : type or callable
        A subclass of :class:`Kernel`, a frozen dataclass, which this call also makes storable in model files; or a function
        that returns a kernel. It is called with those of ``length_scale``, ``gamma`` (a number: "scale" and the other rules are
        resolved before), ``degree``, ``coef0`` and the further arguments of :func:`make_kernel` that its signature names. The
        class of what a function returns has to be registered itself to be storable.
    **fixed : object
        Values of parameters that this name stands for, such as the smoothness of a Matérn kernel.

    Raises
    ------
    ValueError
        Where the name belongs to another kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from dataclasses import dataclass
    >>> from kstonet.gram import Kernel, make_kernel, register_kernel
    >>> @dataclass(frozen=True)
    ... class Multiquadric(Kernel):
    ...     gamma: float = 1.0
    ...     def _block(self, X, Y):
    ...         return 1.0 / np.sqrt(1.0 + self.gamma * ((X[:, None] - Y) ** 2).sum(-1))
    >>> register_kernel("multiquadric", Multiquadric)
    >>> X = np.array([[0.0], [1.0]])
    >>> make_kernel("multiquadric", X, gamma=3.0)(X, X)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    known = _KERNELS.get(name)
    require_free("kernel", name, None if known is None else known.make, kernel)
    if isinstance(kernel, type) and RECORDS.get(kernel.__name__) is not kernel:  # it may have said more of its fields itself
        storable(squash="extended")(kernel)  # infinite for features that are not drawn in
    _KERNELS[name] = _Entry(kernel, fixed)


def kernel_names() -> tuple[str, ...]:
    """Names of all kernels, those registered from outside the package included.

    Examples
    --------
    >>> kernel_names()[:2]
    ('rbf', 'laplacian')
    """
    return tuple(_KERNELS)


def takes_gamma(name: str) -> bool:
    """Whether the kernel of a name has a parameter gamma.

    Examples
    --------
    >>> takes_gamma("rbf"), takes_gamma("linear")
    (True, False)
    """
    return "gamma" in _entry(name).parameters


def _entry(name: Any) -> _Entry:
    if not isinstance(name, str) or name not in _KERNELS:
        raise ValueError(f"kernel={name!r} is unknown; use one of {', '.join(_KERNELS)}, or a callable k(X, Y).")
    return _KERNELS[name]


def resolve_gamma(gamma: float | str, X: Array, sample_weight: np.ndarray | None = None) -> float:
    """Turn ``"scale"``, ``"auto"``, ``"median"`` or a number into a number.

    ``"scale"`` is 1/(p·Var x), the paper's default and scikit-learn's; ``"auto"`` is 1/p; ``"median"`` is one over the
    median squared distance between training rows (at most 1,000 of them, evenly spaced). Weights enter the variance, and
    rows of weight zero count nowhere, so that a weight of two is a row given twice.
    """
    if not isinstance(gamma, str):
        try:
            value = float(gamma)
        except (TypeError, ValueError):
            value = math.nan
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"gamma={gamma!r} must be a positive finite number, or one of 'scale', 'auto', 'median'.")
        return value
    if gamma == "auto":
        return 1.0 / int(X.shape[1])
    if gamma == "scale":
        values = to_numpy(X).astype(np.float64)
        mean = float(np.average(values, axis=0, weights=sample_weight).mean())
        variance = float(np.average((values - mean) ** 2, axis=0, weights=sample_weight).mean())
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    if gamma == "median":
        present = to_numpy(X) if sample_weight is None else to_numpy(X)[sample_weight > 0]
        rows = np.unique(np.linspace(0, len(present) - 1, min(len(present), 1000)).astype(int))
        sample = present[rows].astype(np.float64)
        distances = squared_distances(sample, sample)[np.triu_indices(len(rows), 1)]
        distances = distances[distances > 0]
        return 1.0 / float(np.median(distances)) if distances.size else 1.0
    raise ValueError(f"gamma={gamma!r} is unknown; use a positive number, 'scale', 'auto' or 'median'.")


def make_kernel(
    kernel: str | Callable[[Array, Array], Array] | Kernel,
    X: Array,
    *,
    gamma: float | str = "scale",
    degree: int = 3,
    coef0: float = 1.0,
    length_scale: Any = None,
    projection: Any = None,
    sample_weight: np.ndarray | None = None,
    **parameters: Any,
) -> Kernel:
    """Build the kernel a user asked for, resolving ``gamma`` on the training rows ``X``.

    Parameters
    ----------
    kernel : str, callable or Kernel
        One of :func:`kernel_names`, a callable ``k(X, Y)`` or a finished kernel, which is returned as it is.
    X : array of shape (n, p)
        Training rows.
    gamma : float or {"scale", "auto", "median"}
        Inverse squared width. Kernels without a width ignore it.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial kernel. 1 is the default of :func:`sklearn.metrics.pairwise.polynomial_kernel` and of every
        estimator of this library. With 0, the default of :class:`sklearn.svm.SVR`, a kernel of degree 3 has cubic terms only.
    length_scale : array of shape (p,), optional
        One length scale per feature, or per direction of ``projection``: the features are divided by it first.
    projection : array of shape (p, r), optional
        Directions of the features: the products of X with its columns take the place of the features, before the division.
    sample_weight : array of shape (n,), optional
        Weights of the training rows, for ``gamma="scale"`` and ``"median"``.
    **parameters : object
        Further parameters of the kernel: ``norm`` and ``exponent`` of kernel="exponential", or those of a kernel from outside
        the package.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0]])
    >>> make_kernel("rbf", X, gamma=0.5)(X, X).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    >>> make_kernel("exponential", X, gamma=0.25, norm=1, exponent=0.5)
    Exponential(length_scale=None, gamma=0.25, norm=1, exponent=0.5)
    """
    if isinstance(kernel, Kernel):
        return kernel
    entry = _Entry(UserKernel, {"function": kernel}) if callable(kernel) else _entry(kernel)
    given: dict[str, Any] = {}
    if projection is not None:
        projection = np.asarray(projection, dtype=np.float64)
        if projection.ndim != 2 or len(projection) != X.shape[1] or not (projection.size and np.isfinite(projection).all()):
            raise ValueError(
                f"projection must hold one row of finite numbers per feature of X, {X.shape[1]}, and one column per direction; "
                f"got the shape {projection.shape}."
            )
        if getattr(entry.make, "precomputed", False):
            raise ValueError(f"projection has no meaning with kernel={kernel!r}: project the features yourself.")
        X = X @ like(X, projection)
        given["projection"] = tuple(map(tuple, projection.tolist()))
    if length_scale is not None:
        length_scale = np.asarray(length_scale, dtype=np.float64)
        if length_scale.shape != (X.shape[1],) or not (np.isfinite(length_scale).all() and (length_scale > 0).all()):
            raise ValueError(
                f"length_scale must hold {X.shape[1]} positive numbers, one per feature of X (or direction of projection); got "
                f"{length_scale!r}."
            )
        if getattr(entry.make, "precomputed", False):
            raise ValueError(f"length_scale has no meaning with kernel={kernel!r}: scale the features yourself.")
        if isinstance(gamma, str) and "gamma" in entry.parameters:  # a number needs no second copy of the rows
            X = X / like(X, length_scale)
        length_scale = tuple(length_scale.tolist())
    unknown = parameters.keys() - entry.parameters
    if unknown:
        known = ", ".join(sorted(entry.parameters)) or "none"
        raise ValueError(f"kernel={kernel!r} has no parameter {', '.join(sorted(unknown))}; its parameters are: {known}.")
    named = {"degree": degree, "coef0": coef0, **parameters}
    chosen = {name: value for name, value in named.items() if name in entry.parameters}
    if "gamma" in entry.parameters:
        chosen["gamma"] = resolve_gamma(gamma, X, sample_weight)
    return entry.make(length_scale=length_scale, **entry.fixed, **chosen, **given)
