"""A network as frozen values, what a legal one is, and the samples it is tried with."""
