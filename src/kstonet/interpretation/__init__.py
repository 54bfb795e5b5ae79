"""What a trained network says about the data: which columns matter, and in which directions."""

from kstonet.interpretation.importance import FeatureImportance, feature_importance, outer_product

__all__ = ["FeatureImportance", "feature_importance", "outer_product"]
