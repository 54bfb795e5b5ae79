"""Kernels and the Gram matrices made of them."""

from kstonet.gram.base import Gram
from kstonet.gram.dense import DenseGram
from kstonet.gram.kernels import KERNEL_NAMES, Kernel, make_kernel
from kstonet.gram.memory import GramTooLargeError

__all__ = ["KERNEL_NAMES", "DenseGram", "Gram", "GramTooLargeError", "Kernel", "make_kernel"]
