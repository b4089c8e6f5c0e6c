"""Text and C fragments that several emitted files share."""

from __future__ import annotations

from nnbuild.base.literals import C_TYPES
from nnbuild.model.graph import Shape, Tensor
from nnbuild.plan.plan import Location, Plan

MEMBERS = {"float32": "f32", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8"}
SIZES = {"float32": 4, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint8": 1}


def shape_text(shape: Shape) -> str:
    return "".join(f"[{n}]" for n in shape) or "[1]"


def pointer_to(location: Location, dtype: str) -> str:
    """A pointer to a tensor in the context."""
    member = f"context->{location.space}.{MEMBERS[dtype]}"
    index = location.offset // SIZES[dtype]
    turn, apart = "", location.stride // SIZES[dtype]
    if location.previous_of:
        turn = f" + ((context->bank > 0 ? context->bank : {location.previous_of}) - 1) * {apart}"
    elif apart:
        turn = f" + context->bank * {apart}"
    return f"{member} + {index}{turn}" if index or turn else member


def common_type(plan: Plan, names: tuple[str, ...]) -> str:
    """The C type of all these tensors, or void where they differ."""
    kinds = {C_TYPES[plan.tensor(name).dtype] for name in names}
    return kinds.pop() if len(kinds) == 1 else "void"


def scale_text(value: float) -> str:
    """A float32 scale with enough digits to restore it exactly."""
    text = f"{value:.9g}"
    return (text if "." in text or "e" in text else text + ".0") + "f"


def describe_tensor(tensor: Tensor) -> str:
    """A tensor for a comment: type, shape and quantization."""
    text = f"{C_TYPES[tensor.dtype]} {shape_text(tensor.shape)}"
    if tensor.quant is not None and len(tensor.quant.scales) == 1:
        text += f", real = {scale_text(tensor.quant.scale)} * (value - {tensor.quant.zero_point})"
    return text


def comment_safe(text: str) -> str:
    """A name from a model, made safe for a C comment."""
    printable = "".join(c if 32 <= ord(c) < 127 and c not in '\\"' else "?" for c in text)
    return printable.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")


def quoted(text: str) -> str:
    """A name as a C string: bytes that are not plain characters are three-digit octal escapes."""
    plain = {ord(c) for c in " !#$%&'()*+,-./:;<=>@[]^_`{|}~"} | {*range(48, 58), *range(65, 91), *range(97, 123)}
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03o}" for b in text.encode()) + '"'
