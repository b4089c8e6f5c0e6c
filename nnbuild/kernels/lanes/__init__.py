"""Sums, scaling and epilogues: what computes in a loop nest, in scalars, bytes or vectors."""
