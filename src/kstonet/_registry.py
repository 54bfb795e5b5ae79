"""What users ask for by name: a name belongs to one definition, which may run again, as a notebook cell does."""

from __future__ import annotations

from typing import Any


def require_free(parameter: str, name: str, known: Any, new: Any) -> None:
    """Refuse a name that stands for something else already.

    Parameters
    ----------
    parameter : str
        The parameter of the estimators that takes the name.
    name : str
        The name users write.
    known : object
        The class or function that the name stands for; None if it is free.
    new : object
        The class or function that it is to stand for.

    Raises
    ------
    ValueError
        Where the two are defined in different places.

    Examples
    --------
    >>> require_free("sampler", "walk", None, list)
    >>> require_free("sampler", "sghmc", dict, list)
    Traceback (most recent call last):
    ValueError: sampler='sghmc' is <class 'dict'> already; choose another name.
    """
    if known is not None and definition(known) != definition(new):
        raise ValueError(f"{parameter}={name!r} is {known!r} already; choose another name.")


def definition(code: Any) -> tuple[Any, Any]:
    """Module and qualified name of a class or function."""
    return getattr(code, "__module__", None), getattr(code, "__qualname__", code)
