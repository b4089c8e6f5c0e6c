"""Boards as values, and the tables they are read from."""
