"""From a file to a model: every part of the description is verified before a model is made of it."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

import numpy as np

import kstonet
from kstonet.persistence.consistency import check_encoding
from kstonet.persistence.layouts import NETWORKS, PIPELINE, layout_of
from kstonet.persistence.version1 import upgraded
from kstonet.storage import container
from kstonet.storage.errors import ModelFileError
from kstonet.storage.records import check_numbers, expect, fits
from kstonet.storage.values import Decoder
from kstonet.tables import InputError, TableEncoder


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
    description, tensors = container.read(path, key, layout_of)
    try:
        model = decoded(description, tensors)
        if description.get("class") == PIPELINE:  # older versions wrote none: a "table" in its metadata is a note of the user
            return model
        return _with_table(model, description.get("metadata"))
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
    description, _ = container.read(Path(path), key, layout_of)
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
    except InputError as error:
        raise ModelFileError(f"the encoding of its table cannot be read ({error}).") from error
    if encoder.encoding_.n_outputs == model.n_features_in_:  # otherwise a note of the user that has the same name
        model.encoding_, model.n_features_in_ = encoder.encoding_, len(encoder.names_)
        model.feature_names_in_ = np.array(encoder.names_, dtype=object)
        check_encoding(model.encoding_, model.n_features_in_)
    return model


def decoded(description: dict[str, Any], tensors: dict[str, np.ndarray]) -> Any:
    """The model, or the pipeline, of a description and its tensors."""
    layout = layout_of(description)
    given = {part: description.get(part) for part in ("parameters", "attributes")}
    for part, content in given.items():
        expect(isinstance(content, dict), f"it has no {part}")
    decoder = Decoder(tensors)
    parameters, attributes = (
        {name: decoder.decode(node) for name, node in content.items()} for content in given.values() if content is not None
    )
    if description.get("version") == 1 and layout.estimator in NETWORKS:
        attributes = upgraded(attributes, parameters.get("residuals"))
    if parameters.get("residuals") == "loo":  # a kind that is gone: what it has learnt stays, another fit needs another kind
        parameters["residuals"] = "crossfit"
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
