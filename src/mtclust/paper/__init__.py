"""What belongs to the paper and is not needed to cluster: its experiments, its data sets, the methods it compares with.

:mod:`mtclust.paper.experiments` is behind ``mtclust reproduce``; nothing else of the library imports from here.
"""
