"""From a window to a stream: a graph that takes only what is new, and gives what the window would give."""
