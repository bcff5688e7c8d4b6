"""What a person touches that is not an estimator: tables, the command line, the report."""
