"""Kernels of sets that sum products across the lanes of a vector into one number."""
