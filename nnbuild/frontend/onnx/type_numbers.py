"""The types of ONNX by their numbers."""

HALF_NAMES = ("float16", "bfloat16")
HALF_TYPES = (10, 16)
"""Their numbers."""

TYPE_NAMES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool",
    10: "float32", 11: "float32", 12: "uint32", 13: "uint64", 16: "float32",
}  # fmt: skip
"""ONNX type numbers -> target types of casts: floats of all widths become 32 bits."""
