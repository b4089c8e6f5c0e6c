"""Kernels whose weights are stored in fewer bytes: sparse, of few distinct values, or in codes."""
