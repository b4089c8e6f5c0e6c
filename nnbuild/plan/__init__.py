"""Chooses a kernel for each operation and an address for each byte; the C is printed from the result."""
