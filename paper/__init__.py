"""What belongs to the paper and is not needed to cluster: its experiments, its data sets, the methods it compares with.

:mod:`paper.experiments` is behind ``python -m paper reproduce``; nothing else of the library imports from here.
"""
