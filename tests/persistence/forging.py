"""Forged model files: descriptions and tensors of real models, changed at random, with a checksum that is right."""

import contextlib
import json
import pickle
import re
import time
import warnings
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from model_files import HOLES, LABELS, NEW, X, Y, quick
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

from kstonet import KStoNetClassifier, KStoNetRegressor, MultiTargetSVR, StoNetClassifier, StoNetRegressor
from kstonet.gram import Iterative, LowRank
from kstonet.gram.kernels import Exponential, Tanimoto
from kstonet.layers import heads, linear
from kstonet.persistence import ModelFileError, load, save
from kstonet.storage import container
from kstonet.tables import InputError
from kstonet.tables.dates import DateColumn, with_dates
from kstonet.uncertainty.conformal import NormalFactor

SECONDS = 1.0
OF_VERSION_1 = Path(__file__).parents[1] / "reference" / "stored"
OF_A_TABLE = Path(__file__).parents[1] / "data" / "command_line" / "v2_table.kstonet"
FIRST_FILES = ("regressor_precomputed", "classifier_three", "stonet_loo")
MANY = np.random.default_rng(1).normal(size=(200, 3))
SKEWED = np.random.default_rng(2).exponential(size=200)
DATED = pd.DataFrame({"a": X[:, 0], "sold": pd.date_range("2024-01-31", periods=len(X)), "c": X[:, 2]})
ORDINAL = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, dtype=np.float64)
RIDGE: dict[str, Any] = {"tuning": "none", "loss": "squared", "C": 1.0}
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


def node(random: Random, depth: int = 2) -> Any:
    """Something that a description may hold, or must not."""
    kind = random.randrange(10 if depth else 4)
    if kind < 2:
        return random.choice(NUMBERS)
    if kind < 3:
        return random.choice(WORDS)
    if kind < 4:
        return random.choice([random.randint(-5, 5), random.uniform(-1e3, 1e3), 10.0 ** random.randint(-300, 300)])
    inner = [node(random, depth - 1) for _ in range(random.randrange(4))]
    if kind < 5:
        return inner
    if kind < 7:
        return {random.choice(TAGS): inner}
    if kind < 8:
        return {random.choice(TAGS): node(random, depth - 1)}
    if kind < 9:
        return {"float": random.choice(["nan", "-inf"])}
    return {"strings": [[1], random.randint(1, 10**9), ["a"]]}


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
            quick(StoNetRegressor, hidden_layer_sizes=(3,)).fit(X, Y[:, 0]).calibrate(),
            quick(KStoNetRegressor, target_transform="log", tuning="none").fit(X, Y[:, 0] + 2.0),
            quick(StoNetClassifier, hidden_layer_sizes=(3,), kernel="rbf", residuals=None).fit(X, LABELS == "low"),
            MultiTargetSVR(length_scale=[1.0, 2.0, 3.0]).fit(X, Y),
            quick(KStoNetClassifier, ordinal=True).fit(X, np.digitize(X[:, 0], [-0.5, 0.5])),
            quick(KStoNetRegressor, residuals=None).fit(pd.DataFrame({"a": X[:, 0], "b": LABELS}), Y[:, 0]),
            quick(KStoNetRegressor, loss="squared", C=5.0, solver=LowRank(rank=8, leaf_rows=12)).fit(X, Y[:, 0]),
            quick(KStoNetRegressor, residuals=None, loss="squared", C=5.0, solver=Iterative(rank=8, leaf_rows=12)).fit(
                X, Y[:, 0]
            ),
            quick(
                KStoNetRegressor,
                kernel=[Exponential((1.0, 2.0, 3.0)), "linear", Tanimoto(origin=(1.0, 2.0, 3.0))],
                residuals=None,
            ).fit(X, Y[:, 0]),
            quick(KStoNetRegressor, residuals=None, tuning="none").fit(HOLES, Y[:, 0]),
            quick(KStoNetRegressor, **RIDGE, residuals="local").fit(MANY, MANY[:, 0] + 3.0 * SKEWED * np.exp(0.5 * MANY[:, 1])),
            _of_dates(),
            make_pipeline(
                ColumnTransformer([("numbers", StandardScaler(), slice(0, 2)), ("codes", ORDINAL, [2])]),
                quick(KStoNetRegressor, residuals=None, tuning="none"),
            ).fit(X, Y[:, 0]),
            _of_many_classes(),
            _of_many_features(),
            _of_normal_errors(),
        ]


def _of_many_classes() -> Any:
    """A classifier with more coefficients than have a joint covariance."""
    with mock.patch.object(heads, "LARGEST_INFORMATION", 5):
        return quick(KStoNetClassifier, **RIDGE).fit(X, LABELS)


def _of_dates() -> Any:
    """A regressor that reads a column of dates, as the command line makes it."""
    date = DateColumn.of(DATED["sold"])
    model = quick(KStoNetRegressor, residuals=None, tuning="none").fit(with_dates(DATED, [date]), Y[:, 0])
    model.encoding_ = replace(model.encoding_, dates=(date,))
    return model


def _of_many_features() -> Any:
    """A linear regressor with more coefficients than have a covariance matrix."""
    with mock.patch.object(linear, "LARGEST_COVARIANCE", 1):
        return quick(StoNetRegressor, hidden_layer_sizes=(3,)).fit(X, Y[:, 0])


def _of_normal_errors() -> Any:
    """A regressor with a factor that files of early versions have."""
    model = quick(KStoNetRegressor, **RIDGE, residuals="training").fit(X, Y[:, 0])
    model.trained_ = replace(model.trained_, calibration=replace(model.trained_.calibration, factor=NormalFactor()))
    return model


def stored(folder: Any) -> list[tuple[dict[str, Any], dict[str, np.ndarray]]]:
    """Their descriptions and tensors, those of files of version 1, and of one whose metadata has the encoding of its table."""
    files = []
    for number, model in enumerate(models()):
        save(model, folder / f"{number}.kstonet", metadata={"table": {"columns": []}})
        files.append(container.read(folder / f"{number}.kstonet"))
    return files + [container.read(path) for path in (*(OF_VERSION_1 / f"{name}.kstonet" for name in FIRST_FILES), OF_A_TABLE)]


def record_names(files: Any) -> set[str]:
    """The classes of record that descriptions hold."""
    return set(re.findall(r"'record': \['(\w+)'", str([description for description, _ in files])))


def places(node: Any) -> list[tuple[Any, ...]]:
    """Where the values of a description are."""
    found: list[tuple[Any, ...]] = []
    ahead: list[tuple[tuple[Any, ...], Any]] = [((), node)]
    while ahead:
        path, node = ahead.pop()
        found.append(path)
        children = enumerate(node) if isinstance(node, list) else node.items() if isinstance(node, dict) else ()
        ahead.extend([((*path, key), child) for key, child in children])
    return found


def copied(node: Any) -> Any:
    """A description of its own, ten times sooner than by copy.deepcopy."""
    return pickle.loads(pickle.dumps(node))


def forge(
    random: Random, description: dict[str, Any], tensors: dict[str, np.ndarray]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Some of it changed."""
    description, tensors = copied(description), dict(tensors)
    for _ in range(random.randint(1, 3)):
        if random.random() < 0.5:
            name = random.choice(sorted(tensors))
            tensors[name] = _other_tensor(random, tensors[name])
            continue
        everywhere = places(description)[1:]
        path = random.choice(everywhere)
        parent = description
        for key in path[:-1]:
            parent = parent[key]
        action = random.randrange(4)
        if action == 0:
            del parent[path[-1]]
        elif action == 1:
            source = description
            for key in random.choice(everywhere):
                source = source[key] if isinstance(source, list | dict) and _holds(source, key) else source
            parent[path[-1]] = copied(source)
        else:
            parent[path[-1]] = node(random)
    return description, tensors


def _holds(node: Any, key: Any) -> bool:
    return key in node if isinstance(node, dict) else isinstance(key, int) and key < len(node)


def _other_tensor(random: Random, array: np.ndarray) -> np.ndarray:
    action = random.randrange(6)
    if action == 0 and array.size:
        array = array.copy()
        value = random.choice([np.nan, np.inf, -np.inf, -1.0, 0.0, 1e6])
        with np.errstate(invalid="ignore", over="ignore"):  # what a type cannot hold becomes something else
            array.reshape(-1)[random.randrange(array.size)] = np.float64(value).astype(array.dtype)
        return array
    if action == 1:
        return np.concatenate([array.reshape(-1), array.reshape(-1)[-1:]])
    if action == 2:
        return array[:0]
    if action == 3:
        return array[None]
    if action == 4:
        with np.errstate(invalid="ignore", over="ignore"):  # infinities have no whole number
            return array.astype(random.choice(["float32", "float16", "int8", "uint64", "bool"]))
    return -array if array.dtype.kind == "f" else array[::-1].copy()


def written(path: Any, description: dict[str, Any], tensors: dict[str, np.ndarray]) -> int:
    """Write a forged file with a right checksum: its bytes, 0 where no file can say this."""
    try:
        json.dumps(description, allow_nan=False)
        content = container.serialised(description, tensors)
    except (ValueError, OverflowError, UnicodeEncodeError):
        return 0
    return int(path.write_bytes(content))


def loaded(path: Any) -> Any:
    """The model of a file; None where it is refused, which takes less than a second as well."""
    started = time.process_time()
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return load(path)
    except ModelFileError:
        return None
    finally:
        assert time.process_time() - started < SECONDS


def check_answers(model: Any) -> None:
    """A forged model that was accepted predicts, or says by name which column must hold something else."""
    if isinstance(model, Pipeline) or model.n_features_in_ != NEW.shape[1]:
        return  # the steps of scikit-learn may still refuse rows
    with np.errstate(all="ignore"), contextlib.suppress(InputError), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no names
        assert len(model.predict(NEW)) == len(NEW)


def check_forgery(path: Any, description: dict[str, Any], tensors: dict[str, np.ndarray]) -> bool:
    """Load a forged file: a ModelFileError, or a model that answers; soon. Whether it was refused."""
    model = loaded(path) if written(path, description, tensors) else None
    if model is not None:
        check_answers(model)
    return model is None
