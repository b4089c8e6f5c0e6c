"""Prunes, shares and narrows weights without training: changes the values in an integer graph, judged by its
results."""
