"""What every room may use: names, threads, warnings, optional packages, progress."""
