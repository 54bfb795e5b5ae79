"""What a kernel answers. A kernel is one class: everything the library asks of it is a method of that class."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from kstonet._arrays import Array, astype, indices_where, like, namespace, on_gpu, zeros
from kstonet.gram.blocks import row_blocks
from kstonet.gram.kernels.squash import Squash, graph_squashed, squash_slopes, squashed

GraphValue = Any  # a kstonet.onnx_export.graph.Value: it has operators and methods, so that no kernel imports onnx

REMEDY = "Fit with one of the named kernels, such as kernel='rbf', to export the model."


@dataclass(frozen=True)
class Kernel:
    """Base of all kernels: a small frozen dataclass whose fields are the parameters of the kernel.

    Calling a kernel gives the block ``k(X, Y)``. A subclass implements ``_block``, and where it can ``_diagonal`` (exact values
    of k(x, x)), ``_gradient`` (for :meth:`gradient`), ``_graph`` and ``_graph_diagonal`` (for the export to ONNX). All of them
    see features that are drawn in, projected and divided by ``length_scale`` already.

    Parameters
    ----------
    length_scale : tuple of float, optional
        One length scale per feature (per direction of a ``projection``): the features are divided by it before the kernel sees
        them.
    squash : tuple of (float, float), optional
        Centre and spread of every feature: first of all, x becomes asinh((x - centre)/spread), which draws in heavy tails. A
        feature of infinite spread stays as it is.
    projection : tuple of tuple of float, optional
        A matrix P with one row per feature and one column per direction: the products x·P take the place of the features, so
        that distances are those of the metric PPᵀ. Length scales know single features; a function of a sum of features needs
        this.

    See Also
    --------
    kstonet.gram.register_kernel : Make a kernel available by name and storable in model files.

    Examples
    --------
    >>> import numpy as np
    >>> from dataclasses import dataclass, field
    >>> @dataclass(frozen=True)
    ... class Minimum(Kernel):
    ...     def _block(self, X, Y):
    ...         return np.minimum(X, Y.T)
    >>> Minimum(length_scale=(2.0,))(np.array([[1.0], [3.0]]), np.array([[2.0]]))
    array([[0.5],
           [1. ]])
    """

    length_scale: tuple[float, ...] | None = None
    squash: Squash | None = field(default=None, kw_only=True, repr=False)
    projection: tuple[tuple[float, ...], ...] | None = field(default=None, kw_only=True, repr=False)

    #: True where the formula itself guarantees a positive semi-definite Gram matrix.
    positive_semidefinite = True
    #: True where a row of X holds the kernel values themselves, one per training row.
    precomputed = False

    def __call__(self, X: Array, Y: Array) -> Array:
        """k(X, Y) for all pairs of rows."""
        return self._block(self.scaled(X), self.scaled(Y))

    def diagonal(self, X: Array) -> Array:
        """k(x, x) for every row of X, without rounding from the off-diagonal formula."""
        return self._diagonal(self.scaled(X))

    def gradient(self, X: Array, basis: Array, coef: Array) -> Array:
        """Gradient of the expansions Σ_j coef_j k(x, basis_j) with respect to x, in blocks of bounded memory.

        Where a kernel has a kink at zero distance, the term of a basis row that coincides with x is left out.

        Parameters
        ----------
        X : array of shape (rows, features)
        basis : array of shape (q, features)
        coef : array of shape (units, q), or (rows, units, q)
            Coefficients, the same for all rows or others for every row: derivatives of sums of expansions.

        Returns
        -------
        array of shape (rows, units, features)

        Examples
        --------
        >>> import numpy as np
        >>> from kstonet.gram.kernels import RBF
        >>> RBF(gamma=0.5).gradient(np.array([[1.0]]), np.array([[0.0]]), np.array([[2.0]])).round(4)
        array([[[-1.2131]]])
        """
        outer = None if self.squash is None else squash_slopes(X, self.squash)
        X, basis = self.scaled(X), self.scaled(basis)
        gradients = zeros(X, (X.shape[0], coef.shape[-2], X.shape[1]))
        if basis.shape[0]:
            for rows in row_blocks(X.shape[0], 4 * basis.shape[0]):  # distances, slopes and products of both
                gradients[rows] = self._gradient(X[rows], basis, coef if coef.ndim == 2 else coef[rows])
        gradients = gradients if self.length_scale is None else gradients / like(gradients, self.length_scale)
        gradients = gradients if self.projection is None else gradients @ like(gradients, self.projection).T
        return gradients if outer is None else gradients * outer[:, None]

    def basis(self, X: Array, used: Array) -> Array:
        """What prediction keeps of the training rows ``used``."""
        return X[used]

    def features(self, X: Array, basis: Array) -> Array:
        """Kernel values of new rows against what :meth:`basis` kept, shape (rows, q)."""
        return self(X, basis) if len(basis) else X[:, :0]

    def graph_values(self, x: GraphValue, basis: np.ndarray) -> GraphValue:
        """k(y, x) in an ONNX graph, for the rows of ``basis`` (q, p) and the columns of x (p, n); shape (q, n)."""
        return self._graph(self._graph_scaled(x), self.scaled(basis))

    def graph_diagonal(self, x: GraphValue) -> GraphValue | float:
        """k(x, x) in an ONNX graph for the columns of x, shape (1, n); a number where it is the same for all."""
        return self._graph_diagonal(self._graph_scaled(x))

    def scaled(self, X: Array) -> Array:
        """Rows as the formulas of the kernel see them: drawn in, projected, divided by the length scales."""
        X = X if self.squash is None else squashed(X, self.squash)
        X = X if self.projection is None else X @ like(X, self.projection)
        return X if self.length_scale is None else X / like(X, self.length_scale)

    def _graph_scaled(self, x: GraphValue) -> GraphValue:
        x = x if self.squash is None else graph_squashed(x, self.squash)
        x = x if self.projection is None else x.left_product(np.ascontiguousarray(np.array(self.projection).T))
        return x if self.length_scale is None else x / np.array(self.length_scale)[:, None]

    def _block(self, X: Array, Y: Array) -> Array:
        raise NotImplementedError(f"{type(self).__name__} has no _block(X, Y): write the formula of k(X, Y).")

    def _diagonal(self, X: Array) -> Array:
        return namespace(X).concatenate([self._block(X[i : i + 1], X[i : i + 1])[0] for i in range(X.shape[0])])

    def _gradient(self, X: Array, basis: Array, coef: Array) -> Array:
        raise TypeError(
            f"the gradient of the kernel {self!r} is not known; kernels such as 'rbf', 'matern32' and 'poly' have one."
        )

    def _graph(self, x: GraphValue, basis: np.ndarray) -> GraphValue:
        raise TypeError(f"kernel={self!r} is Python code, and an ONNX graph holds none. {REMEDY}")

    def _graph_diagonal(self, x: GraphValue) -> GraphValue | float:
        raise TypeError(f"kernel={self!r} has no ONNX formula of k(x, x), which standard deviations need. {REMEDY}")


@dataclass(frozen=True)
class UserKernel(Kernel):
    """A callable ``k(X, Y)`` given by the user; its positive semi-definiteness is checked, not assumed.

    Parameters
    ----------
    length_scale : tuple of float, optional
        One length scale per feature.
    function : callable
        The kernel.
    """

    function: Callable[[Array, Array], Array] | None = None
    positive_semidefinite = False

    def _block(self, X: Array, Y: Array) -> Array:
        assert self.function is not None
        K = like(X, self.function(X, Y))
        expected = (X.shape[0], Y.shape[0])
        if tuple(K.shape) != expected:
            raise ValueError(
                f"kernel={self.function!r} returned shape {tuple(K.shape)} for inputs of {expected[0]} and {expected[1]} "
                f"rows; it must return k(X, Y) of shape {expected}."
            )
        return K

    def _graph(self, x: GraphValue, basis: np.ndarray) -> GraphValue:
        raise TypeError(f"kernel={self.function!r} is Python code, and an ONNX graph holds none. {REMEDY}")


def squared_distances(X: Array, Y: Array) -> Array:
    """Squared Euclidean distances, never negative.

    Both sides are centred first: the expansion |x|² + |y|² - 2xy cancels badly for data far from the origin.
    """
    xp = namespace(X)
    centre = Y.mean(0)
    X, Y = X - centre, Y - centre
    D = X @ Y.T
    D *= -2.0
    D += (X * X).sum(1)[:, None]
    D += (Y * Y).sum(1)
    return xp.clip(D, 0.0, None, out=D)


def absolute_distances(X: Array, Y: Array) -> Array:
    """Distances in the 1-norm, feature by feature: all at once would take p times the memory.

    Features of two values are a matrix product.
    """
    if on_gpu(X):
        with contextlib.suppress(ImportError):  # no Triton: PyTorch has it on Linux
            return importlib.import_module("kstonet.gram.torch_distances").absolute_distances(X, Y)
    xp = namespace(X)
    if not len(X) or not len(Y):
        return zeros(X, (len(X), len(Y)))
    two = two_values(X, Y)
    flags, others = (two.flags(Z) for Z in (X, Y))
    D = (flags * two.gaps) @ others.T
    D *= -2.0
    D += (flags @ two.gaps)[:, None]
    D += others @ two.gaps
    for j in indices_where(~two.which).tolist():
        D += xp.abs(X[:, j : j + 1] - Y[:, j])
    return xp.clip(D, 0.0, None, out=D)


class TwoValues(NamedTuple):
    """The features that have two values at most, such as a category's columns of 0 and 1.

    For them |x - y| = gap·(flag of x - flag of y)², so that distances in the 1-norm are a matrix product, too.
    """

    which: Array  # (p,), bool
    high: Array  # (p,), the larger value
    gaps: Array  # between the two values of these features

    def flags(self, X: Array) -> Array:
        """One where a row has the larger value of such a feature, and zero where it has the smaller one."""
        return astype(X[:, self.which] == self.high[self.which], X.dtype)


def two_values(X: Array, Y: Array | None = None) -> TwoValues:
    """Which features have at most two values in the rows of X, and of Y.

    Examples
    --------
    >>> import numpy as np
    >>> two = two_values(np.array([[0.0, 1.0], [3.0, 2.0], [0.0, 3.0]]))
    >>> two.which, two.gaps
    (array([ True, False]), array([3.]))
    """
    xp = namespace(X)
    low, high = xp.amin(X, 0), xp.amax(X, 0)
    if Y is not None:
        low, high = xp.minimum(low, xp.amin(Y, 0)), xp.maximum(high, xp.amax(Y, 0))
    which = ((low == X) | (high == X)).all(0)
    if Y is not None:
        which = which & ((low == Y) | (high == Y)).all(0)
    return TwoValues(which, high, (high - low)[which])
