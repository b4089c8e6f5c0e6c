"""Facts to make reports from, without building anything."""

from __future__ import annotations

from dataclasses import replace

from nnbuild.report.facts import (
    AuditResult,
    Buffer,
    Check,
    Comparison,
    Facts,
    File,
    Gate,
    Layer,
    LayerError,
    Memory,
    Node,
    Option,
    Origin,
    Output,
    OutputError,
    Peak,
    Quantization,
    StackUse,
)
from nnbuild.report.weights import Stage, WeightRow, Weights


def layer(name: str, cost: int | None = 1000, priced: float = 1200.0, op: str = "conv2d") -> Layer:
    options = (Option("smlad", priced, False, 100, 16, ""), Option("scalar", 2 * priced, False, 90, 0, ""))
    shape = dict(
        shape="8x8x4", format="int8", macs=500, weights=100, code=300, output=256, scratch=16, parts=1, in_place=True
    )
    return Layer(
        name=name,
        op=op,
        kernel="smlad",
        encoding="",
        versions=(("armv7em", "smlad"),),
        cost=cost,
        priced=priced,
        options=options,
        **shape,
    )


def residual_nodes() -> tuple[Node, ...]:
    """x -> a -> b -> add(a, b)"""
    return (
        Node("x", "input", "", "8x8x3", "int8", (), False, 0.0),
        Node("a", "conv2d", "3x3 /2 relu", "8x8x4", "int8", (0,), False, 0.5),
        Node("b", "conv2d", "3x3", "8x8x4", "int8", (1,), False, 0.4),
        Node("sum", "add", "", "8x8x4", "int8", (1, 2), True, 0.1),
    )


def buffers() -> tuple[Buffer, ...]:
    return (
        Buffer("x", "input", 256, 192, -1, 0, ()),
        Buffer("a", "tensor", 0, 256, 0, 2, ("sum",)),
        Buffer("b", "tensor", 256, 256, 1, 2, ()),
        Buffer("scratch of b", "scratch", 512, 64, 1, 1, ()),
        Buffer("sum", "output", 0, 256, 2, 3, ("a",)),
    )


def check() -> Check:
    gates = (Gate("output 'y'", "reference", True, "0 of 30 integers differ"), Gate("stack", "size", True, "fits"))
    compared = (
        Comparison("reference", 0.0, 0.0, 0.0, 1.0, 0, 1.0),
        Comparison("float", 0.01, 0.008, 0.05, 0.999, None, 0.9),
    )
    output = Output("y", compared, 0.9, 1.0, ((9, 1, 0), (0, 10, 0), (2, 0, 8)))
    return Check(30, False, 168_000_000, 3000.0, 2990.0, 3010.0, gates, (output,))


def facts() -> Facts:
    layers = (layer("a", 1500), layer("b", 1200), layer("sum", 300, op="add"))
    errors = (
        LayerError("a", "int8", 0.0, 2.5, 0.01, 0, 7680, 42.0, 0.02),
        LayerError("b", "int8", -1.0, 1.0, 0.008, 12, 7680, 31.5, 0.08),
        LayerError("sum", "int8", -1.0, 3.5, 0.02, 0, 7680, None, 0.0),
    )
    files = (File("net.h5", "model", 5000, "a" * 64), File("net.c", "generated", 900, "b" * 64))
    return Facts(
        name="net",
        board="stm32f405",
        board_summary="a board",
        precision="int8",
        optimize="speed",
        unit="instructions",
        nodes=residual_nodes(),
        layers=layers,
        buffers=buffers(),
        arena=576,
        state=0,
        peak=Peak(1, "b", 576, ("a", "b", "scratch of b")),
        memories=(
            Memory("flash", 20_000, 1 << 20, (("weights", 300), ("model code", 900), ("link and startup", 18_800))),
            Memory("ram", 4_000, 128 << 10, (("arena", 576), ("stack", 2_816), ("link and variables", 608))),
        ),
        flash_code=900,
        flash_weights=300,
        stack=StackUse(248, 2048, 412, 2816, (("net_run", 16), ("net_00_a", 232))),
        audit=AuditResult("mcu", (), ("expf: nn_expf.c",), ()),
        quantization=Quantization(30, errors, (OutputError("y", 0.9, 0.01, 0.999),)),
        weights=Weights(
            (
                WeightRow("a", "kernel", 1000, 900, 90, "90% zeros", "90% pruned (4x1)", 0.02, 1200, 300),
                WeightRow("b", "recurrent", 500, 5, 200, "", "", 0.0, 600, 600),
            ),
            "--prune",
            "accuracy on the labels",
            50,
            True,
            (Stage("float", 99.0), Stage("int8", 98.5), Stage("compressed", 98.25)),
            2400,
            1500,
        ),
        check=check(),
        check_missing="",
        origin=Origin(
            "nnbuild report net.h5 --board stm32 --quantize int8",
            (("board", "stm32"), ("quantize", "int8")),
            (("nnbuild", "0.1"), ("compiler", "gcc 12")),
            files,
            "0123456789abcdef",
        ),
        notes=("a note",),
    )


def not_run() -> Facts:
    unknown = tuple(replace(each, cost=None) for each in facts().layers)
    return replace(facts(), check=None, check_missing="no board", layers=unknown, unit="estimated cycles")


def named(found: Facts, pattern: str) -> Facts:
    """The same with other names, which the pattern makes of numbers."""
    names = {node.name: pattern.format(index) for index, node in enumerate(found.nodes)}
    return replace(
        found,
        nodes=tuple(replace(node, name=names[node.name]) for node in found.nodes),
        layers=tuple(replace(each, name=names[each.name]) for each in found.layers),
        buffers=tuple(replace(each, name=names[each.name]) for each in found.buffers),
        peak=replace(found.peak, layer=pattern.format(len(names) // 2)) if found.peak is not None else None,
    )


def large(count: int) -> Facts:
    """A chain in which every third operation also reads what was made six operations before."""
    chain: list[Node] = [Node("x", "input", "", "64x64x64", "int8", (), False, 0.0)]
    for index in range(1, count + 1):
        sources = (index - 1, index - 7) if index % 3 == 0 and index > 7 else (index - 1,)
        kind = "add" if len(sources) == 2 else "conv2d"
        chain.append(
            Node(f"block_{index}_project_conv", kind, "3x3 relu6", "64x64x64", "int8", sources, False, 1 / count)
        )
    space = tuple(
        Buffer(node.name, "tensor", 4096 * (index % 9), 4096, index - 1, index + 6, ())
        for index, node in enumerate(chain)
    )
    rows = tuple(layer(node.name) for node in chain[1:])
    errors = tuple(LayerError(n.name, "int8", -1.0, 1.0, 0.01, 0, 99, 30.0, 0.1) for n in chain[1:])
    return replace(
        facts(),
        nodes=tuple(chain),
        layers=rows,
        buffers=space,
        arena=9 * 4096,
        peak=Peak(count // 2, f"block_{count // 2}", 9 * 4096, ()),
        quantization=Quantization(9, errors, ()),
    )
