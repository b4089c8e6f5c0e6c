"""How each Keras layer becomes operations; a family of layers per file."""
