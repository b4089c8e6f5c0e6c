"""Encodings of constants in fewer bytes, each with a decoder to the same integers."""
