"""The paper's comparators: fully connected networks (DNN) and kernel-expanded networks (KNN), trained by gradient descent.

The paper's KNN is called a *kernel network* here: to everyone else KNN means nearest neighbours.
"""

from experiments.baselines.dnn import DNNClassifier, DNNRegressor
from experiments.baselines.kernel_network import KernelNetworkClassifier, KernelNetworkRegressor

__all__ = ["DNNClassifier", "DNNRegressor", "KernelNetworkClassifier", "KernelNetworkRegressor"]
