"""Whole jobs: from a model file to C, to a program, to its outputs and costs on a board."""
