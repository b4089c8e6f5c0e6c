"""Whole jobs: from a model file to C, to a program, to what it computes and costs on a board."""
