"""The trained network: the frozen record of a fit, and everything it answers.

Files, ONNX graphs and the report read this record; an estimator holds it as ``trained_``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import expit

from kstonet._records import storable
from kstonet.gram.blocks import row_blocks
from kstonet.gram.expansion import Expansion
from kstonet.gram.kernels import Kernel
from kstonet.gram.making import expansion_on
from kstonet.gram.planning import Plan
from kstonet.layers.base import UpperLayer
from kstonet.layers.moments import FIRST_LAYER, Moments
from kstonet.network import forward_above, jacobian_above
from kstonet.scaling import Scaler
from kstonet.targets import ClassTargets, NumericTargets
from kstonet.uncertainty.calibration import IntervalCalibration, ProbabilityCalibration
from kstonet.uncertainty.conformal import NormalFactor
from kstonet.uncertainty.distribution import NOISE, PredictiveDistribution, probabilities
from kstonet.uncertainty.mapped import MappedDistribution
from kstonet.uncertainty.network import NetworkUncertainty
from kstonet.uncertainty.prediction_sets import set_scores, set_thresholds
from kstonet.uncertainty.regions import PredictiveRegion
from kstonet.uncertainty.ridge_scale import certainty
from kstonet.uncertainty.score_bounds import score_bounds
from kstonet.uncertainty.tempering import Tempering, best_tempering, fresh_tempering


@storable(history="any", chosen="any", choice="any", sample="float s p")
@dataclass(frozen=True)
class TrainedNetwork:
    """What a training leaves behind.

    All methods take rows as users give them, before any scaling, as float arrays of shape (n, n_features).

    Parameters
    ----------
    scaler : Scaler
        Standardises the features.
    targets : NumericTargets or ClassTargets
        What is predicted, and its scale or classes.
    expansion : Expansion
        The first layers of the averaged iterates, at new rows.
    uppers : tuple of tuple of UpperLayer
        The layers above, for each of these iterates.
    n_iter : int
        Iterations of Algorithm 1 that were done.
    history : list of dict
        One record per iteration.
    residuals : str or None
        Which residuals the calibration was learnt from: "local", "crossfit", "training", or None without intervals.
    uncertainty : NetworkUncertainty, optional
        The moments of the outputs; None for a model that gives means only.
    calibration : IntervalCalibration or ProbabilityCalibration, optional
        What turns the moments into intervals, or logits into probabilities.
    chosen : dict
        The parameters that were chosen by validation, with their values.
    choice : dict
        How they were chosen: "reason" in words and "table", what was tried.
    plan : Plan, optional
        How the training held its kernel matrix, and why; None without one.
    sample : ndarray of shape (s, p), optional
        Some of the training rows, standardised: what is said of the columns of the data is averaged over them.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet import KStoNetRegressor
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> network = KStoNetRegressor(tuning="none", max_iter=3, random_state=0).fit(X, np.sin(X[:, 0])).trained_
    >>> network.mean(X).shape, network.interval(X, 0.9).shape, network.n_iter
    ((60,), (60, 2), 3)
    """

    scaler: Scaler
    targets: NumericTargets | ClassTargets
    expansion: Expansion
    uppers: tuple[tuple[UpperLayer, ...], ...]
    n_iter: int
    history: list[dict[str, Any]]
    residuals: str | None = None
    uncertainty: NetworkUncertainty | None = None
    calibration: IntervalCalibration | ProbabilityCalibration | None = None
    chosen: dict[str, Any] = field(default_factory=dict)
    choice: dict[str, Any] = field(default_factory=dict)
    plan: Plan | None = None
    sample: np.ndarray | None = None

    # -- facts ---------------------------------------------------------------------------------------------------------------

    @property
    def kernel(self) -> Kernel | None:
        """The kernel of the first unit; None where the first layer is linear in the features."""
        return self.expansion.parts[0].kernel

    @property
    def pairwise(self) -> bool:
        """Whether rows to predict are kernel values against the training rows, not features."""
        return self.kernel is not None and self.kernel.precomputed

    @property
    def n_support(self) -> int:
        """Training rows (or features) kept for prediction."""
        return self.expansion.n_support

    @property
    def has_intervals(self) -> bool:
        """Whether the network knows its uncertainty; a training without residuals, or an interrupted one, leaves it out."""
        return self.uncertainty is not None

    @property
    def hidden_layer_sizes(self) -> tuple[int, ...]:
        """Units of every hidden layer."""
        return tuple(layer.n_inputs for layer in self.uppers[-1])

    @property
    def temperature(self) -> float:
        """Divides the logits of a classifier."""
        return self._probability_calibration.temperature

    @property
    def tempering(self) -> Tempering:
        """What makes calibrated probabilities of the logits of a classifier."""
        return self._probability_calibration.tempering

    @property
    def variance_scale(self) -> float:
        """Multiplies the variance of a classifier's logits."""
        return self._probability_calibration.variance_scale

    @property
    def _probability_calibration(self) -> ProbabilityCalibration:
        return self.calibration if isinstance(self.calibration, ProbabilityCalibration) else ProbabilityCalibration()

    def _numeric(self) -> NumericTargets:
        if not isinstance(self.targets, NumericTargets):
            raise TypeError("a classification has no distribution of numbers; ask for proba or proba_interval.")
        return self.targets

    def _classes(self) -> ClassTargets:
        if not isinstance(self.targets, ClassTargets):
            raise TypeError("a regression has no class probabilities; ask for mean, distribution or interval.")
        return self.targets

    def on(self, device: str | None) -> TrainedNetwork:
        """The network with the kernel values of its predictions on a device that PyTorch knows; not for storing.

        Everything is computed in float64, as on the CPU, and agrees with it to rounding: 1e-9 of a standardised output.
        """
        if device is None:
            return self
        placed, uncertainty = expansion_on(self.expansion, device), self.uncertainty
        if uncertainty is not None:
            same = uncertainty.expansion is self.expansion
            uncertainty = replace(uncertainty, expansion=placed if same else expansion_on(uncertainty.expansion, device))
        return replace(self, expansion=placed, uncertainty=uncertainty)

    # -- what every network answers ------------------------------------------------------------------------------------------

    def outputs(self, X: np.ndarray) -> np.ndarray:
        """Outputs of every averaged iterate, in the units of training, shape (iterates, n, outputs)."""
        parts = [
            np.stack([forward_above(layers, own)[-1] for layers, own in zip(self.uppers, first, strict=True)])
            for _, first, _ in self.expansion.blocks(self.scaler.forward(X))
        ]
        return np.concatenate(parts, axis=1)

    def losses(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Squared error of standardised targets, or negative log-likelihood, of every row."""
        return self.targets.losses(self.outputs(X), self.targets.outputs(y))

    def mean(self, X: np.ndarray) -> np.ndarray:
        """Predicted numbers in the units of the targets, or class probabilities."""
        if isinstance(self.targets, ClassTargets):
            return self.proba(X)
        return self.targets.in_units(self.outputs(X).mean(axis=0))

    def gradient(self, X: np.ndarray) -> np.ndarray:
        """Gradients of :meth:`mean`, in its units and those of X: (n, p) of a single number, else (n, outputs, p)."""
        gradients = np.asarray(self.standard_gradient(self.scaler.forward(X)) / self.scaler.scale)
        return gradients[:, 0] if isinstance(self.targets, NumericTargets) and self.targets.single else gradients

    def standard_gradient(self, rows: np.ndarray) -> np.ndarray:
        """The same with respect to standardised rows, of shape (n, outputs, p), in blocks of bounded memory.

        The chain rule ends in one kernel expansion whose coefficients differ from row to row: the sum over iterates and units
        of their coefficients times ∂ mean / ∂ unit.
        """
        outputs = self.targets.n_outputs
        gradients = np.empty((len(rows), outputs, len(self.scaler.mean)))
        width = max(part.width for part in self.expansion.parts)
        for block in row_blocks(len(rows), (4 + 2 * outputs) * width + 2 * outputs**2 * len(self.uppers)):
            ((_, firsts, _),) = self.expansion.blocks(rows[block])  # a block of these is larger
            values = [forward_above(layers, first) for layers, first in zip(self.uppers, firsts, strict=True)]
            pull = self.targets.derivatives(np.stack([own[-1] for own in values]), self.tempering)
            above = np.stack([jacobian_above(layers, own) for layers, own in zip(self.uppers, values, strict=True)])
            gradients[block] = self.expansion.pulled(rows[block], pull[..., -above.shape[2] :] @ above)
        return gradients

    def iterate(self, t: int) -> TrainedNetwork:
        """One of the averaged iterates alone; it gives means, probabilities and gradients."""
        return replace(self, expansion=self.expansion.iterate(t), uppers=self.uppers[t : t + 1], uncertainty=None)

    def transform(self, X: np.ndarray) -> np.ndarray:
        """The last hidden layer (before its activation) of the last iterate: a sufficient reduction of X."""
        blocks = self.expansion.blocks(self.scaler.forward(X))
        return np.concatenate([forward_above(self.uppers[-1], first[-1])[-2] for _, first, _ in blocks])

    def moments(self, X: np.ndarray, order: int = 1) -> Moments:
        """Moments of the outputs, in the units of training, before noise and calibration."""
        return self._known_uncertainty().moments(self.scaler.forward(X), order)

    def _known_uncertainty(self) -> NetworkUncertainty:
        if self.uncertainty is None:
            raise ValueError(
                "the model was fitted with residuals=None, without intervals, or is what a callback saw, or an interrupt left, "
                "before they were prepared; let a fit with residuals='crossfit' end."
            )
        return self.uncertainty

    # -- regression ----------------------------------------------------------------------------------------------------------

    def distribution(self, X: np.ndarray, order: int = 1) -> PredictiveDistribution | MappedDistribution:
        """The predictive distribution of new observations, in the units of the targets."""
        plain, own = self._plain_distribution(X, order), self._numeric().map
        return plain if own is None else MappedDistribution(plain, own)

    def _plain_distribution(self, X: np.ndarray, order: int = 1) -> PredictiveDistribution:
        """The same before the inverse of a map: what intervals are calibrated on."""
        targets, moments = self._numeric(), self.moments(X, order)
        assert isinstance(self.calibration, IntervalCalibration)
        noise, size = self.calibration.noise, targets.scaler.scale
        parts = {NOISE: noise.noise(moments.mean)} | noise.scaled(moments.parts)
        parts = {source: size[:, None] * part * size for source, part in parts.items()}
        local = self.calibration.scales(self.scaler.forward(X), moments.mean)
        if local is not None:
            parts = {source: local[:, :, None] * part * local[:, None, :] for source, part in parts.items()}
        means = targets.held(targets.scaler.backward(moments.mean))
        return PredictiveDistribution(means, parts, targets.single, noise.df, self.calibration.factor, self.calibration.joint)

    def interval(
        self, X: np.ndarray, coverage: Any = 0.95, kind: str = "prediction", groups: np.ndarray | None = None
    ) -> np.ndarray:
        """Intervals that cover a new observation ("prediction") or its mean ("confidence").

        With the ``groups`` of the rows, the factors of a calibration by groups; rows of other groups have the common one.
        """
        if kind not in ("prediction", "confidence"):
            raise ValueError(f"kind={kind!r} must be 'prediction' or 'confidence'.")
        distribution = self.distribution(X)
        if kind == "confidence":
            return distribution.of_mean.interval(coverage)
        bounds = distribution.interval(coverage)
        if groups is not None:
            calibration = self._by_groups()
            assert calibration.groups is not None
            for label, factor in zip(calibration.groups, calibration.group_factors, strict=True):
                rows = np.flatnonzero(groups == label)
                bounds[rows] = distribution.take(rows, factor).interval(coverage)
        return bounds

    def region(self, X: np.ndarray, coverage: Any = 0.95, groups: np.ndarray | None = None) -> PredictiveRegion:
        """Ellipsoids that hold all targets of a new observation; with the ``groups`` of the rows as for intervals."""
        distribution = self.distribution(X)
        found = distribution.region(coverage)
        if groups is not None:
            calibration = self._by_groups()
            assert calibration.groups is not None
            radius = found.radius.copy()
            for label, joint in zip(calibration.groups, calibration.group_joints, strict=True):
                radius[groups == label] = joint.factor.tails(probabilities("coverage", coverage))[1][:, 0]
            found = replace(found, radius=radius)
        return found

    def _by_groups(self) -> IntervalCalibration:
        assert isinstance(self.calibration, IntervalCalibration)
        if self.calibration.groups is None:
            raise ValueError("groups are given, but the model was not calibrated by groups: calibrate(X, y, groups=...).")
        return self.calibration

    # -- classification ------------------------------------------------------------------------------------------------------

    def proba(self, X: np.ndarray, *, tempered: bool = True) -> np.ndarray:
        """Class probabilities, averaged over the iterates; tempered by the calibration unless that is declined."""
        return self._classes().probabilities(self.outputs(X), self.tempering if tempered else Tempering())

    def log_proba(self, X: np.ndarray) -> np.ndarray:
        """Logarithms of the class probabilities."""
        return self._classes().log_probabilities(self.outputs(X), self.tempering)

    def log_odds_variances(self, X: np.ndarray) -> dict[str, np.ndarray]:
        """Variance of the log-odds of every class by source, (n, classes) each: tempered, and scaled by the calibration.

        Where probabilities have a floor, these are the log-odds of labels that follow the features.
        """
        logits, parts = self._even_variances(X)
        growth = certainty(logits) ** self._probability_calibration.growth
        return {source: growth * part for source, part in parts.items()}

    def _even_variances(self, X: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Tempered logits, and the variances that their log-odds would have if every class were as likely as not."""
        self._classes()
        found = self._known_uncertainty().log_odds(self.scaler.forward(X), self.temperature)
        parts = {source: self.variance_scale * part for source, part in found.parts.items()}
        parts[FIRST_LAYER] = self._probability_calibration.first_scale * parts[FIRST_LAYER]
        return found.logits, parts

    def proba_interval(self, X: np.ndarray, coverage: Any = 0.95) -> np.ndarray:
        """Confidence intervals for the class probabilities, score intervals of the log-odds; above their floor."""
        levels = probabilities("coverage", coverage)
        deviation = np.sqrt(np.sum(list(self._even_variances(X)[1].values()), axis=0))
        follows = replace(self.tempering, floor=None)
        p = np.clip(self._classes().probabilities(self.outputs(X), follows), 1e-15, 1.0 - 1e-15)
        reach = deviation[:, :, None] * NormalFactor()(levels)
        centre = np.broadcast_to(np.log(p / (1.0 - p))[:, :, None], reach.shape)
        bounds = expit(np.stack(score_bounds(centre, reach, self._probability_calibration.growth), axis=2))
        bounds = np.moveaxis(self.tempering.above_floor(np.moveaxis(bounds, 1, -1)), -1, 1)
        return np.asarray(bounds if np.ndim(coverage) else bounds[..., 0])

    def sets(self, X: np.ndarray, coverage: Any = 0.9, class_conditional: bool = False) -> np.ndarray:
        """Which classes belong to the prediction sets, shape (n, k), with one more axis for a sequence of coverages."""
        self._classes()
        levels = probabilities("coverage", coverage)
        calibration = self._probability_calibration
        rows = calibration.given or calibration.out_of_sample
        if rows is None:
            raise ValueError(
                f"this fit (residuals={self.residuals!r}) keeps no out-of-sample predictions, which prediction sets need; "
                "calibrate it with rows it was not fitted on, or fit with residuals='crossfit'."
            )
        found = set_thresholds(self.tempering.probabilities(rows[0]), rows[1], levels, class_conditional)
        members = set_scores(self.proba(X))[:, :, None] <= found
        return np.asarray(members if np.ndim(coverage) else members[..., 0])

    # -- calibration ---------------------------------------------------------------------------------------------------------

    def calibrated(
        self,
        X: np.ndarray | None = None,
        y: np.ndarray | None = None,
        weight: np.ndarray | None = None,
        groups: np.ndarray | None = None,
    ) -> TrainedNetwork:
        """The network calibrated with rows it was not fitted on; without rows, with its own out-of-sample predictions."""
        if X is None:
            return replace(self, calibration=self._own_calibration())
        assert y is not None
        if isinstance(self.targets, ClassTargets):
            log_p = np.log(np.maximum(self.proba(X, tempered=False), 1e-300))
            codes = self.targets.outputs(y)
            found = best_tempering(log_p, codes)
            return replace(self, calibration=self._probability_calibration.tempered(found, (log_p, codes)))
        distribution = self._plain_distribution(X)
        assert isinstance(self.calibration, IntervalCalibration)
        errors = self._numeric().mapped(y) - distribution.means
        return replace(self, calibration=self.calibration.of_rows(errors, distribution, weight, groups))

    def updated(self, X: np.ndarray, y: np.ndarray, step: float | str = "auto") -> TrainedNetwork:
        """The network whose intervals have adapted to rows of a series, in the order of their arrival."""
        distribution = self._plain_distribution(X)
        assert isinstance(self.calibration, IntervalCalibration)
        errors = self._numeric().mapped(y) - distribution.means
        return replace(self, calibration=self.calibration.after(errors, distribution, step))

    def _own_calibration(self) -> IntervalCalibration | ProbabilityCalibration:
        calibration = self.calibration
        if calibration is None or calibration.out_of_sample is None:
            raise ValueError(
                f"this fit (residuals={self.residuals!r}) keeps no out-of-sample predictions, or was interrupted before it had "
                "them; give X and y, or fit with residuals='crossfit'."
            )
        if isinstance(calibration, ProbabilityCalibration):
            return calibration.tempered(fresh_tempering(*calibration.out_of_sample), None)
        return calibration.of_fit()
