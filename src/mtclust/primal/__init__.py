"""The same objective in primal form, for data too large for kernel matrices: nothing here has the size n × n.

Features φ of every task enter only through their Gram matrices and class sums,

.. math:: (G^{-1} \\otimes I + \\mathrm{blkdiag}(2S_i/n_i))\\, W = b, \\quad b_i = 2Φ_i^T Y_i / n_i, \\quad
          J = m\\,C/(C-1) - \\tfrac12 b^T W,

so that one pass over the rows (their scores F = ΦW, the best labels the sizes allow, the new class sums) lowers J.
"""
