"""Devices: the link to a board, its transports, and the check. Independent of the compiler."""
