"""Kernels k(x, y), written once for NumPy arrays and PyTorch tensors; one class holds all that is known of a kernel."""

from kstonet.gram.kernels.base import Kernel, UserKernel, squared_distances
from kstonet.gram.kernels.distance import RBF, Exponential, Laplacian, Matern, Stationary
from kstonet.gram.kernels.products import ArcCosine, Linear, Polynomial, Precomputed
from kstonet.gram.kernels.registry import kernel_names, make_kernel, register_kernel, resolve_gamma, takes_gamma
from kstonet.gram.kernels.tanimoto import Tanimoto

#: Names of the kernels of this package; :func:`kernel_names` also has those registered from outside.
KERNEL_NAMES = kernel_names()

__all__ = [
    "KERNEL_NAMES",
    "RBF",
    "ArcCosine",
    "Exponential",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Polynomial",
    "Precomputed",
    "Stationary",
    "Tanimoto",
    "UserKernel",
    "kernel_names",
    "make_kernel",
    "register_kernel",
    "resolve_gamma",
    "squared_distances",
    "takes_gamma",
]
