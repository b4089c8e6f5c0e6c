"""Fewer, shared and narrower weights without training: other values in an integer graph, chosen by what it computes."""
