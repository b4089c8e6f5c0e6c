"""Turns a float graph into an integer one: calibration, choice of formats, rewrite."""
