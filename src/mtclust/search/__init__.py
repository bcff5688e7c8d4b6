"""The search on the kernel matrix of few rows (:func:`mtclust.search.recipe.solve`), and on all rows from its end."""
