"""Integer kernels for Cortex-M4 and M7: sums of pairs of 16-bit products, scaled in a few instructions."""
