"""Deprecated: the paper's comparators are in ``experiments.baselines``, beside the experiments that compare them."""

import warnings

try:
    from experiments.baselines import DNNClassifier, DNNRegressor, KernelNetworkClassifier, KernelNetworkRegressor
except ImportError as error:
    raise ImportError(
        "kstonet.baselines has moved to experiments.baselines, which is part of kstonet's source and not of the installed "
        "package: in a checkout, pip install --editable '.[experiments]'."
    ) from error

__all__ = ["DNNClassifier", "DNNRegressor", "KernelNetworkClassifier", "KernelNetworkRegressor"]

warnings.warn(
    "kstonet.baselines has moved to experiments.baselines and will be removed in the next minor release; import it from there.",
    DeprecationWarning,
    stacklevel=2,
)
