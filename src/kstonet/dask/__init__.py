"""K-StoNets on Dask collections: rows that are larger than one machine, trained where they are (extra ``[dask]``)."""

try:
    from kstonet.dask.dask_rows import ClusterLostError
except ImportError as error:  # pragma: no cover - said where the extra is missing
    raise ImportError(f"kstonet.dask needs Dask ({error}): pip install kstonet[dask].") from error
from kstonet.dask.estimators import DaskKStoNetClassifier, DaskKStoNetRegressor

__all__ = ["ClusterLostError", "DaskKStoNetClassifier", "DaskKStoNetRegressor"]
