"""Loop nests of depthwise convolutions."""
