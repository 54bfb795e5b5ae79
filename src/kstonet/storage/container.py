"""The file: safetensors with a checksum, written atomically."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from kstonet._files import destination, write_whole
from kstonet.storage.errors import ModelFileError

FORMAT = "kstonet"
VERSION = 2  # of the format; raised when an older reader could not understand a file
REMEDY = "Get a fresh copy of the file, or save the model again."


def _safetensors() -> Any:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError as error:
        raise ImportError("saving and loading models needs the package safetensors: pip install 'kstonet[io]'.") from error
    return safetensors


def checksum(text: str, tensors: dict[str, np.ndarray]) -> str:
    """SHA-256 of all that a file says. Lengths go in before contents, so that nothing can move from one part to another."""
    digest = hashlib.sha256()

    def add(content: Any, length: int) -> None:
        digest.update(struct.pack("<Q", length))
        digest.update(content)

    encoded = text.encode()
    add(encoded, len(encoded))
    for name in sorted(tensors):
        array = tensors[name]
        label = json.dumps([name, array.dtype.name, list(array.shape)]).encode()
        add(label, len(label))
        little = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")  # no copy on usual machines
        add(little.reshape(-1).view(np.uint8), little.nbytes)
    return digest.hexdigest()


def json_text(content: Any) -> str:
    """The JSON of a file: the same content gives the same text."""
    return json.dumps(content, allow_nan=False, separators=(",", ":"))


def _with_checksum(text: str, old: str, new: str) -> str:
    """Exchange the checksum, which stands before anything a user could have written."""
    return text.replace(f'"sha256":"{old}"', f'"sha256":"{new}"', 1)


def serialised(description: dict[str, Any], tensors: dict[str, np.ndarray]) -> bytes:
    """The bytes of a file; the same model gives the same bytes."""
    head = {"version": VERSION, "sha256": ""}
    text = json_text(head | description)
    text = _with_checksum(text, "", checksum(text, tensors))
    return bytes(_safetensors().numpy.save(tensors, metadata={FORMAT: text}))  # one entry: several come in random order


def write(path: Path, description: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    """Write a model file, whole or not at all."""
    content = serialised(description, tensors)
    write_whole(destination(path, "model.kstonet"), content)


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Description and tensors of a file whose version and checksum are right."""
    library = _safetensors()
    if not path.is_file():
        raise FileNotFoundError(f"path={str(path)!r} is not a file.")
    try:
        with library.safe_open(path, framework="numpy") as file:
            text: Any = (file.metadata() or {}).get(FORMAT)
            description = _description(path, text)  # before the tensors: a foreign file may be large, a newer one unreadable
            # Arrays of their own, in memory: the file may be replaced while the model lives.
            tensors = {name: np.array(file.get_tensor(name), order="C") for name in file.keys()}  # noqa: SIM118
    except ModelFileError:
        raise
    except (library.SafetensorError, AttributeError, TypeError, ValueError, OSError) as error:  # types NumPy lacks, too
        raise ModelFileError(f"path={str(path)!r} is not a stored model, or is cut short ({error}). {REMEDY}") from error
    stated = description.pop("sha256", None)
    if checksum(_with_checksum(text, str(stated), ""), tensors) != stated:
        raise ModelFileError(f"path={str(path)!r} was altered or damaged: its checksum does not match. {REMEDY}")
    return description, tensors


def _description(path: Path, text: str | None) -> dict[str, Any]:
    """The JSON object of a file of a known version."""
    if text is None:
        raise ModelFileError(f"path={str(path)!r} is a safetensors file, but not one of kstonet.save.")
    try:
        description = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"path={str(path)!r} was altered or damaged: its description is not JSON. {REMEDY}") from error
    description = description if isinstance(description, dict) else {}
    _check_version(path, description.get("version"))
    return description


def _check_version(path: Path, version: Any) -> None:
    if type(version) is not int or version < 1:
        raise ModelFileError(f"path={str(path)!r} has the format version {version!r:.20}, which is none. {REMEDY}")
    if version > VERSION:
        raise ModelFileError(
            f"path={str(path)!r} has the format version {version}; this kstonet reads versions up to {VERSION}. Update kstonet."
        )
