"""Steps that integer kernels share: requantize, round, clamp, store."""

from __future__ import annotations

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.model.graph import Tensor
from nnbuild.numeric.multiplier import Multiplier
from nnbuild.numeric.real_scale import IntegerScale
from nnbuild.ops import activation_rules as rules
from nnbuild.ops.integer import quant_of

UNIT = Multiplier(1 << 30, 1)


def zero(tensor: Tensor) -> int:
    return quant_of(tensor).zero_point


def declare(w: Writer, name: str, value: str, kind: str = "const int32_t") -> None:
    w(w.use(c99.LOAD_AS, kind, name, value))


def computed(w: Writer, name: str, value: str, kind: str = "const int32_t") -> None:
    """The same for a value whose operations are counted already."""
    w(f"{kind} {name} = {value};")


def centred(w: Writer, name: str, element: str, zero_point: int) -> None:
    """Declares an element minus its zero point."""
    declare(w, name, f"{element} - {zero_point}")


def requantized(w: Writer, value: str, scale: Multiplier) -> str:
    """A 32-bit value times a multiplier of at least 0; a factor of one is left out."""
    if scale == UNIT:
        return value
    return w.helper("requantize", value, str(scale.multiplier), str(scale.shift))


def scaled_once(w: Writer, value: str, scale: IntegerScale) -> str:
    """A value of at most 37 bits, scaled with a single rounding."""
    constants = f"INT64_C({scale.multiplier})", str(scale.shift)
    if scale.floating:
        return w.helper("scale_float", value, *constants)
    return w.helper("scale_once", value, *constants, str(int(scale.away)))


def finish(w: Writer, target: str, value: str, out: Tensor, bounds: tuple[int, int]) -> None:
    """Adds the zero point, clamps the value and stores it."""
    declare(w, "value", f"{value} + {zero(out)}", "int32_t")
    c99.bound(w, bounds, "value")
    store(w, target, "value", out)


def store(w: Writer, target: str, value: str, out: Tensor) -> None:
    w(w.use(c99.STORE, target, f"({C_TYPES[out.dtype]}){value}"))


def value_of(w: Writer, rule: rules.Rule, x: str = "x") -> str:
    """The result of the variable x, which is less its zero point; the output's zero point is not added."""
    match rule:
        case rules.Line(_, scale, offset):
            return f"{requantized(w, x, scale)} + {offset}"
        case rules.Gate(_, gate, output):
            declare(w, "gate", f"{requantized(w, x, gate)} + {rules.HALF_GATE}", "int32_t")
            c99.bound(w, (0, 2 * rules.HALF_GATE), "gate")
            return requantized(w, f"{x} * gate", output)
        case rules.Whole():
            sign, steps = "-" if rule.function == "ceil" else "", f"(int64_t){x} * {rule.steps}"
            if rule.function == "round":
                half = (1 << (rule.right - 1)) - 1
                declare(w, "real", steps, "int64_t")
                steps = f"real + {half} + ((real >> {rule.right}) & 1)"
            declare(w, "whole", f"(int32_t)({sign}(({sign}({steps})) >> {rule.right}))", "int32_t")
            c99.bound(w, (-rule.limit, rule.limit), "whole")
            return requantized(w, "whole", rule.output)
        case rules.Slopes(_, scales, threshold):
            w.bill(3)
            slope, shift = scales.negative
            with w.trips(1 / 2):
                below = requantized(w, f"{x} - {threshold}", type(scales.negative)(abs(slope), shift))
                above = requantized(w, x, scales.positive)
            below = f"-({below})" if slope < 0 else below
            return f"({x} >= {threshold} ? {above} : {below})"
        case rules.Rescale(_, scale):
            return requantized(w, x, scale)
    raise AssertionError(f"{rule} is no rule of a value")
