"""Prints a plan as C: the header, the calls, the kernels and the weights."""
