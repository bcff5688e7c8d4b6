"""What a search asks of the rows it clusters, answered for every way to hold them.

:mod:`mtclust.problem.protocol` says what is asked; :mod:`mtclust.problem.kernels` answers with kernel matrices,
:mod:`mtclust.problem.features` with explicit features from any source of rows.
"""
