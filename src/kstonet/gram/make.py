"""placeholder until the gram branch is merged"""

from __future__ import annotations

from typing import Any

from kstonet.gram.dense import DenseGram


def make_gram(X: Any, kernel: Any, *, solver: str = "auto", device: Any = None, dtype: str = "float64", max_memory: Any = None) -> Any:
    if device is None:
        return DenseGram(X, kernel, dtype=dtype, max_memory=max_memory)
    try:
        from kstonet.gram.torch import torch_gram
    except ImportError as error:
        raise ImportError(f"device={device!r} needs PyTorch: pip install kstonet[gpu].") from error
    return torch_gram(X, kernel, device, max_memory)
