"""Names that have moved to ``kstonet._checks``."""

from kstonet._checks import both_or_neither, require, whole

__all__ = ["both_or_neither", "require", "whole"]
