"""Kernels that print C: a file of this folder per operation, with its VARIANTS; the folders hold what these share."""
