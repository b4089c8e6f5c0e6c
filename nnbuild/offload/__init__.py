"""Accelerators beside the processor, and the tasks they are given."""
