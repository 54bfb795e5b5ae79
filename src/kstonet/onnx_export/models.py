"""What a fitted model gives to a graph, and :func:`to_onnx`."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import kstonet
from kstonet._files import destination, write_whole
from kstonet.estimators import KStoNetClassifier, KStoNetRegressor, MultiTargetSVR, StoNetClassifier, StoNetRegressor
from kstonet.onnx_export.encoding import categories_of, encoded, encoded_table
from kstonet.onnx_export.first_layer import first_features, first_values, first_variance, local_scale
from kstonet.onnx_export.graph import Graph, Output, Value, op, storable
from kstonet.onnx_export.network import forward, variances
from kstonet.onnx_export.target_map import deviation_of, mean_of
from kstonet.tables import TableEncoding
from kstonet.targets import ClassTargets, NumericTargets
from kstonet.trained import TrainedNetwork
from kstonet.uncertainty.calibration import IntervalCalibration
from kstonet.uncertainty.conformal import ConformalFactor, SkewedFactor

REGRESSORS, CLASSIFIERS = (KStoNetRegressor, StoNetRegressor), (KStoNetClassifier, StoNetClassifier)
EXPORTED = (*REGRESSORS, *CLASSIFIERS, MultiTargetSVR)
DTYPES = ("float64", "float32")
COVERAGES = [k / 100 for k in range(1, 100)] + [0.995, 0.999]  # whose interval factors a file holds


def to_onnx(model: Any, path: str | os.PathLike[str], *, return_std: bool = True, dtype: str = "float64") -> None:
    """Write the prediction of a fitted model as an ONNX graph, which onnxruntime runs without Python and without kstonet.

    The graph takes rows as ``predict`` does, before any scaling, and gives what ``predict`` gives, to rounding.

    - input ``X``: (rows, features), float64 or, with ``dtype="float32"``, float32; any number of rows.
    - Regressors give ``mean``, (rows,) or (rows, targets), as ``predict``; and ``std``, of the same shape, as
      ``predict(return_std=True)``. Models fitted with ``residuals=None``, and :class:`MultiTargetSVR`, have no ``std``.
    - Classifiers give ``label``, (rows,), as ``predict``: strings, int64, float64 or bool like ``classes_``; and
      ``probabilities``, (rows, classes), as ``predict_proba``, with what ``calibrate`` has learnt.

    Parameters
    ----------
    model : KStoNetRegressor, KStoNetClassifier, StoNetRegressor, StoNetClassifier or MultiTargetSVR
        Fitted, with one of the named kernels. Of a search ``best_estimator_`` is written; of a pipeline also the steps before
        the model, if they are scalers, SimpleImputer, PCA, VarianceThreshold or a ColumnTransformer of these.
    path : str or path-like
        By convention with the suffix ``.onnx``. An existing file is replaced.
    return_std : bool, default=True
        Whether the graph of a regressor has the output ``std``. Means alone are 5 to 20 times faster, because onnxruntime
        computes all outputs of a graph whichever are asked for.
    dtype : {"float64", "float32"}, default="float64"
        Type of the rows that the graph takes and of the numbers that it gives. It computes in float64 in any case.

    Raises
    ------
    TypeError
        For other models, and for kernels that are functions or ``"precomputed"``.
    ValueError
        Where the file would exceed the 2 GiB of the format.

    See Also
    --------
    save : keeps the model itself, with everything it can answer.

    Notes
    -----
    **Intervals.** Half the width of an interval is ``std`` times a factor: a quantile of the scores of out-of-sample residuals
    (conformal), or the normal one with ``residuals="training"``. The metadata property ``interval_factors`` holds it as JSON
    for coverages of 0.01, 0.02, ..., 0.99, 0.995 and 0.999: ``{"0.9": 1.64, ...}``, with a list of factors for several targets,
    and ``null`` where rows given to ``calibrate`` were too few. Where errors are skewed, it is the reach above the mean, and
    ``interval_factors_below`` that below it. Other properties are ``model``, ``feature_names``,
    ``calibration`` ("student" or "conformal"), and for classifiers ``classes`` and ``calibration_temperature``.

    **Transformed targets.** Where the target was learned as its square root or logarithm, z (``tuned_["target_transform"]``),
    ``mean`` and ``std`` are in its own units, and two more outputs, ``transformed_mean`` and ``transformed_std``, are those of
    z: bounds of an interval are ``transformed_mean`` and factors times ``transformed_std``, put back into the units of the
    target. The property ``target_transform`` holds ``kind``, ``offset`` and ``top`` of :class:`kstonet.target_map.TargetMap`,
    whose ``backward`` does that: the square of z, or exp(z) less ``offset``, not below zero; above ``top`` the tangent there.

    **Precision.** All computations are in float64: a variance is a difference of nearly equal numbers near the training rows,
    and float32 would lose it. With ``dtype="float32"`` rows are cast when they come in, and results when they go out. Outputs
    differ from those of ``predict`` in the last digits; where ``std`` hangs on a matrix that is nearly singular (a linear
    kernel with fewer features than support vectors), its own last digits are rounding, and so is more of the difference.

    **Batches.** ``predict`` cuts its rows into blocks, a graph does not: hand in about a thousand rows at a time. A batch takes
    up to ten times 8 bytes for every row and support vector, 70 MiB for a thousand of each.

    **Missing values** are NaN, and the graph replaces them as ``predict`` does; infinite values are not refused as they are
    there. **Categories** are text: the columns of a model that hold them are a second input, ``categories`` of shape (rows,
    columns of categories), and ``X`` has the others, truth values as 0 and 1. The properties ``category_names`` and
    ``feature_names`` say which columns, in which order. A missing category is the empty text, one that the training rows did
    not have is none of the known ones, and a whole number is written without a point, 7 and not 7.0.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import onnxruntime
    >>> import kstonet
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> model = kstonet.KStoNetRegressor(tuning="none", max_iter=3, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "sine.onnx"
    ...     kstonet.to_onnx(model, path)
    ...     session = onnxruntime.InferenceSession(path)
    >>> mean, std = session.run(["mean", "std"], {"X": X})
    >>> np.allclose(mean, model.predict(X)), np.allclose(std**2, model.predict_var(X))
    (True, True)

    Intervals of 90 %:

    >>> import json
    >>> factors = json.loads(session.get_modelmeta().custom_metadata_map["interval_factors"])
    >>> interval = np.column_stack([mean - factors["0.9"] * std, mean + factors["0.9"] * std])
    >>> np.allclose(interval, model.predict_interval(X, 0.9))
    True
    """
    from kstonet.onnx_export.steps import taken_apart, transformed  # imported late: it needs much of scikit-learn

    if dtype not in DTYPES:
        raise ValueError(f"dtype={dtype!r} must be one of {', '.join(map(repr, DTYPES))}.")
    steps, model = taken_apart(model)
    if not isinstance(model, EXPORTED):
        known = ", ".join(kind.__name__ for kind in EXPORTED)
        raise TypeError(
            f"model is a {type(model).__name__}; kstonet.to_onnx exports {known}, and pipelines and searches of them."
        )
    check_is_fitted(model)
    path = destination(Path(path), "model.onnx")
    features: Any = steps[0] if steps else model
    encoding: TableEncoding | None = getattr(model, "encoding_", None)
    names: np.ndarray | None = getattr(features, "feature_names_in_", None)
    metadata = {"model": type(model).__name__}
    if encoding is not None and categories_of(encoding) and not steps:
        named = [f"x{j}" for j in range(model.n_features_in_)] if names is None else names.tolist()
        x = encoded_table(Graph(), encoding, named, dtype, metadata)
    else:
        x = encoded(transformed(Graph().input("X", features.n_features_in_, dtype).transposed(), steps), encoding)
        if names is not None:
            metadata["feature_names"] = json.dumps(names.tolist())
    if isinstance(model, MultiTargetSVR):
        outputs = _of_svr(model, x)
    elif isinstance(model, REGRESSORS):
        outputs = _of_regressor(model.trained_, x, metadata, return_std)
    else:
        outputs = _of_classifier(model.trained_, x, metadata)
    outputs = {name: replace(own, dtype=dtype) if own.dtype is np.float64 else own for name, own in outputs.items()}
    content = x.graph.finished(outputs, metadata, producer_name="kstonet", producer_version=kstonet.__version__)
    write_whole(path, content)


def _of_svr(model: MultiTargetSVR, x: Value) -> dict[str, Output]:
    expansion, targets = model.expansion(), len(model.intercept_)
    mean = first_values(x, first_features(x, expansion), expansion).mean(0)
    return {"mean": _per_row(mean, targets, model._single_target)}


def _of_regressor(network: TrainedNetwork, x: Value, metadata: dict[str, str], return_std: bool) -> dict[str, Output]:
    targets, calibration = network.targets, network.calibration
    assert isinstance(targets, NumericTargets)
    x, features, values = _layers(network, x)
    size, means, k = targets.scaler.scale[:, None], values[-1], targets.n_outputs
    mean = means.mean(0)
    centre = mean * size + targets.scaler.mean[:, None]
    if targets.limits is not None:
        low, high = targets.limits[:, :, None]
        centre = op("Min", op("Max", centre, low), high)
    outputs = {"mean": _per_row(centre if targets.map is None else mean_of(targets.map, centre), k, targets.single)}
    if targets.map is not None:
        outputs["transformed_mean"] = _per_row(centre, k, targets.single)
        metadata["target_transform"] = json.dumps({name: getattr(targets.map, name) for name in ("kind", "offset", "top")})
    if network.uncertainty is None or not return_std:
        return outputs
    assert isinstance(calibration, IntervalCalibration)
    with x.graph.scope("first_layer_variance"):
        first = first_variance(network.uncertainty.first, x, features)
    common = getattr(network.uncertainty.first, "common", None)
    first, regression = variances(values, first, network.uncertainty.uppers, common)
    noise, iterates = calibration.noise, len(network.uppers)
    centred = means - mean
    between = (centred * centred).sum(0) / max(iterates - 1, 1)
    scatter: Any = np.diagonal(noise.covariance)[:, None]
    if noise.growth is not None and noise.span is not None:
        low, high = noise.span[:, :, None]
        scatter = scatter * op("Exp", op("Min", op("Max", mean, low), high) * noise.growth[:, None])
    variance = first.mean(0) * noise.scale[:, None] + regression.mean(0) + between + scatter
    std = size * op("Sqrt", op("Max", variance, 0.0))
    if calibration.local is not None:
        std = std * op("Exp", local_scale(x, mean, calibration.local))
    outputs["std"] = _per_row(std, k, targets.single)
    if targets.map is not None:
        outputs |= {
            "std": _per_row(deviation_of(targets.map, centre, std, noise.df), k, targets.single),
            "transformed_std": outputs["std"],
        }
    conformal = isinstance(calibration.factor, ConformalFactor | SkewedFactor)
    metadata["calibration"] = "conformal" if conformal else "student"
    below, above = calibration.factor.tails(np.array(COVERAGES))
    metadata["interval_factors"] = json.dumps(_interval_factors(above, targets))
    if isinstance(calibration.factor, SkewedFactor):
        metadata["interval_factors_below"] = json.dumps(_interval_factors(below, targets))
    return outputs


def _of_classifier(network: TrainedNetwork, x: Value, metadata: dict[str, str]) -> dict[str, Output]:
    assert isinstance(network.targets, ClassTargets)
    x, _, values = _layers(network, x)
    probabilities = op("Softmax", values[-1], axis=1).mean(0).transposed()
    temperature = network.temperature
    if temperature == 1.0:
        probabilities = probabilities / probabilities.sum(1, keepdims=True)
    else:
        probabilities = op("Softmax", op("Log", op("Max", probabilities, 1e-300)) / temperature, axis=-1)
    floor = network.tempering.floor
    if floor is not None:
        probabilities = probabilities * network.tempering.share + floor
    labels = storable(network.targets.classes.tolist())  # of dtype object, they are strings or numbers, too
    winners = op("ArgMax", probabilities, axis=1, keepdims=0)
    metadata["classes"], metadata["calibration_temperature"] = json.dumps(labels.tolist()), repr(temperature)
    return {
        "label": Output(x.graph.constant(labels).take(winners, axis=0), dtype=labels.dtype),
        "probabilities": Output(probabilities, labels.shape),
    }


def _layers(network: TrainedNetwork, x: Value) -> tuple[Value, list[Value], list[Value]]:
    """Standardised rows, kernel values, and the values of all layers."""
    x = (x - network.scaler.mean[:, None]) / network.scaler.scale[:, None]
    features = first_features(x, network.expansion)
    with x.graph.scope("first_layer"):
        first = first_values(x, features, network.expansion)
    return x, features, forward(first, network.uppers)


def _per_row(values: Value, targets: int, single: bool) -> Output:
    """A single target has no axis of its own."""
    return Output(op("Squeeze", values, [0])) if single else Output(values.transposed(), (targets,))


def _interval_factors(tail: np.ndarray, targets: NumericTargets) -> dict[str, Any]:
    """Reach in standard deviations by coverage; JSON has no infinity, which stands for too few calibration rows."""
    factors = np.reshape(tail, (len(COVERAGES), -1))
    factors = np.broadcast_to(factors, (len(COVERAGES), targets.n_outputs)).astype(object)
    factors[factors == np.inf] = None
    return {str(level): row[0] if targets.single else row for level, row in zip(COVERAGES, factors.tolist(), strict=True)}
