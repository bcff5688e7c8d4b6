"""Where rows come from and what is summed over them: sources, features, moments, and the passes that label them.

Features φ of every task enter an objective only through their Gram matrices and class sums: nothing here has the size
N × N.
"""
