"""The names of the files a model becomes, known before it is read."""

from __future__ import annotations


def file_names(prefix: str, weights: str) -> list[str]:
    """`weights` is "array" or "binary"."""
    stem = f"{prefix}_weights"
    constants = [f"{stem}.c"] if weights == "array" else [f"{stem}.bin", f"{stem}.S"]
    return [f"{prefix}.h", f"{prefix}_private.h", f"{prefix}.c", f"{prefix}_kernels.c", *constants]
