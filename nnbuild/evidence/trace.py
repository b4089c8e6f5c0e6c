"""Traces layers to functions, symbols, addresses and vectors, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nnbuild.audit.callgraph import read_call_graph
from nnbuild.audit.elf import STT_FUNC, STT_OBJECT, Symbol, read_elf
from nnbuild.backends.object_audit import stack_tables
from nnbuild.board.board import Board
from nnbuild.plan.plan import Plan, Step


def traced(plan: Plan, board: Board, program: bytes, folder: Path, vectors: int) -> dict[str, Any]:
    prefix = f"{plan.prefix}_"
    symbols = _symbols(program, prefix)
    reached = _reached(board, plan, folder)
    layers = [_layer(plan, step, symbols, reached, vectors) for step in plan.steps]
    rows = {
        name: {
            "address": address,
            "size": symbol.size,
            "kind": "code" if symbol.kind == STT_FUNC else "data",
            "layers": [n for n, layer in enumerate(layers) if name in (*layer["functions"], *layer["constants"])],
        }
        for name, (address, symbol) in sorted(symbols.items())
    }
    return {"prefix": plan.prefix, "layers": layers, "symbols": rows}


def _symbols(program: bytes, prefix: str) -> dict[str, tuple[int, Symbol]]:
    file = read_elf("program", program)
    found = {}
    for symbol in file.symbols:
        here = 0 < symbol.section < len(file.sections) and symbol.kind <= STT_FUNC
        if here and symbol.size and symbol.name.startswith(prefix):
            thumb = file.machine == "arm" and symbol.kind == STT_FUNC
            found[symbol.name] = (symbol.value & ~1 if thumb else symbol.value, symbol)
    return found


def _reached(board: Board, plan: Plan, folder: Path) -> dict[str, set[str]]:
    """Function -> all functions that it calls, directly or indirectly, by their own names."""
    graph = read_call_graph(stack_tables(board, plan.prefix, folder))
    names = {key: function.name for key, function in graph.functions.items()}
    calls = {key: {graph.resolve(call.target) for call in f.calls} for key, f in graph.functions.items()}
    found: dict[str, set[str]] = {}
    for key, name in names.items():
        seen, waiting = set(), [key]
        while waiting:
            for other in calls.get(waiting.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        found.setdefault(name, set()).update(names.get(other, other) for other in seen)
    return found


def _layer(
    plan: Plan, step: Step, symbols: dict[str, tuple[int, Symbol]], reached: dict[str, set[str]], vectors: int
) -> dict[str, Any]:
    own = [version.function for version in step.versions]
    functions = {name for each in own for name in (each, *reached.get(each, ())) if name in symbols}
    functions |= {name for name in symbols for each in own if name.startswith(f"{each}.")}
    packed = {name for version in step.versions for name in version.names.packed.values()}
    return {
        "layer": step.layer,
        "ops": [op.name for op in step.site.ops],
        "kinds": step.kind,
        "kernel": step.kernel_name,
        "functions": sorted(functions),
        "constants": sorted(name for name in packed if name in symbols and symbols[name][1].kind <= STT_OBJECT),
        "tensors": sorted({*step.inputs, *step.outputs}),
        "vectors": list(range(vectors)),
    }
