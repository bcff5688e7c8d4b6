"""Tables: files or data frames to columns, columns to features, and the same again for ``predict``."""

from mtclust.app.tables.encoding import EncodingOptions, TableEncoder
from mtclust.app.tables.reading import ReadOptions
from mtclust.app.tables.table import Table, read_tables, table_of_frames

__all__ = ["EncodingOptions", "ReadOptions", "Table", "TableEncoder", "read_tables", "table_of_frames"]
