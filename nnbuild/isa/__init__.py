"""Instruction sets: their vectors, and for each operation its C spelling, portable meaning and cost."""
