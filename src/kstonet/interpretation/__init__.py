"""What a trained network says about the data: which columns matter, and in which directions."""

from kstonet.interpretation.importance import FeatureImportance, feature_importance, outer_product
from kstonet.interpretation.reduction import SufficientReduction, sufficient_reduction

__all__ = ["FeatureImportance", "SufficientReduction", "feature_importance", "outer_product", "sufficient_reduction"]
