"""Leaves: a tree that parts the rows into equal groups of neighbours, and kernel expansions that know them.

A kernel that is narrow beside the spread of the data has no low rank, but its values between distant rows hardly matter. Within
a leaf the kernel is kept as it is; between leaves it is that of the landmarks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from kstonet._arrays import Array, like, to_numpy
from kstonet._records import storable
from kstonet.gram.expansion import ExpansionPart, combined
from kstonet.gram.kernels import Kernel

SEEN = 2000  # rows that a direction is learned from
POWER_STEPS = 20  # towards the direction of the largest spread: any direction near it serves as well


@storable(directions="float s p", thresholds="float s")
@dataclass(frozen=True)
class LeafTree:
    """A complete binary tree: the children of node i are the nodes 2i+1 and 2i+2.

    Parameters
    ----------
    directions : ndarray of shape (nodes, p)
        A row goes left where its product with the node's direction is at most the threshold.
    thresholds : ndarray of shape (nodes,)
    """

    directions: np.ndarray
    thresholds: np.ndarray

    @property
    def n_leaves(self) -> int:
        """One more than nodes."""
        return len(self.thresholds) + 1

    def leaves(self, X: np.ndarray) -> np.ndarray:
        """The leaf of every row."""
        node = np.zeros(len(X), dtype=int)
        for _ in range(self.n_leaves.bit_length() - 1):
            for own in np.unique(node):
                rows = np.flatnonzero(node == own)
                right = X[rows] @ self.directions[own] > self.thresholds[own]
                node[rows] = 2 * own + 1 + right
        return np.asarray(node - len(self.thresholds))

    @classmethod
    def grow(cls, X: np.ndarray, kernel: Kernel, largest: int, seed: int) -> tuple[LeafTree, list[np.ndarray]]:
        """Halve the rows along the direction of the largest spread, as the kernel sees it, until leaves hold ``largest`` rows.

        Returns the tree and the rows of every leaf. Leaves differ by one row at most: equal rows are parted, too.
        """
        n, p = X.shape
        depth = max(0, int(np.ceil(np.log2(max(n, 1) / max(largest, 1)))))
        seen_as = np.eye(p) if kernel.projection is None else np.array(kernel.projection)  # (p, r), by length scales
        seen_as = seen_as if kernel.length_scale is None else seen_as / np.asarray(kernel.length_scale)
        directions, thresholds = np.zeros((2**depth - 1, p)), np.zeros(2**depth - 1)
        level = [np.arange(n)]
        rng = np.random.default_rng([seed, 1])
        for node in range(2**depth - 1):
            rows = level.pop(0)
            seen = rows if len(rows) <= SEEN else rng.choice(rows, SEEN, replace=False)
            direction = seen_as @ _spread(rng, X[seen] @ seen_as)
            along = X[rows] @ direction
            order = np.argsort(along, kind="stable")
            half = (len(rows) + 1) // 2
            directions[node] = direction
            thresholds[node] = along[order[half - 1 : half + 1]].mean()
            level += [np.sort(rows[order[:half]]), np.sort(rows[order[half:]])]
        return cls(directions, thresholds), level


def _spread(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """The direction of the largest variance, nearly."""
    centred = X - X.mean(axis=0)
    direction = rng.normal(size=X.shape[1])
    for _ in range(POWER_STEPS):
        direction = centred.T @ (centred @ direction)
        norm = np.linalg.norm(direction)
        if norm == 0.0:  # all rows are equal
            return np.asarray(np.eye(X.shape[1])[0])
        direction /= norm
    return np.asarray(direction)


@storable(
    used="int q", coef="float t m q", units="int m", basis="float q p",
    rows="float n p", starts="int l+1", leaf_coef="float t m n", corrections="float l t m q",
)  # fmt: skip
@dataclass(frozen=True)
class LeafPart(ExpansionPart):
    """Units whose functions are those of the landmarks everywhere, and in every leaf those of its own rows besides.

    In a leaf, f(x) = k(x, landmarks)·(coef + corrections) + k(x, rows of the leaf)·leaf_coef: the corrections take away what
    the landmarks know of the leaf's own rows, which the kernel itself says better.

    Parameters
    ----------
    kernel, basis, used, coef, units
        As in :class:`ExpansionPart`; the basis is the landmarks.
    tree : LeafTree
        Which leaf a row belongs to.
    rows : ndarray of shape (n, p)
        The training rows, leaf by leaf.
    starts : ndarray of int, shape (leaves + 1,)
        Where the leaves begin.
    leaf_coef : ndarray of shape (iterates, units, n)
        Coefficients of these rows.
    corrections : ndarray of shape (leaves, iterates, units, q)
    """

    tree: LeafTree
    rows: np.ndarray
    starts: np.ndarray
    leaf_coef: np.ndarray
    corrections: np.ndarray

    @property
    def width(self) -> int:
        """Kernel values that one new row asks for at once: landmarks and a leaf."""
        return super().width + int(np.diff(self.starts).max())

    @property
    def support(self) -> np.ndarray:
        """All training rows are kept."""
        return np.arange(len(self.rows))

    def placed(self, place: Callable[[np.ndarray], Array]) -> LeafPart:
        """The part with its arrays where ``place`` puts them; rows are told their leaf on the CPU."""
        names = ("basis", "coef", "rows", "leaf_coef", "corrections")
        return replace(self, **{name: place(getattr(self, name)) for name in names})

    def values(self, X: np.ndarray, features: Array) -> np.ndarray:
        """The functions at rows whose features are given, shape (iterates, rows, units)."""
        values = super().values(X, features)
        iterates, units, _ = self.coef.shape
        leaf_of = self.tree.leaves(X)
        for leaf in np.unique(leaf_of):
            new, own = np.flatnonzero(leaf_of == leaf), slice(self.starts[leaf], self.starts[leaf + 1])
            assert self.kernel is not None
            local = self.kernel(like(self.rows, X[new]), self.rows[own])
            flat = local @ self.leaf_coef[:, :, own].reshape(iterates * units, -1).T
            flat += features[new] @ self.corrections[leaf].reshape(iterates * units, -1).T
            values[:, new] += to_numpy(flat).reshape(len(new), iterates, units).swapaxes(0, 1)
        return values

    def pulled(self, X: np.ndarray, pull: np.ndarray) -> np.ndarray:
        """Gradients of sums over iterates and units, leaf by leaf: between leaves the functions jump."""
        assert self.kernel is not None
        gradients = np.empty((len(X), pull.shape[2], X.shape[1]))
        leaf_of = self.tree.leaves(X)
        for leaf in np.unique(leaf_of):
            new, own = np.flatnonzero(leaf_of == leaf), slice(self.starts[leaf], self.starts[leaf + 1])
            wide = combined(pull[:, new], self.coef + self.corrections[leaf])
            local = combined(pull[:, new], self.leaf_coef[:, :, own])
            gradients[new] = self.kernel.gradient(X[new], self.basis, wide)
            gradients[new] += self.kernel.gradient(X[new], self.rows[own], local)
        return gradients

    def iterate(self, t: int) -> Self:
        """One of the iterates alone."""
        own = slice(t, t + 1)
        corrections = self.corrections[:, own]
        return replace(self, coef=self.coef[own], leaf_coef=self.leaf_coef[own], corrections=corrections)

    def contradicts(self) -> bool:
        """Whether tree, leaves and rows do not fit each other."""
        starts = self.starts
        known = len(starts) == self.tree.n_leaves + 1 and self.tree.directions.shape[1:] == self.rows.shape[1:]
        return not known or starts[0] != 0 or starts[-1] != len(self.rows) or bool((np.diff(starts) < 0).any())
