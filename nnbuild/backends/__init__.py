"""What a board runs around a model, each kind in a package of its own, found by listing; see backend.py.

A package may say here, in `COMMANDS`, which commands it adds to the command line: name -> (summary, module).
"""
