"""The file: safetensors with a checksum and, where there is a key, a signature; written atomically.

A file is read without trust: its header is bounded by its own bytes, the checksum is taken of the tensors where they are in the
file, and memory is allocated for them when everything that can be known before is right.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import operator
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kstonet._files import destination, write_whole
from kstonet.storage.errors import ModelFileError

FORMAT = "kstonet"
VERSION = 2  # of the format; raised when an older reader could not understand a file
TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip
MOST_VALUES = 500_000  # in a description; a large file may have more
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


def _blank(text: str, *fields: str) -> str:
    """A description without checksum and signature, which stand before anything a user could have written."""
    for field in fields:
        text = re.sub(f'"{field}":"[0-9a-f]*"', f'"{field}":""', text, count=1)
    return text


def _filled(text: str, field: str, value: str) -> str:
    return text.replace(f'"{field}":""', f'"{field}":"{value}"', 1)


def signature(checksum: str, key: bytes | str) -> str:
    """Of the checksum, and so of all that it covers."""
    secret = key.encode() if isinstance(key, str) else key
    if not isinstance(secret, bytes) or not secret:
        raise TypeError("key must be a secret: bytes or a string, not empty.")
    return hmac.new(secret, checksum.encode(), "sha256").hexdigest()


def serialised(description: dict[str, Any], tensors: dict[str, np.ndarray], key: bytes | str | None = None) -> bytes:
    """The bytes of a file; the same model gives the same bytes."""
    head: dict[str, Any] = {"version": VERSION, "sha256": ""}
    if key is not None:
        head["signature"] = ""
    text = json_text(head | description)
    found = checksum(text, tensors)
    text = _filled(text, "sha256", found)
    if key is not None:
        text = _filled(text, "signature", signature(found, key))
    return bytes(_safetensors().numpy.save(tensors, metadata={FORMAT: text}))  # one entry: several come in random order


def write(path: Path, description: dict[str, Any], tensors: dict[str, np.ndarray], key: bytes | str | None = None) -> None:
    """Write a file, whole or not at all; signed, where there is a key."""
    content = serialised(description, tensors, key)
    write_whole(destination(path, "model.kstonet"), content)


def read(
    path: Path, key: bytes | str | None = None, accept: Callable[[dict[str, Any]], Any] = lambda description: None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Description and tensors of a file whose version, checksum and, where a key is given, signature are right.

    Parameters
    ----------
    path : Path
    key : bytes or str, optional
        The secret that the file must be signed with.
    accept : callable
        Called with the description before the tensors are read; it raises ModelFileError where it does not accept it.

    Returns
    -------
    tuple of dict and dict
    """
    if not path.is_file():
        raise FileNotFoundError(f"path={str(path)!r} is not a file.")
    try:
        return _read(path, key, accept)
    except ModelFileError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, MemoryError, OSError) as error:
        raise ModelFileError(f"path={str(path)!r} is not a stored model, or is cut short ({error}). {REMEDY}") from error


def _read(
    path: Path, key: bytes | str | None, accept: Callable[[dict[str, Any]], Any]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header first; memory is allocated for the tensors when all else is accepted."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        start = 8 + int.from_bytes(file.read(8), "little")
        if size < 8 or start > size:
            raise ValueError("its header is longer than the file")
        header = json.loads(file.read(start - 8))
        places = {name: place for name, place in header.items() if name != "__metadata__"}
        text = header.get("__metadata__", {}).get(FORMAT)
        description = _description(path, text, size)
        try:
            accept(description)
        except ModelFileError as error:
            raise ModelFileError(f"path={str(path)!r}: {error}") from error
        views = _views(np.memmap(file, mode="r", dtype=np.uint8), start, places) if places else {}
    stated, signed = description.pop("sha256", None), description.pop("signature", None)
    if checksum(_blank(text, "sha256", "signature") if signed is not None else _blank(text, "sha256"), views) != stated:
        raise ModelFileError(f"path={str(path)!r} was altered or damaged: its checksum does not match. {REMEDY}")
    if key is not None and not hmac.compare_digest(signature(stated, key), str(signed)):
        what = "is not signed" if signed is None else "is signed with another key"
        raise ModelFileError(f"path={str(path)!r} {what}; load it with the key it was saved with, or do not trust it.")
    return description, {name: np.array(view, order="C") for name, view in views.items()}  # the file may be replaced


def _views(content: np.ndarray, start: int, places: dict[str, Any]) -> dict[str, np.ndarray]:
    """The tensors in the bytes of the file, which they fill without gaps."""
    views, end = {}, start
    for name, place in sorted(places.items(), key=lambda item: item[1]["data_offsets"]):
        dtype, shape = np.dtype(TYPES[place["dtype"]]), [operator.index(length) for length in place["shape"]]
        begin, stop = (start + operator.index(offset) for offset in place["data_offsets"])
        fills = begin == end and stop <= len(content) and stop - begin == math.prod(shape) * dtype.itemsize
        if not fills or min(shape, default=0) < 0:
            raise ValueError(f"the tensor {name!r:.40} is not where it should be")
        views[name], end = np.asarray(content[begin:stop]).view(dtype).reshape(shape), stop
    if end != len(content):
        raise ValueError("there is more than its tensors")
    return views


def _description(path: Path, text: str | None, size: int) -> dict[str, Any]:
    """The JSON object of a file of a known version."""
    if text is None:
        raise ModelFileError(f"path={str(path)!r} is a safetensors file, but not one of kstonet.save.")
    if sum(map(text.count, "[{,")) > MOST_VALUES + size // 10:  # small values take a hundred bytes each
        raise ModelFileError(f"path={str(path)!r} describes more values than its size allows. {REMEDY}")
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
