"""What a description must satisfy before a model is made of it: types, and lengths that fit each other.

A record is checked against its own annotations where it is decoded (:mod:`kstonet.storage.records`); what they owe each other
is said by the functions below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kstonet.gram.expansion import Expansion
from kstonet.gram.kernels import Kernel
from kstonet.gram.leaves import LeafPart
from kstonet.storage.records import expect
from kstonet.tables.encoding import EMPTY, KINDS_OF_COLUMNS, TableEncoding
from kstonet.tables.expected import ExpectedValues
from kstonet.target_map import MAPS
from kstonet.targets import ClassTargets
from kstonet.trained import TrainedNetwork
from kstonet.uncertainty.calibration import IntervalCalibration, ProbabilityCalibration
from kstonet.uncertainty.conformal import ConformalFactor, SkewedFactor
from kstonet.uncertainty.online import MISSES, OnlineFactor


def within(indices: np.ndarray, below: int) -> bool:
    """Whether whole numbers are indices of something of a length."""
    return bool(indices.dtype.kind in "iu" and ((indices >= 0) & (indices < below)).all())


def check_kernel(kernel: Kernel | None, features: int) -> None:
    """Length scales and spreads go with the features."""
    if kernel is None:
        return
    scale, squash, projection = kernel.length_scale, kernel.squash, kernel.projection
    expect(squash is None or len(squash) == features, "the kernel has not one spread per feature")
    if projection is not None:
        expect(len(projection) == features, "the kernel has not one row of its projection per feature")
        expect(len(set(map(len, projection))) == 1 and len(projection[0]) > 0, "the projection of the kernel is no matrix")
        features = len(projection[0])
    expect(scale is None or len(scale) == features, "the kernel has not one length scale per feature")
    origin = getattr(kernel, "origin", None)
    expect(origin is None or len(origin) == features, "the kernel has not one origin per feature")
    expect(squash is None or all(spread > 0 for _, spread in squash), "the spread of a feature is not positive")
    expect(scale is None or min(scale) > 0, "a length scale is not positive")
    expect(getattr(kernel, "gamma", 1.0) > 0, "the kernel has a gamma that is not positive")


def check_encoding(encoding: TableEncoding, columns: int) -> None:
    """The encoding of a table against its number of columns."""
    expect(len(encoding.fill) == columns, "there is not one column to encode per feature")
    expect(all(0 <= j < columns for j in encoding.special), "columns are encoded that X does not have")
    for each in encoding.special.values():
        expect(each.kind in KINDS_OF_COLUMNS, f"a column holds {each.kind!r:.40}")
        expect(each.kind != EMPTY or not each.indicated, "a column without values is encoded")
    expect(encoding.n_outputs >= 1, "no column of X is encoded")
    if encoding.expected is not None:
        _check_expected(encoding.expected, int(encoding.valued.sum()))


def _check_expected(expected: ExpectedValues, columns: int) -> None:
    """What is expected of missing numbers against the number of columns that hold values."""
    partial = expected.partial
    expect(within(expected.columns, columns), "values are expected of columns that X does not have")
    expect(len(np.unique(expected.columns)) == len(expected.columns), "values of a column are expected twice")
    expect(np.allclose(partial, partial.T) and np.allclose(np.diagonal(partial), 1.0), "partial correlations are not symmetric")
    try:
        np.linalg.cholesky(partial)
    except np.linalg.LinAlgError:
        expect(False, "partial correlations are not positive definite")


def check_expansion(expansion: Expansion, features: int) -> None:
    """The first layer against the number of features."""
    iterates, units = expansion.intercept.shape
    for part in expansion.parts:
        check_kernel(part.kernel, features)
        expect(part.coef.shape[0] == iterates, "the units of the first layer differ in their iterates")
        expect((part.basis.ndim == 1) == part.holds_values, "basis and kernel of the first layer do not go together")
        expect(not isinstance(part, LeafPart) or not part.contradicts(), "leaves and rows of the first layer do not fit")
        if part.holds_values:
            expect(within(part.basis, features), "the first layer uses features that X does not have")
        else:
            expect(part.basis.shape[1] == features, "support vectors have another number of features")
    members = np.concatenate([part.units for part in expansion.parts]) if expansion.parts else np.empty(0)
    expect(iterates >= 1 and np.array_equal(np.sort(members), np.arange(units)), "the first layer lacks units")


def check_chain(layers: Sequence[Any], below: int, above: int) -> None:
    """Layers whose widths go from ``below`` to ``above``."""
    expect(len(layers) >= 1, "a network has no layers above the first")
    for layer in layers:
        expect(layer.n_inputs == below, "a layer has another number of inputs than the layer below it has units")
        below = layer.n_outputs
    expect(below == above, "the outputs of the network are not those of the targets")


def check_trained(network: TrainedNetwork, features: int) -> None:
    """A trained network against the number of features, and its parts against each other."""
    if isinstance(network.targets, ClassTargets):
        expect(network.targets.classes.ndim == 1 and len(network.targets.classes) >= 2, "there are not two classes or more")
    outputs = network.targets.n_outputs
    expect(len(network.scaler.mean) == features, "X is standardised with another number of features")
    expect(network.sample is None or network.sample.shape[1] == features, "the rows it keeps have other features")
    check_expansion(network.expansion, features)
    iterates, units = network.expansion.intercept.shape
    expect(len(network.uppers) == iterates, "iterates of the first layer and of the others differ in number")
    for layers in network.uppers:
        check_chain(layers, units, outputs)
        classes = hasattr(layers[-1], "n_classes")
        expect(classes == isinstance(network.targets, ClassTargets), "a network has layers of a wrong kind")
        expect(not any(hasattr(layer, "n_classes") for layer in layers[:-1]), "a network has layers of a wrong kind")
    uncertainty = network.uncertainty
    if uncertainty is not None:
        check_expansion(uncertainty.expansion, features)
        same = uncertainty.expansion.intercept.shape == (iterates, units)
        expect(same, "intervals and predictions have first layers of different sizes")
        expect(len(uncertainty.uppers) == iterates, "iterates of intervals and predictions differ in number")
        for own in uncertainty.uppers:
            check_chain(own, units, outputs)
            for layer in own:
                _check_variances(getattr(layer, "covariance", None))
        for contradiction in uncertainty.first.contradictions(uncertainty.expansion):
            expect(False, contradiction)
    if isinstance(network.targets, ClassTargets):
        expect(isinstance(network.calibration, ProbabilityCalibration | None), "classes are calibrated as numbers")
        if isinstance(network.calibration, ProbabilityCalibration):
            _check_probabilities(network.calibration, outputs)
    else:
        expect(outputs == 1 or not network.targets.single, "a single target has several columns")
        limits = network.targets.limits
        expect(limits is None or limits.shape[1] == outputs, "limits and targets differ in number")
        expect(limits is None or bool((limits[0] <= limits[1]).all()), "the limits of predictions are no range")
        known = network.targets.map
        expect(known is None or (outputs == 1 and known.kind in MAPS), "targets are mapped in an unknown way")
        expect(isinstance(network.calibration, IntervalCalibration | None), "numbers are calibrated as classes")
        expect(uncertainty is None or network.calibration is not None, "intervals lack their calibration")
        if isinstance(network.calibration, IntervalCalibration):
            _check_intervals(network.calibration, outputs, features)


def _check_online(factor: OnlineFactor, columns: int, dimension: int) -> None:
    """Scores and levels of a series against the targets."""
    levels, steps = factor.adaptive.levels, factor.adaptive.steps
    expect(factor.scores.shape[1] == columns and len(factor.scores) >= 1, "conformal scores and targets differ in number")
    expect(levels.shape == (len(MISSES), len(steps), columns), "adaptive levels and scores differ in number")
    expect(len(steps) >= 1 and bool((steps < 1.0).all()), "the step of an adaptive level is not below one")
    expect(
        bool(np.abs(factor.adaptive.weights.sum(axis=1) - 1.0).max() < 1e-6), "the weights of the steps do not add up to one"
    )
    expect(factor.dimension == dimension and factor.n_seen >= 0, "the scores of a series are of another dimension")
    expect(factor.df is None or factor.df > 2.0, "the scores belong to a distribution without a variance")


def _check_variances(covariance: np.ndarray | None) -> None:
    """No variance is negative beyond rounding."""
    if covariance is not None and covariance.size:
        if covariance.ndim == 3:  # one matrix per class
            variances = np.diagonal(covariance, axis1=1, axis2=2)
        else:
            variances = np.diagonal(covariance.reshape(int(np.sqrt(covariance.size)), -1))
        expect(bool(variances.min() >= -1e-8 * np.abs(covariance).max()), "a variance is negative")


def _check_intervals(calibration: IntervalCalibration, outputs: int, features: int) -> None:
    noise = calibration.noise
    expect(len(noise.scale) == outputs, "the noise and the targets differ in number")
    expect(noise.df > 2.0, "the predictive distribution has no variance")
    _check_variances(noise.covariance)
    expect((getattr(calibration.factor, "df", None) or 1.0) > 0, "a distribution has no freedom")
    expect((noise.growth is None) == (noise.span is None), "the noise grows, but not over which means")
    for factor in (calibration.factor, calibration.out_of_sample):
        if isinstance(factor, ConformalFactor | SkewedFactor):
            expect(factor.scores.shape[1:] in ((), (outputs,)), "conformal scores and targets differ in number")
            expect(factor.df is None or factor.df > 2.0, "the scores belong to a distribution without a variance")
    if isinstance(calibration.factor, OnlineFactor):
        _check_online(calibration.factor, outputs * (2 if calibration.factor.skewed else 1), 1)
    labels = () if calibration.groups is None else calibration.groups
    expect(len(labels) == len(calibration.group_factors), "groups and their factors differ in number")
    for own in calibration.group_factors:
        expect(own.scores.shape[1:] in ((), (outputs,)), "conformal scores and targets differ in number")
    expect(outputs == 1 or len(calibration.group_joints) in (0, len(labels)), "groups and their regions differ in number")
    for joint in (calibration.joint, calibration.joint_out_of_sample, *calibration.group_joints):
        if joint is not None:
            expect(joint.factor.scores.shape[1:] == (1,), "the distances of a region are not one per row")
            expect(joint.factor.dimension == outputs > 1, "a region and the targets differ in number")
            if isinstance(joint.factor, OnlineFactor):
                expect(not joint.factor.skewed, "the distances of a region have two tails")
                _check_online(joint.factor, 1, outputs)
            expect(
                joint.factor.df is None or joint.factor.df > 2.0, "the distances belong to a distribution without a variance"
            )
            expect(joint.shrinkage <= 1.0, "the correlations of a region change their sign")
    if calibration.local is not None:
        expect(len(calibration.local.intercept) == outputs, "the local noise and the targets differ in number")
        expect((calibration.local.bounds[0] <= calibration.local.bounds[1]).all(), "the local noise has no range")
        check_expansion(Expansion((calibration.local.part,), calibration.local.intercept[None]), features)


def _check_probabilities(calibration: ProbabilityCalibration, outputs: int) -> None:
    expect(calibration.temperature > 0 and calibration.variance_scale > 0, "the calibration is not positive")
    expect(calibration.first_scale > 0 and 0 <= calibration.growth <= 1, "the calibration is not positive")
    if calibration.floor is not None:
        floored = len(calibration.floor) == outputs and calibration.floor.sum() < 1.0
        expect(floored, "the floor of the probabilities is none")
    for rows in (calibration.out_of_sample, calibration.given):
        if rows is None:
            continue
        expect(len(rows) in (2, 3), "calibration rows are not labelled")
        logits, codes, *weights = rows
        labelled = logits.shape == (len(codes), outputs) and within(codes, outputs)
        expect(labelled, "calibration rows are not labelled")
        expect([w.shape for w in weights] in ([], [codes.shape]), "there is not one weight per calibration row")
