"""The first layer as a graph: kernel expansions of all averaged iterates, and the variance of their values."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from kstonet.gram.expansion import Expansion, ExpansionPart
from kstonet.gram.leaves import LeafPart, LeafTree
from kstonet.layers.linear import LinearUncertainty
from kstonet.layers.margin import ROUNDING, MarginFactor
from kstonet.layers.svr_uncertainty import MarginUncertainty
from kstonet.layers.wide import WideRegression
from kstonet.onnx_export.graph import Value, op, product
from kstonet.onnx_export.network import quadratic_forms
from kstonet.uncertainty.local_scale import LocalScale

BLOCK = 128  # rows of an inverse factor: large enough for a fast product, small enough to leave out most of its zeros


def first_features(x: Value, expansion: Expansion) -> list[Value]:
    """The values the coefficients of every part multiply, shape (q, n) each."""
    features = []
    for k, part in enumerate(map(_not_empty, expansion.parts)):
        with x.graph.scope(f"kernel_{k}"):
            features.append(x.take(part.basis, axis=0) if part.kernel is None else part.kernel.graph_values(x, part.basis))
    return features


def first_values(x: Value, features: list[Value], expansion: Expansion) -> Value:
    """Values of the first layer, shape (iterates, units, n)."""
    iterates = len(expansion.intercept)
    pieces = []
    for own, part in zip(features, map(_not_empty, expansion.parts), strict=True):
        pieces.append(_part_values(x, own, part).reshaped(iterates, len(part.units), -1))
    return _in_order(pieces, expansion, axis=1) + expansion.intercept[:, :, None]


def _part_values(x: Value, features: Value, part: ExpansionPart) -> Value:
    """Values of one part, shape (iterates·units, n)."""
    functions = part.coef.shape[0] * part.coef.shape[1]
    values = product(part.coef.reshape(functions, -1), features)  # one product for all iterates
    return values + _leaf_values(x, features, part, functions) if isinstance(part, LeafPart) else values


def _leaf_values(x: Value, features: Value, part: LeafPart, functions: int) -> Value:
    """What leaves add to the landmarks' values.

    Graphs have no rows of their own for every leaf: kernel values of all training rows are computed, and those of other leaves
    multiplied by zero.
    """
    assert part.kernel is not None
    leaves = len(part.corrections)
    with x.graph.scope("leaves"):
        inside = _memberships(x, part.tree)
        corrections = product(part.corrections.reshape(leaves * functions, -1), features).reshaped(leaves, functions, -1)
        of_rows = inside.take(np.repeat(np.arange(leaves), np.diff(part.starts)), axis=0)
        local = part.kernel.graph_values(x, part.rows) * of_rows
        return (corrections * inside.with_axis(1)).sum(0) + product(part.leaf_coef.reshape(functions, -1), local)


def _memberships(x: Value, tree: LeafTree) -> Value:
    """One for the leaf of every column of x, zero for all others; shape (leaves, n)."""
    inside = product(np.zeros((1, tree.directions.shape[1])), x) + 1.0
    if tree.n_leaves == 1:
        return inside
    beyond = op("Greater", product(tree.directions, x), tree.thresholds[:, None])
    right = op("Cast", beyond, to=x.graph.types.DOUBLE)
    for depth in range(tree.n_leaves.bit_length() - 1):
        nodes = 2**depth
        own = right.take(np.arange(nodes - 1, 2 * nodes - 1), axis=0)
        children = op("Concat", inside * (1.0 - own), inside * own, axis=0)  # of all nodes the left ones, then the right ones
        inside = children.take(np.arange(2 * nodes).reshape(2, nodes).T.ravel(), axis=0)
    return inside


def local_scale(x: Value, mean: Value, scale: LocalScale) -> Value:
    """The logarithm of what multiplies the standard deviations, shape (outputs, n)."""
    with x.graph.scope("local_scale"):
        (features,) = first_features(x, Expansion((scale.part,), scale.intercept[None]))
        rows = []
        for j, (centres, slopes) in enumerate(zip(scale.centres, scale.slopes, strict=True)):
            away = mean.take(np.array([j]), axis=0) - centres[:, None]
            rows.append(product(slopes[None, :], op("Exp", away * away * -scale.sharpness[j])))
        eta = _part_values(x, features, scale.part) + op("Concat", *rows, axis=0) + scale.intercept[:, None]
        low, high = scale.bounds[:, :, None]
        return op("Min", op("Max", eta, low), high)


def _in_order(pieces: list[Value], expansion: Expansion, axis: int) -> Value:
    """The units of all parts along one axis, in their own order."""
    if len(pieces) == 1:
        return pieces[0]
    order = np.argsort(np.concatenate([part.units for part in expansion.parts]))
    return op("Concat", *pieces, axis=axis).take(order, axis=axis)


def _not_empty(part: ExpansionPart) -> ExpansionPart:
    """A part whose units are all constants, with one row that they weigh by zero: runtimes disagree on empty matrices."""
    if part.coef.shape[2]:
        return part
    basis = np.zeros((1, *part.basis.shape[1:]), dtype=part.basis.dtype)
    return replace(part, basis=basis, coef=np.zeros((*part.coef.shape[:2], 1)))


@singledispatch
def first_variance(first: Any, x: Value, features: list[Value]) -> Value:
    """Variance of the values, which are independent of each other; shape (units, n), or (1, units, n)."""
    raise TypeError(f"the uncertainty of a first layer of type {type(first).__name__} has no ONNX form; use return_std=False.")


@first_variance.register
def _linear_variance(first: LinearUncertainty, x: Value, features: list[Value]) -> Value:
    """x̃ᵀ Cov x̃ with x̃ = (1, x)."""
    (inputs,) = features
    regression = first.regression
    if isinstance(regression, WideRegression):
        roots = np.broadcast_to(regression.roots, (len(regression.noise), *regression.roots.shape[1:]))
        covariance = np.einsum("j,jar,jbr->jab", regression.noise, roots, roots, optimize=True)
    else:
        covariance = np.einsum("jajb->jab", regression.covariance)
    if covariance.shape[1] == 1:  # the row that :func:`_not_empty` added
        covariance = np.pad(covariance, ((0, 0), (0, 1), (0, 1)))
    return quadratic_forms(inputs.with_axis(0), covariance[None])


@first_variance.register
def _margin_variance(first: MarginUncertainty, x: Value, features: list[Value]) -> Value:
    """Eq. (SVRvareq): K_zz - |L⁻¹K_Mz|² + (1 - 1ᵀK_MM⁻¹K_Mz)²/(1ᵀK_MM⁻¹1) for every unit."""
    pieces = []
    for part, values in zip(map(_not_empty, first.expansion.parts), features, strict=True):
        assert part.kernel is not None
        alike = first.alike(part)
        margins = [first.factors[units[0]] for units in alike]
        lift, weight = np.zeros((len(margins), part.coef.shape[2])), np.zeros(len(margins))  # an empty margin set: K_zz alone
        for k, margin in enumerate(margins):
            if len(margin.columns):
                lift[k, margin.columns] = solve_triangular(margin.factor.T, margin.ones, check_finite=False)  # K_MM⁻¹1
                weight[k] = 1.0 / (margin.ones @ margin.ones)
        explained = op("Concat", *(_explained(values, margin) for margin in margins), axis=0)
        rest = 1.0 - product(lift, values)
        diagonal = part.kernel.graph_diagonal(x)
        unexplained = diagonal - explained
        unexplained = op("Where", op("Greater", unexplained, diagonal * ROUNDING), unexplained, 0.0)
        variance = unexplained + weight[:, None] * rest * rest
        pieces.append(variance.take(np.repeat(np.arange(len(alike)), [len(units) for units in alike]), axis=0))
    return _in_order(pieces, first.expansion, axis=0)


def _explained(values: Value, margin: MarginFactor) -> Value:
    """|L⁻¹K_Mz|² in blocks of rows of L⁻¹, without the zeros right of its diagonal; shape (1, n)."""
    columns, size = margin.columns, len(margin.columns)
    inverse = solve_triangular(margin.factor, np.eye(size), lower=True, check_finite=False)
    if not size:  # nothing is explained: any row, times zero
        columns, size, inverse = np.zeros(1, dtype=int), 1, np.zeros((1, 1))
    own = values.take(columns, axis=0)
    squares = []
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        below = own if stop == size else op("Slice", own, [0], [stop], [0])
        squares.append(product(inverse[start:stop, :stop], below).sum_of_squares())
    return op("Sum", *squares)
