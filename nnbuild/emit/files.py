"""The names of a model's files, known before the model is read."""

from __future__ import annotations

from nnbuild.emit.device import source_names
from nnbuild.offload.device import Device


def file_names(prefix: str, weights: str, device: Device | None = None) -> list[str]:
    """`weights` is "array" or "binary"."""
    stem = f"{prefix}_weights"
    constants = [f"{stem}.c"] if weights == "array" else [f"{stem}.bin", f"{stem}.S"]
    beside = [f"{prefix}_device.c", *source_names(device)] if device is not None else []
    return [f"{prefix}.h", f"{prefix}_private.h", f"{prefix}.c", f"{prefix}_kernels.c", *constants, *beside]
