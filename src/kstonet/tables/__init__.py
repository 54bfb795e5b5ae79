"""Tables of mixed columns as numbers: what each column holds, and an encoding that is part of a fitted model."""

from kstonet.tables.columns import kind_of
from kstonet.tables.encoder import TableEncoder
from kstonet.tables.encoding import ColumnEncoding, TableEncoding
from kstonet.tables.errors import InputError
from kstonet.tables.frames import columns_of

__all__ = ["ColumnEncoding", "InputError", "TableEncoder", "TableEncoding", "columns_of", "kind_of"]
