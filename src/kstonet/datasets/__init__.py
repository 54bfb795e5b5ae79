"""The data of the paper: the simulated examples as generators, the real sets as verified loaders."""

from kstonet.datasets._download import DatasetError
from kstonet.datasets._registry import DatasetInfo
from kstonet.datasets.simulated import make_full_row_rank, make_kernel_network, make_measurement_error
from kstonet.datasets.uci import list_datasets, load

__all__ = [
    "DatasetError",
    "DatasetInfo",
    "list_datasets",
    "load",
    "make_full_row_rank",
    "make_kernel_network",
    "make_measurement_error",
]
