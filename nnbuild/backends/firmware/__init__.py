"""Firmware of microcontrollers: the program, its memory layout, and flashing."""
