"""The firmware of a microcontroller: its program, where that lies in memory, and how it gets there."""
