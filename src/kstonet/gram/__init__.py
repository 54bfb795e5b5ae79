"""Kernels and the Gram matrices made of them."""

from kstonet.gram.base import Gram
from kstonet.gram.dense import DenseGram
from kstonet.gram.kernels import KERNEL_NAMES, Kernel, make_kernel
from kstonet.gram.make import make_gram
from kstonet.gram.memory import GramTooLargeError

__all__ = ["KERNEL_NAMES", "DenseGram", "Gram", "GramTooLargeError", "Kernel", "make_gram", "make_kernel"]

from kstonet._records import storable as _storable  # until the gram branch is merged
from kstonet.gram import kernels as _k

for _c in (_k.RBF, _k.Laplacian, _k.Matern, _k.Linear, _k.Polynomial, _k.ArcCosine, _k.Precomputed):
    _storable()(_c)
