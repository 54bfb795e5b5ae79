"""Forged model files: descriptions and tensors of real models, changed at random, with a checksum that is right."""

import copy
import json
import math
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from model_files import LABELS, NEW, X, Y, quick

from kstonet import KStoNetClassifier, KStoNetRegressor, MultiTargetSVR, StoNetClassifier, StoNetRegressor
from kstonet.gram import LowRank
from kstonet.persistence import ModelFileError, load, save
from kstonet.storage import container

SECONDS = 1.0
NUMBERS = [0, 1, -1, 2, 0.5, -0.5, 7, 1e6, -1e6, 10**30, 1e300, -1e300, True, False, None]
TAGS = ["tuple", "dict", "float", "number", "tensor", "strings", "objects", "activation", "record"]
WORDS = [
    "",
    "x",
    "nan",
    "inf",
    "t0",
    "t1",
    "rbf",
    "tanh",
    "float64",
    "RBF",
    "Scaler",
    "DenseLayer",
    "Nonesuch",
    "=1+1",
    "\0",
    "é" * 50,
]

leaves = st.one_of(st.sampled_from(NUMBERS), st.sampled_from(WORDS), st.integers(-5, 5), st.floats(allow_nan=False))
nodes = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.builds(lambda tag, content: {tag: content}, st.sampled_from(TAGS), st.lists(inner, max_size=3)),
        st.builds(lambda tag, content: {tag: content}, st.sampled_from(TAGS), inner),
        st.just({"float": "nan"}),
        st.just({"float": "-inf"}),
        st.builds(lambda width: {"strings": [[1], width, ["a"]]}, st.integers(1, 10**9)),
    ),
    max_leaves=5,
)


def models() -> list[Any]:
    """One fitted model of every kind, so that every class of record is in some file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            quick(KStoNetRegressor, tuning="none", hidden_layer_sizes=(3, 2), gamma=[0.1, 0.1, 1.0])
            .fit(X, Y)
            .update(NEW, Y[:7]),
            quick(KStoNetRegressor, residuals="training", kernel=["rbf", "laplacian", "matern32", "poly", "arccos1"]).fit(
                X, Y[:, 0]
            ),
            quick(KStoNetClassifier, hidden_layer_sizes=(3,)).fit(X, LABELS, np.linspace(0.5, 1.5, len(X))),
            quick(StoNetRegressor, hidden_layer_sizes=(3,), residuals="loo").fit(X, Y[:, 0]).calibrate(),
            quick(StoNetClassifier, hidden_layer_sizes=(3,), kernel="rbf", residuals=None).fit(X, LABELS == "low"),
            MultiTargetSVR(length_scale=[1.0, 2.0, 3.0]).fit(X, Y),
            quick(KStoNetClassifier, ordinal=True).fit(X, np.digitize(X[:, 0], [-0.5, 0.5])),
            quick(KStoNetRegressor, residuals=None).fit(pd.DataFrame({"a": X[:, 0], "b": LABELS}), Y[:, 0]),
            quick(KStoNetRegressor, residuals="loo", loss="squared", C=5.0, solver=LowRank(rank=8, leaf_rows=12)).fit(
                X, Y[:, 0]
            ),
        ]


def stored(folder: Any) -> list[tuple[dict[str, Any], dict[str, np.ndarray]]]:
    """Their descriptions and tensors."""
    files = []
    for number, model in enumerate(models()):
        save(model, folder / f"{number}.kstonet", metadata={"table": {"columns": []}})
        files.append(container.read(folder / f"{number}.kstonet"))
    return files


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where the values of a description are."""
    children = enumerate(node) if isinstance(node, list) else node.items() if isinstance(node, dict) else ()
    return [path, *(place for key, child in children for place in places(child, (*path, key)))]


def forge(
    draw: Any, description: dict[str, Any], tensors: dict[str, np.ndarray]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Some of it changed."""
    description, tensors = copy.deepcopy(description), dict(tensors)
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            name = draw(st.sampled_from(sorted(tensors)))
            tensors[name] = _other_tensor(draw, tensors[name])
            continue
        everywhere = places(description)[1:]
        path = draw(st.sampled_from(everywhere))
        parent = description
        for key in path[:-1]:
            parent = parent[key]
        action = draw(st.integers(0, 3))
        if action == 0:
            del parent[path[-1]]
        elif action == 1:
            source = description
            for key in draw(st.sampled_from(everywhere)):
                source = source[key] if isinstance(source, list | dict) and _holds(source, key) else source
            parent[path[-1]] = copy.deepcopy(source)
        else:
            parent[path[-1]] = draw(nodes)
    return description, tensors


def _holds(node: Any, key: Any) -> bool:
    return key in node if isinstance(node, dict) else isinstance(key, int) and key < len(node)


def _other_tensor(draw: Any, array: np.ndarray) -> np.ndarray:
    action = draw(st.integers(0, 5))
    if action == 0 and array.size:
        array = array.copy()
        value = draw(st.sampled_from([np.nan, np.inf, -np.inf, -1.0, 0.0, 1e6]))
        if array.dtype.kind != "f" and not math.isfinite(value):
            value = -1.0
        array.reshape(-1)[draw(st.integers(0, array.size - 1))] = value
        return array
    if action == 1:
        return np.concatenate([array.reshape(-1), array.reshape(-1)[-1:]])
    if action == 2:
        return array[:0]
    if action == 3:
        return array[None]
    if action == 4:
        with np.errstate(invalid="ignore", over="ignore"):  # infinities have no whole number
            return array.astype(draw(st.sampled_from(["float32", "float16", "int8", "uint64", "bool"])))
    return -array if array.dtype.kind == "f" else array[::-1].copy()


def check_forgery(path: Any, description: dict[str, Any], tensors: dict[str, np.ndarray]) -> bool:
    """Load a forged file: a ModelFileError, or a model that answers; soon. Whether it was refused."""
    try:
        json.dumps(description, allow_nan=False)
        content = container.serialised(description, tensors)
    except (ValueError, OverflowError, UnicodeEncodeError):
        return True  # no file can say this
    path.write_bytes(content)
    started = time.process_time()
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = load(path)
    except ModelFileError:
        return True
    finally:
        assert time.process_time() - started < SECONDS
    if model.n_features_in_ == NEW.shape[1]:
        with np.errstate(all="ignore"):
            assert len(model.predict(NEW)) == len(NEW)
    return False
