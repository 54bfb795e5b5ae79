"""Names that have moved to ``kstonet._progress``."""

from kstonet._progress import Bar, duration, write

__all__ = ["Bar", "duration", "write"]
