"""The static stack bound: the maximum stack depth under one function, and the reasons why it may be unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from nnbuild.audit.callgraph import Call, CallGraph, Function, known_frames, read_call_graph
from nnbuild.base.errors import UsageError

ErrorKind = Literal["recursion", "dynamic-frame", "indirect-call", "unknown-frame", "budget"]
NO_FRAMES: Mapping[str, int] = MappingProxyType({})
NO_CALLS: Mapping[str, Sequence[str]] = MappingProxyType({})


@dataclass(frozen=True)
class StackError:
    kind: ErrorKind
    function: str
    source: str
    """`file:line`, empty when unknown."""
    message: str


@dataclass(frozen=True)
class StackReport:
    entry: str
    depth: int
    """Bytes; only a lower bound when there are errors other than the budget's."""
    path: tuple[tuple[str, int], ...]
    """The deepest call chain, from the entry down, with each function's bytes."""
    errors: tuple[StackError, ...]
    budget: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def bounded(self) -> bool:
        return all(error.kind == "budget" for error in self.errors)

    @property
    def clean(self) -> bool:
        return not self.errors


def stack_bound(
    files: Sequence[Path],
    entry: str,
    budget: int | None = None,
    *,
    frames: Mapping[str, int] = NO_FRAMES,
    may_call: Mapping[str, Sequence[str]] = NO_CALLS,
) -> StackReport:
    """The bound for `entry`, from any mixture of .ci, .su and object files.

    `frames` gives the bytes, including callees, of functions without compiler data; `may_call` lists, for a function
    with indirect calls, all their possible targets.
    """
    graph = read_call_graph(files)
    known_frames(graph, frames.items())
    start = graph.resolve(entry)
    if start not in graph.functions:
        statics = [key for key in graph.functions if key.endswith(f":{entry}")]
        if len(statics) != 1:
            names = [function.name for function in graph.functions.values()]
            near = get_close_matches(entry, names, 3) or sorted(names)[:3]
            raise UsageError(
                entry,
                "is not a function of the given files." if not statics else "is a static function of several files.",
                f"Name a function in them, such as {', '.join(near)}." if near else "Give .ci files or objects.",
            )
        start = statics[0]
    for name, targets in may_call.items():
        caller = graph.function(graph.resolve(name))
        caller.calls += [Call(target, caller.source) for target in targets]
        caller.indirect.clear()
    return _Walk(graph).report(start, entry, budget)


class _Walk:
    """A depth-first walk from the entry with an explicit stack, so that no call chain is too deep for it."""

    def __init__(self, graph: CallGraph) -> None:
        self._graph = graph
        self._depth: dict[str, int] = {}
        self._next: dict[str, str] = {}
        self._errors: dict[tuple[str, str, str], StackError] = {}

    def report(self, start: str, entry: str, budget: int | None) -> StackReport:
        self._visit(start)
        depth = self._depth[start]
        path, key = [], start
        while key:
            path.append((self._name(key), self._size(key)))
            key = self._next.get(key, "")
        if budget is not None and depth > budget:
            deepest = max(path, key=lambda step: step[1])
            text = f"{depth} bytes of stack are needed, {depth - budget} above the limit of {budget}; "
            text += f"the largest frame is in {deepest[0]}, {deepest[1]} bytes"
            self._error("budget", start, self._source(start), text)
        order = sorted(self._errors.values(), key=lambda error: (error.kind, error.function, error.source))
        return StackReport(entry, depth, tuple(path), tuple(order), budget, tuple(self._graph.notes))

    def _name(self, key: str) -> str:
        return key.rsplit(":", 1)[-1]

    def _source(self, key: str) -> str:
        function = self._graph.functions.get(key)
        return function.source if function is not None else ""

    def _size(self, key: str) -> int:
        """Bytes of a function on the deepest path; only the last function on it can use its red zone."""
        function = self._graph.functions.get(key)
        if function is None:
            return 0
        return (function.frame or 0) + (0 if key in self._next else function.red_zone)

    def _error(self, kind: ErrorKind, key: str, source: str, message: str) -> None:
        name = self._name(key)
        self._errors.setdefault((kind, name, source), StackError(kind, name, source, message))

    def _visit(self, start: str) -> None:
        chain, waiting = [start], [iter(self._callees(start))]
        open_keys = {start}
        if self._graph.functions[start].frame is None:
            self._unknown(Call(start, self._source(start)))
        while chain:
            call = next(waiting[-1], None)
            if call is None:
                open_keys.discard(chain[-1])
                self._close(chain.pop())
                waiting.pop()
            elif call.target in open_keys:
                self._recursion(chain[chain.index(call.target) :], call)
            elif call.target not in self._depth:
                chain.append(call.target)
                open_keys.add(call.target)
                waiting.append(iter(self._callees(call.target)))
                self._unknown(call)

    def _callees(self, key: str) -> list[Call]:
        function = self._graph.functions.get(key)
        if function is None:
            return []
        if function.dynamic:
            text = "its frame has no fixed size (alloca or a variable-length array)"
            self._error("dynamic-frame", key, function.source, text)
        for source in function.indirect:
            text = "calls through a pointer, so its callees are unknown"
            self._error("indirect-call", key, source or function.source, text)
        return [Call(self._graph.resolve(call.target), call.source) for call in function.calls]

    def _unknown(self, call: Call) -> None:
        function: Function | None = self._graph.functions.get(call.target)
        if function is None or function.frame is None:
            source = call.source or self._source(call.target)
            self._error("unknown-frame", call.target, source, "no file gives its stack usage")

    def _recursion(self, cycle: list[str], call: Call) -> None:
        names = " -> ".join([*(self._name(key) for key in cycle), self._name(call.target)])
        self._error("recursion", cycle[-1], call.source or self._source(cycle[-1]), f"calls itself: {names}")

    def _close(self, key: str) -> None:
        """All callees are known: the function's depth is its frame plus the deepest callee."""
        function = self._graph.functions.get(key)
        deepest, chosen = 0, ""
        for call in function.calls if function is not None else ():
            target = self._graph.resolve(call.target)
            # A callee that is not closed yet is the function itself or a caller: recursion, reported elsewhere.
            below = self._depth.get(target, -1)
            if below > deepest or (below == deepest and not chosen):
                deepest, chosen = below, target
        own = (function.frame or 0) if function is not None else 0
        red_zone = function.red_zone if function is not None else 0
        self._depth[key] = own + max(deepest, red_zone)
        if chosen and deepest >= red_zone:
            self._next[key] = chosen


def render_stack(report: StackReport) -> str:
    bound = "at most" if report.bounded else "at least"
    limit = f" of {report.budget}" if report.budget is not None else ""
    lines = [f"Stack under {report.entry}: {bound} {report.depth} bytes{limit}"]
    lines += [f"  {size:>7}  {name}" for name, size in report.path]
    for error in report.errors:
        where = f", {error.source}" if error.source else ""
        lines.append(f"  [{error.kind}] {error.function}(){where}: {error.message}.")
    lines += [f"  Note: {note}." for note in report.notes]
    return "\n".join(lines) + "\n"


def stack_json(report: StackReport) -> dict[str, Any]:
    return {
        "entry": report.entry,
        "depth": report.depth,
        "bounded": report.bounded,
        "clean": report.clean,
        "budget": report.budget,
        "path": [{"function": name, "bytes": size} for name, size in report.path],
        "errors": [
            {"kind": error.kind, "function": error.function, "source": error.source or None, "message": error.message}
            for error in report.errors
        ],
        "notes": list(report.notes),
    }
