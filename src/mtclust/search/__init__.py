"""The recipe, written once for every way to hold the rows: :func:`mtclust.search.recipe.solve`."""
