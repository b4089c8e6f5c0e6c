"""Turns a windowed model into a streaming one: a graph that takes only new rows, and gives what the window would
give."""
