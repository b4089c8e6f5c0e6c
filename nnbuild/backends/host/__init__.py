"""A program that serves the model on this PC."""
