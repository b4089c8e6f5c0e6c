"""What a board runs around a model: a host program, a firmware, a kernel module."""
