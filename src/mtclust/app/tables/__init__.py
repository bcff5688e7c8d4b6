"""Tables: files or data frames to columns, columns to features, and the same again for ``predict``."""
