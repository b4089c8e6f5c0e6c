"""A Rust crate without dependencies: the C, a build script that compiles it, and a safe wrapper."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path

import numpy as np

from nnbuild import __version__
from nnbuild.base.errors import UsageError
from nnbuild.base.template import fill
from nnbuild.board.board import Board
from nnbuild.emit.artifact import Artifact
from nnbuild.emit.emit import digest
from nnbuild.emit.header import init_symbol
from nnbuild.emit.parallel import most_parts
from nnbuild.emit.row_input import counts_rows, row_size
from nnbuild.emit.text import MEMBERS, SIZES, comment_safe, describe_tensor
from nnbuild.model.graph import Tensor
from nnbuild.plan.plan import Plan

ISA = None
WEIGHTS = None
EXAMPLE = None
TYPES = {"float32": "f32", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8"}
_WORDS = """
abstract as async await become box core crate dyn final fn gen impl in let loop macro match mod move mut override priv
proc_macro pub ref self std alloc super test trait type unsafe unsized use where yield true false
"""
KEYWORDS = frozenset(_WORDS.split())
"""Names that no crate can have, besides C keywords, which no prefix is."""


def files(board: Board, plan: Plan, artifact: Artifact) -> dict[str, bytes]:
    if plan.prefix in KEYWORDS:
        raise UsageError(f"name {plan.prefix!r}", "it is a word of Rust itself.", "Give another one with --name.")
    header = artifact.files[f"{plan.prefix}.h"].decode()
    values = _values(plan, [name for name in artifact.files if name.endswith((".c", ".S"))])
    values["INIT"] = init_symbol(header, plan.prefix)
    texts = {
        "Cargo.toml": fill("rust/Cargo.toml", values),
        "build.rs": fill("rust/build.rs", values),
        "src/lib.rs": fill("rust/lib.rs", values),
        "examples/image.rs": fill("rust/image.rs", values),
        "csrc/layout.c": fill("rust/layout.c", values),
        "README.md": fill("rust/README.md", values),
        "rustfmt.toml": 'max_width = 120\nuse_small_heuristics = "Max"\n',
    }
    sources = {f"csrc/{name}": content for name, content in artifact.files.items()}
    return {**sources, **{name: text.encode() for name, text in texts.items()}}


def finish(board: Board, plan: Plan, folder: Path) -> list[str]:
    return []


def _values(plan: Plan, sources: list[str]) -> dict[str, str]:
    inputs = [plan.tensor(name) for name in plan.graph.inputs]
    outputs = [plan.tensor(name) for name in plan.graph.outputs]
    return {
        "PREFIX": plan.prefix,
        "UPPER": plan.prefix.upper(),
        "TITLE": comment_safe(plan.graph.name),
        "VERSION": __version__,
        "HASH": digest(plan.graph),
        "ARENA": str(plan.arena),
        "STATE": str(plan.state),
        "STEPS": str(len(plan.steps)),
        "ALIGNMENT": str(plan.alignment),
        "CONTEXT_BYTES": str(context_bytes(plan)),
        "MACHINES": ", ".join(f'"{name}"' for name in _machines(plan)),
        "SOURCES": ", ".join(f'"{name}"' for name in [*sources, "layout.c"]),
        "TENSORS": "\n".join([*_tensors("input", inputs), *_tensors("output", outputs)]),
        "ACCESS": "\n".join([*_inputs(inputs), *_outputs(outputs)]),
        "EXAMPLE_IN": "\n".join(_example_in(inputs)),
        "EXAMPLE_OUT": "\n".join(_example_out(outputs)),
        "STEP_FUNCTION": plan.step_function,
        **_rows(plan),
        **_parallel(plan),
    }


def _rows(plan: Plan) -> dict[str, str]:
    """Declarations for a model that takes rows; empty for others."""
    stream = plan.graph.stream
    if stream is None:
        return dict.fromkeys(("ROW_TYPE", "ROW_EXTERN", "ROW"), "")
    constants = {
        "Rows per update of the outputs.": f"ROWS_PER_STEP: u32 = {stream.hop}",
        "Runs until outputs depend only on received rows.": f"WARM_UP: u32 = {stream.warm_up}",
    }
    row = f"pub type Row = [{TYPES[plan.tensor(plan.graph.inputs[0]).dtype]}; {row_size(plan)}];"
    link = f"""\
        #[link_name = "{plan.prefix}_step"]
        pub fn take(context: *mut c_void, row: *const c_void) -> c_int;
"""
    return {
        "ROW_TYPE": "".join(f"/// {text}\npub const {constant};\n" for text, constant in constants.items())
        + f"/// A row of input 0.\n{row}\n\n",
        "ROW_EXTERN": link,
        "ROW": fill("rust/row.rs", {}),
    }


def _parallel(plan: Plan) -> dict[str, str]:
    """Declarations for a run in parts; empty where no step has parts."""
    if not plan.parallel:
        return dict.fromkeys(("PHANTOM", "IMPORT", "EXTERN", "PARALLEL", "PART"), "")
    link = f"""\
        #[link_name = "{plan.prefix}_run_parallel"]
        pub fn run_parallel(context: *mut c_void, spread: Spread, pool: *mut c_void) -> c_int;
"""
    kind = 'pub type Spread = unsafe extern "C" fn(*mut c_void, super::Function, *mut c_void, i32);'
    return {
        "PHANTOM": "use core::marker::PhantomData;\n",
        "IMPORT": f"\n    {kind}\n",
        "EXTERN": link,
        "PARALLEL": fill("rust/parallel.rs", {}),
        "PART": fill("rust/part.rs", {"PARTS": str(max(step.parts for step in plan.steps))}) + "\n",
    }


MACHINES = {
    "cortex_m": ("arm",),
    "aarch64": ("aarch64",),
    "rv32": ("riscv32", "riscv64"),
    "x86_64": ("x86_64", "x86"),
}
"""Rust's names of the processors of an architecture."""


def _machines(plan: Plan) -> tuple[str, ...]:
    """Rust's names of the processors that support the C's instruction set; empty means all."""
    if not plan.isa.includes:
        return ()
    return next(names for kind, names in MACHINES.items() if kind in plan.isa.architectures)


def context_bytes(plan: Plan) -> int:
    """The size of the C struct; csrc/layout.c checks it against the compiler's."""
    dtypes = {plan.tensor(name).dtype for name in plan.locations}
    demands = [version.demand for step in plan.steps for version in step.versions]
    dtypes |= {demand.scratch_type for demand in demands if demand.scratch}
    # The detected instruction set, the bank, rows received, and which parts are done.
    words = (len(plan.isas) > 1) + (plan.banks > 1) + counts_rows(plan) + (most_parts(plan) if plan.parallel else 0)
    widest = max([SIZES[dtype] for dtype in MEMBERS if dtype in dtypes] + [SIZES["int32"]] * bool(words), default=1)
    spaces = sum(-(-size // widest) * widest for size in (words * SIZES["int32"], plan.arena, plan.state))
    return max(1, -(-spaces // plan.alignment)) * plan.alignment


def _float(value: float) -> str:
    """The shortest text that restores the float32."""
    text = str(np.float32(value))
    return text if "." in text or "e" in text else f"{text}.0"


def _tensors(word: str, tensors: list[Tensor]) -> Iterator[str]:
    for index, tensor in enumerate(tensors):
        upper, kind, length = f"{word.upper()}{index}", TYPES[tensor.dtype], prod(tensor.shape)
        yield f'/// {word.capitalize()} {index}, "{comment_safe(tensor.name)}": {describe_tensor(tensor)}'
        yield f"pub type {word.capitalize()}{index} = [{kind}; {length}];"
        yield f"/// The shape of {word} {index}; its last axis lies together in memory."
        shape = ", ".join(map(str, tensor.shape))
        yield f"pub const {upper}_SHAPE: [usize; {len(tensor.shape)}] = [{shape}];"
        if tensor.quant is not None:
            yield f"/// What one step of {word} {index} stands for."
            yield f"pub const {upper}_SCALE: f32 = {_float(tensor.quant.scale)};"
            yield f"/// The integer of {word} {index} that stands for zero."
            yield f"pub const {upper}_ZERO_POINT: i32 = {tensor.quant.zero_point};"
        yield ""


def _inputs(tensors: list[Tensor]) -> Iterator[str]:
    for index, tensor in enumerate(tensors):
        yield f"""\
    /// Where to write input {index}. Write every input before every run: a run may overwrite them.
    pub fn input{index}(&mut self) -> &mut Input{index} {{
        // SAFETY: the C code answers with a place inside the context that holds this many of these numbers.
        unsafe {{ &mut *c::input(self.raw(), {index}).cast() }}
    }}
"""
        if tensor.quant is not None:
            kind = TYPES[tensor.dtype]
            yield f"""\
    /// The integer that stands for a real value of input {index}.
    pub fn quantize_input{index}(value: f32) -> {kind} {{
        quantize(value, INPUT{index}_SCALE, INPUT{index}_ZERO_POINT, {kind}::MIN.into(), {kind}::MAX.into()) as {kind}
    }}
"""


def _outputs(tensors: list[Tensor]) -> Iterator[str]:
    for index, tensor in enumerate(tensors):
        yield f"""\
    /// Output {index} of the last run.
    pub fn output{index}(&self) -> &Output{index} {{
        // SAFETY: the C code answers with a place inside the context that holds this many of these numbers.
        unsafe {{ &*c::output((&raw const *self).cast(), {index}).cast() }}
    }}
"""
        if tensor.quant is not None:
            yield f"""\
    /// The real value that an integer of output {index} stands for.
    pub fn dequantize_output{index}(value: {TYPES[tensor.dtype]}) -> f32 {{
        (i32::from(value) - OUTPUT{index}_ZERO_POINT) as f32 * OUTPUT{index}_SCALE
    }}
"""


def _example_in(tensors: list[Tensor]) -> Iterator[str]:
    for index, tensor in enumerate(tensors):
        value = f"Context::quantize_input{index}(number()?)" if tensor.quant is not None else "number()?"
        yield f"    for value in model.input{index}() {{\n        *value = {value};\n    }}"


def _example_out(tensors: list[Tensor]) -> Iterator[str]:
    for index, tensor in enumerate(tensors):
        value = f"Context::dequantize_output{index}(*value)" if tensor.quant is not None else "value"
        yield f'    for value in model.output{index}() {{\n        println!("{{}}", {value});\n    }}'
