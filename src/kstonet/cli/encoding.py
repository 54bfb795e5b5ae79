"""Deprecated: the encoder of tables is in ``kstonet.tables``."""

import warnings

from kstonet.tables import ColumnEncoding, TableEncoder

__all__ = ["ColumnEncoding", "TableEncoder"]

warnings.warn(
    "kstonet.cli.encoding has moved to kstonet.tables and will be removed in the next minor release; import it from there.",
    DeprecationWarning,
    stacklevel=2,
)
