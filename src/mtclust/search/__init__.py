"""The search on kernel matrices of few rows (:func:`mtclust.search.recipe.solve`), and from its end on all rows."""
