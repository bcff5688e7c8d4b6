"""Tables of the command line: files to columns, columns to features, and the same again for ``predict``."""

from mtclust.app.tables.encoding import EncodingOptions, TableEncoder
from mtclust.app.tables.reading import ReadOptions, Table, read_tables

__all__ = ["EncodingOptions", "ReadOptions", "Table", "TableEncoder", "read_tables"]
