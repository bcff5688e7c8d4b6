"""Until the number of clusters is chosen by one signal."""
