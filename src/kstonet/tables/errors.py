"""The error that all reading of tables raises."""


class InputError(ValueError):
    """What a user gave cannot be used; the message says what, where, and what to do.

    Examples
    --------
    >>> from kstonet.tables import InputError
    >>> raise InputError("the file is empty.")
    Traceback (most recent call last):
    kstonet.tables.errors.InputError: the file is empty.
    """
