"""Integer layers on cores with one multiplier: two products by one multiplication."""
