"""Functions that print C: one folder an operation, one file a variant, found by listing."""
