"""Back ends: the programs that boards run around a model. Each is a package of its own, found by listing; see
backend.py.

A package may add commands to the command line in `COMMANDS`: name -> (summary, module).
"""
