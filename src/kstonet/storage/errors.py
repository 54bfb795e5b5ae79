"""The error of everything that is wrong with a file."""

from __future__ import annotations


class ModelFileError(ValueError):
    """A file is not a stored model, is damaged, or was written by a newer version.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import kstonet
    >>> from kstonet.persistence import ModelFileError
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.kstonet"
    ...     _ = path.write_text("something else")
    ...     try:
    ...         kstonet.load(path)
    ...     except ModelFileError:
    ...         print("not a model")
    not a model
    """
