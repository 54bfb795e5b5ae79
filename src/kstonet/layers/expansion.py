"""The former place of :mod:`kstonet.gram.expansion`."""

from kstonet.gram.expansion import Expansion, ExpansionPart

__all__ = ["Expansion", "ExpansionPart"]
