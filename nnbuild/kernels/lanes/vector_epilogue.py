"""The epilogue of sums in vectors: a maximum pool, additions of other tensors, functions."""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.base.writer import Writer
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Names
from nnbuild.kernels.parts.float_functions import SCALAR_ONLY, spell
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import NO_CLAMP, Clamp, Pair
from nnbuild.ops.binary import Binary
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.site import Site
from nnbuild.ops.windows import NO_PADDING

KINDS = frozenset({"binary", "activation", "pool2d"})
POINTWISE = KINDS - {"pool2d"}
FUNCTIONS = frozenset({"activation", "softmax"})
OPERATIONS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "maximum": "max",
    "minimum": "min",
}


@dataclass(frozen=True)
class Follower:
    """An elementwise operation of the epilogue; `beside` names its other operand, the left one if `reversed`."""

    attributes: Binary | Activation
    beside: str = ""
    reversed: bool = False


@dataclass(frozen=True)
class Epilogue:
    """The epilogue: a pool with the bounds of its result (a window of one is no pool), then elementwise operations.

    A final softmax needs all outputs at once, so the kernel computes it.
    """

    followers: tuple[Follower, ...] = ()
    pool: Pair = (1, 1)
    pooled: Clamp = NO_CLAMP
    softmax: bool = False

    def finish(self, w: Writer, floats: Vectors, variable: str, pointer: str, count: int) -> None:
        """Prints the epilogue of a vector that is stored at `pointer`, which begins with the name `to`."""
        if self.pool != (1, 1):
            floats.bound(w, self.pooled, variable)
        for follower in self.followers:
            attributes = follower.attributes
            if isinstance(attributes, Binary):
                other = floats.load(w, pointer.replace("to", follower.beside, 1), count)
                operands = (other, variable) if follower.reversed else (variable, other)
                w(f"{variable} = {floats.use(w, OPERATIONS[attributes.function], *operands)};")
                floats.bound(w, attributes.clamp, variable)
            else:
                w(f"{variable} = {spell(w, floats, (attributes.function, attributes.parameters), variable)};")


def operand_name(operand: int) -> str:
    """The pointer into this input of the chain that advances with `to`."""
    return f"beside{operand}"


def declare_outputs(w: Writer, kind: str, names: Names, place: str) -> None:
    """Declares `to` at this place of the output, and the pointers into the chain's inputs that advance with it."""
    w(f"{kind} *to = {names.outputs[0]} + {place};")
    for operand, name in enumerate(names.inputs[1:], 1):
        w(f"const {kind} *{operand_name(operand)} = {name} + {place};")


def epilogue_of(site: Site) -> Epilogue:
    """The epilogue of a site's tail, which `refusal` accepts."""
    followers: list[Follower] = []
    softmax = False
    pool, pooled, result, operand = (1, 1), NO_CLAMP, site.outputs[0].name, len(site.inputs)
    for part in site.tail:
        attributes = part.attributes
        if isinstance(attributes, Pool2D):
            pool, pooled = attributes.window, attributes.clamp
        elif isinstance(attributes, Binary):
            followers.append(Follower(attributes, operand_name(operand), part.inputs[0].name != result))
            operand += 1
        elif isinstance(attributes, Activation):
            followers.append(Follower(attributes))
        else:
            softmax = True
        result = part.outputs[0].name
    return Epilogue(tuple(followers), pool, pooled, softmax)


def fusible(floats: Vectors, kinds: frozenset[str]) -> frozenset[str]:
    """What a kernel of a set fuses; one for sums alone has too few registers for functions."""
    return kinds if "float" in floats.kernels else kinds - FUNCTIONS


def refusal(site: Site, kinds: frozenset[str] = KINDS) -> str | None:
    """Why a tail cannot be fused as an epilogue."""
    for index, part in enumerate(site.tail):
        attributes = part.attributes
        if part.dtypes != {"float32"}:
            return "an operation that follows is not float32"
        if part.op.kind not in kinds:
            return f"it cannot fuse a {part.op.kind}"
        if isinstance(attributes, Pool2D) and (index > 0 or not _plain(attributes)):
            return "a fused pool must come first, be a maximum, and have no overlap and no padding"
        if part.op.kind == "softmax" and part is not site.tail[-1]:
            return "a fused softmax must come last"
        if isinstance(attributes, Binary) and not _alike(part):
            return "the other operand has another shape"
        if isinstance(attributes, Activation) and attributes.function in SCALAR_ONLY:
            return f"it has no {attributes.function} in vectors"
    return None


def _plain(pool: Pool2D) -> bool:
    return pool.function == "max" and pool.window == pool.strides and pool.padding == NO_PADDING


def _alike(site: Site) -> bool:
    """Whether both operands are tensors of the output's shape, and the operation has an instruction."""
    attributes = site.attributes
    shapes = [tensor.shape for tensor in site.inputs]
    return (
        isinstance(attributes, Binary)
        and attributes.function in OPERATIONS
        and not site.constants
        and shapes == [site.outputs[0].shape] * 2
    )
