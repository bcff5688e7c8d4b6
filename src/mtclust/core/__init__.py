"""The mathematics: plain functions and small classes on arrays, in the paper's letters."""
