"""Which kernel computes each operation, and where every byte lies: what the C will be printed from."""
