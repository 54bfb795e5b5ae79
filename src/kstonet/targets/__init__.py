"""What is predicted: numbers or classes. The one place that knows how training, prediction and calibration differ by it."""

from kstonet.targets.base import Calibration, Targets, TargetsKind
from kstonet.targets.classes import ClassTargets, OrderedClasses
from kstonet.targets.numbers import MappedTargets, NumericTargets

__all__ = ["Calibration", "ClassTargets", "MappedTargets", "NumericTargets", "OrderedClasses", "Targets", "TargetsKind"]
