"""Converts Keras layers to operations; one file per family of layers."""
