"""Saved models: one file of tensors and a versioned JSON description, without pickle and without code.

A file is a `safetensors <https://github.com/huggingface/safetensors>`_ file. Its tensors are the arrays of the model; the
entry ``kstonet`` of its ``__metadata__`` is a JSON object:

============== =======================================================================================================
``version``    of this format, a whole number; a newer one than the reader knows is refused
``sha256``     over this text (with ``"sha256":""``) and every tensor: name, type, shape and bytes
``library``    the version of kstonet that wrote the file
``class``      the estimator, or "Pipeline": then ``model`` is the estimator, ``last`` its name and ``steps`` what is before it
``parameters`` of its constructor
``attributes`` of the fitted model, with arrays by tensor name
``metadata``   what the caller of ``save`` added, if anything
============== =======================================================================================================

The same model gives the same bytes.

The modules: ``layouts`` (which attributes a model is made of), ``saving``, ``loading``, ``pipelines`` (transformers before a
model), ``consistency`` (what attributes must satisfy before anything is believed), ``version1`` (files of the first format
version); values and the file itself are those of :mod:`kstonet.storage`. A class from outside the package becomes part of a
file by the decorator :func:`storable`; its module has to be imported before such a file is loaded.
"""

from kstonet._records import storable
from kstonet.persistence.loading import load, read_metadata
from kstonet.persistence.saving import save
from kstonet.storage.errors import ModelFileError

__all__ = ["ModelFileError", "load", "read_metadata", "save", "storable"]
