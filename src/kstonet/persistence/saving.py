"""From a model to a file, which holds no code; what cannot be stored is refused or said."""

from __future__ import annotations

import inspect
import json
import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

import kstonet
from kstonet.persistence.layouts import LAYOUTS, PIPELINE
from kstonet.persistence.loading import decoded
from kstonet.storage import container
from kstonet.storage.errors import ModelFileError
from kstonet.storage.values import Encoder, NotStorableError
from kstonet.trained import TrainedNetwork


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    metadata: dict[str, Any] | None = None,
    key: bytes | str | None = None,
) -> None:
    """Store a fitted model in one file, without pickle and without code.

    The file holds what prediction, intervals and calibration need: the support vectors and coefficients, not the training
    problem; a loaded network predicts, it does not resume training. (A :class:`MultiTargetSVR` keeps its training rows, as it
    does in a pickle, and can be refitted.) It is written under a temporary name and then moved: an older file at ``path`` is
    there, whole, until the new one is.

    Parameters
    ----------
    model : KStoNetRegressor, KStoNetClassifier, StoNetRegressor, StoNetClassifier or MultiTargetSVR
        Fitted. Of a search, such as :class:`KStoNetRegressorCV` or scikit-learn's, ``best_estimator_`` is stored. A pipeline of
        scikit-learn that ends in one of these is stored with the usual transformers before it (scalers, imputers, encoders,
        ColumnTransformer, PCA); it is loaded as a :class:`kstonet.pipeline.Pipeline`.
    path : str or path-like
        By convention with the suffix ``.kstonet``. An existing file is replaced.
    metadata : dict, optional
        Notes of your own to keep with the model, anything that JSON can hold; :func:`read_metadata` returns them.
    key : bytes or str, optional
        A secret that signs the file (HMAC-SHA256): what loads with the same key was written by an owner of the key, and not
        changed since. The checksum that every file has guards against damage only.

    Raises
    ------
    TypeError
        For other models, for a kernel that is a function (a file holds no code), and for metadata that JSON cannot hold.
    ValueError
        For a model whose attributes no longer fit each other.

    Warns
    -----
    UserWarning
        Where a parameter that only training reads is a function (``callback``, a schedule) or a random state: the file holds
        its default instead.

    See Also
    --------
    load, read_metadata

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import kstonet
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> model = kstonet.KStoNetRegressor(tuning="none", max_iter=3, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "sine.kstonet"
    ...     kstonet.save(model, path)
    ...     loaded = kstonet.load(path)
    >>> bool((loaded.predict_interval(X) == model.predict_interval(X)).all())
    True
    """
    model, steps, last = _taken_apart(model)
    layout = LAYOUTS.get(type(model).__name__)
    if layout is None or type(model) is not layout.estimator:
        if hasattr(model, "fit"):
            check_is_fitted(model)  # a search that is not fitted has no model yet
        raise TypeError(
            f"model is a {type(model).__name__}; kstonet.save stores {', '.join(LAYOUTS)}, and pipelines and searches of them. "
            "Other models can be pickled."
        )
    check_is_fitted(model)
    encoder = Encoder()
    state = model.__getstate__()  # without what only training needs
    left_out = _drop_unstorable_choice(state)
    parameters = _encoded_parameters(model, encoder)
    attributes = {}
    for name in sorted((layout.always.keys() | layout.maybe.keys()) & state.keys()):
        try:
            attributes[name] = encoder.encode(state.pop(name))
        except NotStorableError as error:
            raise _refusal(name, error.value) from error
    extra = sorted((state.keys() - parameters.keys()) | left_out)
    if extra:
        warnings.warn(f"not part of the model and not stored: {', '.join(extra)}.", UserWarning, stacklevel=2)
    description = {
        "library": kstonet.__version__,
        "class": type(model).__name__,
        "parameters": parameters,
        "attributes": attributes,
    }
    if last is not None:
        description |= {"class": PIPELINE, "model": type(model).__name__, "last": last, "steps": _encoded_steps(steps, encoder)}
    if metadata is not None:
        _check_metadata(metadata)
        description["metadata"] = metadata
    try:
        decoded(description, encoder.tensors)  # no file that load would refuse
    except ModelFileError as error:
        raise ValueError(
            f"the {type(model).__name__} was changed after fit and cannot be stored ({error}); fit it again."
        ) from error
    container.write(Path(path), description, encoder.tensors, key)


def _taken_apart(model: Any) -> tuple[Any, list[tuple[str, Any]], str | None]:
    """The network inside searches and a pipeline, the steps before it, and its name there; None without a pipeline."""
    from sklearn.pipeline import Pipeline  # imported late, like all of pipelines: most users have none

    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    if not isinstance(model, Pipeline):
        return model, [], None
    *steps, (last, inner) = model.steps
    while hasattr(inner, "best_estimator_"):
        inner = inner.best_estimator_
    return inner, steps, last


def _encoded_steps(steps: list[tuple[str, Any]], encoder: Encoder) -> list[Any]:
    """The transformers before a model."""
    from kstonet.persistence.pipelines import TRANSFORMERS, as_values

    encoded = []
    for name, step in steps:
        try:
            encoded.append([name, encoder.encode(as_values(step))])
        except NotStorableError as error:
            raise TypeError(
                f"step {name!r} of the pipeline holds {error.value!r:.120} of type {type(error.value).__name__}, which a file "
                f"without code cannot hold. It can hold {', '.join(sorted(TRANSFORMERS))} with numbers and strings; save the "
                "last step alone, model[-1], or pickle the pipeline."
            ) from error
    return encoded


def _drop_unstorable_choice(state: dict[str, Any]) -> set[str]:
    """Leave out what a search has tried where that holds functions: the model does not need it. Returns what is left out."""
    trained = state.get("trained_")
    if not isinstance(trained, TrainedNetwork):
        return set()
    chosen, choice = (content if _is_storable(content) else {} for content in (trained.chosen, trained.choice))
    state["trained_"] = replace(trained, chosen=chosen, choice=choice)
    return {name for name, kept in (("tuned_", chosen is trained.chosen), ("tuning_", choice is trained.choice)) if not kept}


def _is_storable(value: Any) -> bool:
    try:
        Encoder().encode(value)
    except NotStorableError:
        return False
    return True


def _check_metadata(metadata: dict[str, Any]) -> None:
    try:
        same = isinstance(metadata, dict) and json.loads(json.dumps(metadata, allow_nan=False)) == metadata
    except (TypeError, ValueError, RecursionError):
        same = False
    if not same:  # tuples and keys that are no strings would come back as something else
        raise TypeError(
            f"metadata={metadata!r:.120} must be a dict of what JSON can hold: strings, finite numbers, booleans, None, lists, "
            "and dicts with strings as keys."
        )


def _encoded_parameters(model: Any, encoder: Encoder) -> dict[str, Any]:
    defaults = {name: p.default for name, p in inspect.signature(type(model)).parameters.items()}
    encoded, replaced = {}, []
    for name, value in model.get_params(deep=False).items():
        if name == "checkpoint":  # a place on the machine that trained
            value = None
        try:
            encoded[name] = encoder.encode(value)
        except NotStorableError as error:
            if name == "kernel":  # the model itself would be refused for it, too
                raise _refusal(name, error.value) from error
            encoded[name] = encoder.encode(defaults[name])
            replaced.append(f"{name}={value!r:.80} (stored: {defaults[name]!r})")
    if replaced:
        warnings.warn(
            f"functions and random states are not stored: {'; '.join(replaced)}. Predictions do not depend on them; set them "
            "again before you fit the loaded model anew.",
            UserWarning,
            stacklevel=3,
        )
    return encoded


def _refusal(name: str, value: Any) -> TypeError:
    what = f"{name} holds {value!r:.120} of type {type(value).__name__}, which a file without code cannot hold"
    if "kernel" in name or callable(value):
        return TypeError(
            f"{what}. Use one of the named kernels, or kernel='precomputed' with kernel values you compute yourself; or pickle "
            "the model."
        )
    return TypeError(f"{what}. Use strings, numbers and arrays of them (class labels too); or pickle the model.")
