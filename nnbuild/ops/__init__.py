"""Every operation of a graph, one file each, with its meaning."""
