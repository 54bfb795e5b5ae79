"""Which attributes a model is made of, and :func:`save` and :func:`load`."""

from __future__ import annotations

import inspect
import json
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import kstonet
from kstonet.estimators import KStoNetClassifier, KStoNetRegressor, MultiTargetSVR, StoNetClassifier, StoNetRegressor
from kstonet.gram.kernels import Kernel
from kstonet.persistence import consistency
from kstonet.persistence.version1 import upgraded
from kstonet.solvers.svr_solution import SVRSolution
from kstonet.storage import container
from kstonet.storage.errors import ModelFileError
from kstonet.storage.records import check_numbers, expect, fits
from kstonet.storage.values import Decoder, Encoder, NotStorableError
from kstonet.tables import InputError, TableEncoder, TableEncoding
from kstonet.trained import TrainedNetwork


@dataclass(frozen=True)
class Layout:
    """The attributes of a fitted model, with their types: those it always has, and those it may have."""

    estimator: type[Any]
    always: dict[str, Any]
    maybe: dict[str, Any]
    check: Callable[[Any], None]


def _check_network(model: Any) -> None:
    _check_names(model)
    consistency.check_trained(model.trained_, model._n_encoded)


def _check_svr(model: MultiTargetSVR) -> None:
    _check_names(model)
    consistency.check_kernel(model.kernel_, model._n_encoded)
    targets, rows = model.solution_.coef.shape
    expect(model._X_fit.shape == (rows, model._n_encoded), "the training rows have another shape than the solution")
    expect(model.solution_.problem.targets.shape == (targets, rows), "problem and solution have different shapes")
    expect(consistency.within(model._kept_rows, rows), "support vectors are not training rows")
    expect(model.dual_coef_.shape == (targets, len(model._kept_rows)), "coefficients and support vectors differ in number")
    for name in ("intercept_", "duality_gap_", "n_iter_"):
        expect(getattr(model, name).shape == (targets,), f"{name} has not one value per target")
    expect(targets == 1 or not model._single_target, "a single target has several columns")


def _check_names(model: Any) -> None:
    names = getattr(model, "feature_names_in_", None)
    expect(names is None or names.shape == (model.n_features_in_,), "there is not one name per feature")
    encoding = getattr(model, "encoding_", None)
    if encoding is not None:
        consistency.check_encoding(encoding, model.n_features_in_)


INPUTS = {"n_features_in_": int}
NAMES = {"feature_names_in_": np.ndarray, "encoding_": TableEncoding}
NETWORK = INPUTS | {"trained_": TrainedNetwork}
NETWORK_MAYBE = NAMES | {"_sklearn_output_config": dict[str, Any]}
SVR = INPUTS | {
    "kernel_": Kernel,
    "solution_": SVRSolution,
    "_single_target": bool,
    **dict.fromkeys(("_X_fit", "_kept_rows", "dual_coef_", "intercept_", "duality_gap_", "n_iter_"), np.ndarray),
}

NETWORKS = (KStoNetRegressor, KStoNetClassifier, StoNetRegressor, StoNetClassifier)

PIPELINE = "Pipeline"  # the class of a file whose model is the last step of one

#: The estimators a file may name.
LAYOUTS = {
    **{estimator.__name__: Layout(estimator, NETWORK, NETWORK_MAYBE, _check_network) for estimator in NETWORKS},
    "MultiTargetSVR": Layout(MultiTargetSVR, SVR, NAMES | {"_gram": None}, _check_svr),
}


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
    >>> model = kstonet.KStoNetRegressor(max_iter=3, random_state=0).fit(X, np.sin(X[:, 0]))
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
        _decoded(description, encoder.tensors)  # no file that load would refuse
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


def load(path: str | os.PathLike[str], *, key: bytes | str | None = None) -> Any:
    """Load a model that :func:`save` stored.

    Nothing in the file is executed: it names classes of a fixed list and holds numbers and strings. Version, class, checksum,
    types, shapes and ranges are verified before a model is made, and no more memory is taken than the file has bytes for.

    Parameters
    ----------
    path : str or path-like
    key : bytes or str, optional
        The secret the file was signed with; a file that is not signed with it is refused. Without a key a signature is
        not verified.

    Returns
    -------
    KStoNetRegressor, KStoNetClassifier, StoNetRegressor, StoNetClassifier, MultiTargetSVR, or a pipeline of one
        Fitted; on the same machine its predictions and intervals are those of the stored model, bit for bit.

    Raises
    ------
    ModelFileError
        Where the file is no stored model, is damaged, or was written by a newer version of kstonet.

    See Also
    --------
    save

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import kstonet
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "waves.kstonet"
    ...     kstonet.save(kstonet.MultiTargetSVR(C=10).fit(X, np.sin(X[:, 0])), path)
    ...     model = kstonet.load(path)
    >>> model
    MultiTargetSVR(C=10)
    """
    path = Path(path)
    description, tensors = container.read(path, key, _layout)
    try:
        return _with_table(_decoded(description, tensors), description.get("metadata"))
    except (ModelFileError, RecursionError, MemoryError) as error:
        writer = description.get("library", "unknown")
        raise ModelFileError(
            f"path={str(path)!r}, written by kstonet {writer!s:.20} and read by {kstonet.__version__}: {error}"
        ) from error


def read_metadata(path: str | os.PathLike[str], *, key: bytes | str | None = None) -> dict[str, Any] | None:
    """The metadata that :func:`save` stored with a model.

    Parameters
    ----------
    path : str or path-like
    key : bytes or str, optional
        As in :func:`load`.

    Returns
    -------
    dict or None
        None if the model was saved without.

    Raises
    ------
    ModelFileError
        As in :func:`load`.

    See Also
    --------
    save

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import kstonet
    >>> from kstonet.persistence import read_metadata
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = kstonet.MultiTargetSVR().fit(X, np.sin(X[:, 0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "sine.kstonet"
    ...     kstonet.save(model, path, metadata={"columns": ["angle"], "unit": "radian"})
    ...     read_metadata(path)
    {'columns': ['angle'], 'unit': 'radian'}
    """
    description, _ = container.read(Path(path), key, _layout)
    metadata = description.get("metadata")
    if not isinstance(metadata, dict | None):
        raise ModelFileError(f"path={str(path)!r} contradicts itself: its metadata is {metadata!r:.60}.")
    return metadata


def _with_table(model: Any, metadata: Any) -> Any:
    """The model; files that older versions of ``kstonet fit`` wrote hold the encoding of their table in the metadata alone."""
    table = metadata.get("table") if isinstance(metadata, dict) else None
    if hasattr(model, "encoding_") or not isinstance(table, dict):
        return model
    try:
        encoder = TableEncoder.from_dict(table)
    except (InputError, TypeError, KeyError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise ModelFileError(f"the encoding of its table cannot be read ({error}).") from error
    if encoder.encoding_.n_outputs == model.n_features_in_:  # otherwise a note of the user that has the same name
        model.encoding_, model.n_features_in_ = encoder.encoding_, len(encoder.names_)
        model.feature_names_in_ = np.array(encoder.names_, dtype=object)
    return model


def _layout(description: dict[str, Any]) -> Layout:
    """The layout of the class that a description names."""
    name = description.get("model" if description.get("class") == PIPELINE else "class")
    layout = LAYOUTS.get(str(name))
    if layout is None:
        raise ModelFileError(f"the model is a {name!r:.80}, which is none of {', '.join(LAYOUTS)}.")
    return layout


def _decoded(description: dict[str, Any], tensors: dict[str, np.ndarray]) -> Any:
    layout = _layout(description)
    given = {part: description.get(part) for part in ("parameters", "attributes")}
    for part, content in given.items():
        expect(isinstance(content, dict), f"it has no {part}")
    decoder = Decoder(tensors)
    parameters, attributes = (
        {name: decoder.decode(node) for name, node in content.items()} for content in given.values() if content is not None
    )
    if description.get("version") == 1 and layout.estimator in NETWORKS:
        attributes = upgraded(attributes, parameters.get("residuals"))
    known = inspect.signature(layout.estimator).parameters
    if not parameters.keys() <= known.keys():
        raise ModelFileError(f"unknown parameters: {', '.join(sorted(parameters.keys() - known.keys()))}. Update kstonet.")
    hints = layout.always | layout.maybe
    if not layout.always.keys() <= attributes.keys() <= hints.keys():
        unlike = ", ".join(sorted((layout.always.keys() - attributes.keys()) | (attributes.keys() - hints.keys())))
        raise ModelFileError(f"missing or unknown attributes: {unlike}. Update kstonet.")
    for name, value in attributes.items():
        if value is not None if hints[name] is None else not fits(value, hints[name]):
            expect(False, f"{name} is {value!r:.60}")
        check_numbers(name, value)
    steps = _decoded_steps(description, decoder)
    expect(decoder.used == tensors.keys(), "it holds tensors that nothing uses")
    model = layout.estimator(**parameters)
    for name, value in attributes.items():
        setattr(model, name, value)
    layout.check(model)
    of_others = {name: known[name].default for name in ("sampler", "upper_layer") if name in known}  # perhaps not imported
    try:
        layout.estimator(**(parameters | of_others))._check_parameters()
    except ValueError as error:
        raise ModelFileError(f"it contradicts itself: {error}") from error
    if steps is None:
        return model
    from kstonet.pipeline import Pipeline

    return Pipeline([*steps, (str(description.get("last")), model)])


def _decoded_steps(description: dict[str, Any], decoder: Decoder) -> list[tuple[str, Any]] | None:
    """The transformers before the model; None where it is not in a pipeline."""
    if description.get("class") != PIPELINE:
        return None
    from kstonet.persistence.pipelines import from_values

    given = description.get("steps")
    named = isinstance(given, list) and all(isinstance(each, list) and len(each) == 2 for each in given)
    expect(named and all(isinstance(name, str) for name, _ in given), "its steps have no names")  # type: ignore[union-attr]
    return [(name, from_values(decoder.decode(node))) for name, node in given]  # type: ignore[union-attr]
