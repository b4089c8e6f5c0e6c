"""Winograd convolutions: fewer products of 3 x 3 kernels, in floats and exact in integers."""
