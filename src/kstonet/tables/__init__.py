"""Tables of mixed columns as numbers: what each column holds, and an encoding that is stored with a model."""

try:
    import pandas  # noqa: F401
except ImportError as error:
    raise ImportError("kstonet.tables needs the package pandas: pip install 'kstonet[io]'.") from error

from kstonet.tables.columns import kind_of
from kstonet.tables.encoding import ColumnEncoding, TableEncoder
from kstonet.tables.errors import InputError

__all__ = ["ColumnEncoding", "InputError", "TableEncoder", "kind_of"]
