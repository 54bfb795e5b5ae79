"""Kernels and the Gram matrices made of them."""

from kstonet.gram.base import Gram, RegularisedGram, StructuredGram
from kstonet.gram.dense import DenseGram
from kstonet.gram.iterative import IterativeGram
from kstonet.gram.iterative_options import Iterative
from kstonet.gram.kernels import KERNEL_NAMES, Kernel, kernel_names, make_kernel, register_kernel
from kstonet.gram.low_rank import LowRankGram
from kstonet.gram.low_rank_options import LowRank
from kstonet.gram.making import gram_names, make_gram, register_gram
from kstonet.gram.memory import GramTooLargeError
from kstonet.gram.planning import Plan

__all__ = [
    "KERNEL_NAMES",
    "DenseGram",
    "Gram",
    "GramTooLargeError",
    "Iterative",
    "IterativeGram",
    "Kernel",
    "LowRank",
    "LowRankGram",
    "Plan",
    "RegularisedGram",
    "StructuredGram",
    "gram_names",
    "kernel_names",
    "make_gram",
    "make_kernel",
    "register_gram",
    "register_kernel",
]
