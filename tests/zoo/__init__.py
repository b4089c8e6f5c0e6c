"""A zoo of small Keras models: every layer with every option that changes its result."""
