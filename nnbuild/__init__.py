"""nnbuild: a trained Keras model goes in, audited and checked firmware comes out."""

__version__ = "0.1.0"
