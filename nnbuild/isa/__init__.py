"""Instruction sets: what their vectors are, how each instruction is spelt in C, what it means and what it costs."""
