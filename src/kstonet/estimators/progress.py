"""A name that has moved to ``kstonet._progress``."""

from kstonet._progress import Progress

__all__ = ["Progress"]
