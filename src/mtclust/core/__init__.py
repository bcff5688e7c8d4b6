"""The mathematics: plain functions and small classes on arrays, in the paper's letters."""

import numpy as np
from numpy.typing import NDArray

#: real numbers; whole ones, such as sizes and positions; and those that are the clusters of rows
Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Labels = Integers
