"""The call graph and stack frames, from compiler output and objects: .ci and .su files, .stack_sizes, code."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from nnbuild.audit import vector_frames
from nnbuild.audit.archive import open_file
from nnbuild.audit.calls import CallReader
from nnbuild.audit.code import Code
from nnbuild.audit.dwarf import DECODING_ERRORS, Cursor
from nnbuild.audit.elf import STB_LOCAL, STT_FILE, STT_FUNC, ObjectFile, bad_object
from nnbuild.audit.source_locations import Extent, Locator

NODE = re.compile(r'^node: \{ title: "(?P<title>.*?)" label: "(?P<label>.*)"(?P<external> shape : ellipse)? \}$')
EDGE = re.compile(
    r'^edge: \{ sourcename: "(?P<source>.*?)" targetname: "(?P<target>.*?)"(?: label: "(?P<label>.*)")? \}$'
)
"""gcc does not escape quotes of a source's path."""
FRAME = re.compile(r"^(\d{1,12}) bytes \(([\w,]+)\)$")
INDIRECT = "__indirect_call"
BELOW_STACK = re.compile(r"\[rsp(?: \+ [^-\]]+)? - (0x[0-9a-f]+|\d+)\]")
# A call pushes its return address; gcc's figures include it, clang's do not.
RETURN_ADDRESS = {"x86": 4, "x86-64": 8}
# Calls that compilers add and that use none of the program's stack: a return through a thunk, the kernel's tracing
# hook (no code unless tracing is on), and the end of a program whose stack is already broken.
FRAMELESS = frozenset({"__x86_return_thunk", "__fentry__", "__stack_chk_fail"})
# Kernels and hardened programs call through pointers with these.
POINTER_THUNKS = ("__x86_indirect_thunk_", "__llvm_retpoline_", "__x86_indirect_call_thunk_")
# Machines whose jump tables have relocations, which distinguish a table of labels from a table of functions.
TABLES_RELOCATED = ("x86", "x86-64", "riscv", "powerpc", "powerpc64")
COLD_PART = re.compile(r"\.cold(?:\.\d+)?$")
MAX_TEXT = 64 << 20  # of a .ci or .su file


class Call(NamedTuple):
    target: str
    source: str
    """`file:line` of the call; empty when unknown."""


@dataclass
class Function:
    """One function of the call graph. `frame` is None while its size is unknown."""

    key: str
    source: str = ""
    frame: int | None = None
    dynamic: bool = False
    from_compiler: bool = False
    """Whether the compiler's call graph lists its calls; then indirect ones in the code need no analysis."""
    calls: list[Call] = field(default_factory=list)
    indirect: list[str] = field(default_factory=list)
    red_zone: int = 0
    in_object: bool = False
    """Whether its code was read, so that all its calls are known."""

    @property
    def name(self) -> str:
        return self.key.rsplit(":", 1)[-1]


@dataclass
class CallGraph:
    """Functions by key: a global function's name, a static one's `file.c:name`."""

    functions: dict[str, Function] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def function(self, key: str) -> Function:
        return self.functions.setdefault(key, Function(key))

    def resolve(self, key: str) -> str:
        return key if key in self.functions else self.aliases.get(key, key)


def read_call_graph(paths: Sequence[Path]) -> CallGraph:
    """Reads all files: the compiler's tables first, so that the objects only add what these lack."""
    graph = CallGraph()
    su_files = [path for path in paths if path.suffix == ".su"]
    ci_files = [path for path in paths if path.suffix == ".ci"]
    objects = [path for path in paths if path.suffix not in (".su", ".ci")]
    for path in ci_files:
        _read_ci(graph, path)
    for path in su_files:
        _read_su(graph, path)
    for path in objects:
        for file in open_file(path).objects:
            ObjectCalls(graph, Locator(file)).add()
    _forget_folded(graph)
    if not objects:
        graph.notes.append("no object was given: the red zone of x86-64 leaf functions is not counted")
    return graph


def _forget_folded(graph: CallGraph) -> None:
    """gcc merges identical static functions, but its call graph still shows the call to the removed one.

    Where the caller's code was read, the code shows which of the two is called.
    """
    for function in graph.functions.values():
        if function.in_object:
            calls = function.calls
            function.calls = [c for c in calls if ":" not in c.target or graph.resolve(c.target) in graph.functions]


def _text_of(path: Path) -> list[str]:
    try:
        if path.stat().st_size > MAX_TEXT:
            raise bad_object(str(path), "is over 64 MB, too large for a compiler's stack report.")
        return path.read_text("utf-8", "backslashreplace").splitlines()
    except OSError as problem:
        raise bad_object(str(path), f"cannot be read ({problem.strerror}).", "Check the path.") from None


def key_of(title: str) -> str:
    """A static function's title is `path/file.c:name`; the path is dropped, because objects do not contain it."""
    path, colon, name = title.rpartition(":")
    return f"{PurePosixPath(path).name}:{name}" if colon else title


def _source_of(location: str) -> str:
    """`file:line` of `path/file.c:line:column`."""
    parts = location.rsplit(":", 2)
    return ":".join(parts[:2]) if len(parts) == 3 else location


def _read_ci(graph: CallGraph, path: Path) -> None:
    lines = _text_of(path)
    if not lines or not lines[0].startswith("graph:"):
        raise bad_object(str(path), "is not a call graph from gcc.", "Compile with -fcallgraph-info=su,da.")
    for number, line in enumerate(lines[1:], 2):
        node, edge = NODE.match(line), EDGE.match(line)
        if node is not None:
            if not node["external"]:
                _add_node(graph, node["title"], node["label"])
        elif edge is not None:
            caller, source = graph.function(key_of(edge["source"])), _source_of(edge["label"] or "")
            if edge["target"] == INDIRECT:
                caller.indirect.append(source)
            else:
                caller.calls.append(Call(key_of(edge["target"]), source))
        elif line.strip() not in ("", "}") and not line.startswith("graph:"):
            raise bad_object(str(path), f"line {number} is neither a node nor an edge of a call graph.")


def _add_node(graph: CallGraph, title: str, label: str) -> None:
    function = graph.function(key_of(title))
    function.from_compiler = True
    for part in label.split("\\n")[1:]:
        frame = FRAME.match(part)
        if frame is not None:
            function.frame = max(int(frame[1]), function.frame or 0)
            function.dynamic = function.dynamic or frame[2] == "dynamic"
        elif not function.source and re.search(r":\d+:\d+$", part):
            function.source = _source_of(part)


def _read_su(graph: CallGraph, path: Path) -> None:
    """gcc writes `file:line:column:name`, clang `file:line:name`, then size and kind between tabs."""
    for number, line in enumerate(_text_of(path), 1):
        parts = line.split("\t")
        where = re.match(r"^(?P<file>.*?):(?P<line>\d+):(?:\d+:)?(?P<name>.+)$", parts[0]) if len(parts) == 3 else None
        if where is None or not re.fullmatch(r"\d{1,12}", parts[1], re.ASCII):
            raise bad_object(str(path), f"line {number} is not a stack usage entry.", "Compile with -fstack-usage.")
        base = f"{PurePosixPath(where['file']).name}:{where['name']}"
        # The file does not mark static functions, so the frame is stored under both possible names.
        for key in (base, where["name"]):
            function = graph.functions.get(key) or Function(key)
            if function.from_compiler:
                continue
            function.frame = max(int(parts[1]), function.frame or 0)
            function.dynamic = function.dynamic or parts[2] == "dynamic"
            function.source = function.source or f"{where['file']}:{where['line']}"
            graph.functions[key] = function


class ObjectCalls:
    """Adds the contents of one object file to a call graph."""

    def __init__(self, graph: CallGraph, locator: Locator) -> None:
        self._graph, self._locator = graph, locator
        self._file: ObjectFile = locator.file
        self._keys = self._symbol_keys()

    def _symbol_keys(self) -> dict[int, str]:
        """The key of the function at each address."""
        keys: dict[int, str] = {}
        owners = self._owners()
        for extent in self._locator.functions:
            symbol = extent.symbol
            owner = owners.get((symbol.name, symbol.value)) if symbol.binding == STB_LOCAL else None
            keys[extent.start] = f"{owner}:{symbol.name}" if owner else symbol.name
        known = set(keys.values())
        for start, key in keys.items():
            # gcc moves cold code to a separate part, in the frame of the function it was cut from;
            # the part is local even where the function is global.
            whole = COLD_PART.sub("", key)
            if whole != key:
                keys[start] = next((k for k in (whole, whole.rsplit(":", 1)[-1]) if k in known), key)
        for symbol in self._file.symbols:
            address = self._file.address_of(symbol)
            if symbol.kind == STT_FUNC and address in keys and symbol.name != keys[address]:
                self._graph.aliases.setdefault(symbol.name, keys[address])
        return keys

    def _owners(self) -> dict[tuple[str, int], str]:
        """The source file of each local symbol: the last file symbol before it."""
        owners, owner = {}, ""
        for symbol in self._file.symbols:
            if symbol.kind == STT_FILE:
                owner = symbol.name
            elif symbol.binding == STB_LOCAL and symbol.kind == STT_FUNC and owner:
                owners[symbol.name, symbol.value] = PurePosixPath(owner).name
        return owners

    def add(self) -> None:
        code = Code(self._locator)
        if not code.readable:
            raise bad_object(
                self._file.name, f"is for {self._file.machine}, whose calls cannot be read.", "Use .ci files."
            )
        frames = self._frames()
        for extent in self._locator.functions:
            self._add_function(extent, frames)
        reader = CallReader(code)
        switches = self._switch_functions()
        for chunk in code.chunks():
            caller = self._locator.function_at(chunk.start)
            if caller is None or caller.start not in self._keys:
                continue
            function = self._graph.functions[self._keys[caller.start]]
            for branch in reader.branches(chunk):
                if branch.symbol in FRAMELESS:
                    continue
                thunk = branch.symbol.startswith(POINTER_THUNKS)
                if thunk or (branch.target is None and not branch.symbol):
                    inner = branch.switch and (self._file.machine not in TABLES_RELOCATED or caller.start in switches)
                    if not inner and not function.from_compiler:
                        function.indirect.append(self._locator.place(branch.address).source)
                    continue
                self._add_call(function, branch.target, branch.symbol, branch.is_call, branch.address)
            if self._file.machine == "riscv":
                _read_frame(function, [f"{line.mnemonic} {line.operands}" for line in code.instructions(chunk)])
            if self._file.machine == "x86-64":
                for instruction in code.lines_of(chunk):
                    for match in BELOW_STACK.finditer(instruction[3]):
                        function.red_zone = max(function.red_zone, int(match[1], 0))

    def _add_function(self, extent: Extent, frames: dict[int, int] | None) -> None:
        key = self._keys[extent.start]
        told = self._graph.functions.get(key) or self._graph.functions.get(re.sub(r"\.\d+$", "", key))
        function = self._graph.function(key)
        function.in_object = True
        if told is not None and told is not function:
            function.frame, function.dynamic, function.source = told.frame, told.dynamic, told.source
        if not function.source:
            function.source = self._locator.place(extent.start, opening=True).source
        if function.from_compiler or frames is None:
            return
        if extent.start in frames:
            frame = frames[extent.start] + RETURN_ADDRESS.get(self._file.machine, 0)
            function.frame = max(frame, function.frame or 0)
        else:  # clang omits exactly the functions whose frame has no fixed size
            function.dynamic = True
            function.frame = function.frame or 0

    def _frames(self) -> dict[int, int] | None:
        """Frame sizes from clang's .stack_sizes by address; None when the object has no such section."""
        found: dict[int, int] | None = None
        for section in self._file.sections:
            if section.name != ".stack_sizes":
                continue
            found = {} if found is None else found
            cursor = Cursor(self._locator.debug.content(section), 0, self._file.little)
            try:
                while cursor.at < len(cursor.data):
                    address = cursor.number(self._file.bits // 8)
                    found[address & ~1 if self._file.machine == "arm" else address] = cursor.uleb()
            except DECODING_ERRORS:
                raise bad_object(self._file.name, "the section .stack_sizes is damaged.") from None
        return found

    def _switch_functions(self) -> set[int]:
        """Functions with a table that points into their middle: their indirect jumps are switch statements."""
        found: set[int] = set()
        extents = self._locator.functions
        starts = [extent.start for extent in extents]
        for table in self._locator.relocations:
            if table.target is None or not table.target.allocated or table.target.executable:
                continue
            if table.target.name.startswith((".eh_frame", ".ARM.ex", ".gcc_except_table")):
                continue
            for entry in table.entries():
                start = self._file.address_of(entry.symbol) if entry.symbol is not None else None
                target = start + entry.addend if start is not None else -1
                position = bisect_right(starts, target) - 1
                if position >= 0 and starts[position] < target < extents[position].end:
                    found.add(starts[position])
        return found

    def _add_call(self, function: Function, target: int | None, symbol: str, is_call: bool, address: int) -> None:
        key = symbol
        if target is not None and not symbol:
            callee = self._locator.function_at(target)
            if callee is None:
                return
            key = self._keys.get(callee.start, callee.symbol.name)
            # A jump within the function, or a loop over all of it, is no call; nor is one back from its cold part.
            inside = key == function.key or target != callee.start
            if inside and not (is_call and target == callee.start):
                return
        if not any(call.target == key for call in function.calls):
            function.calls.append(Call(key, self._locator.place(address).source))


def _read_frame(function: Function, lines: Sequence[str]) -> None:
    """Enters what a RISC-V function's instructions show of its frame, where that may be more than clang says."""
    size = vector_frames.frame_of(lines)
    fixed, registers = size or (0, 0)
    if vector_frames.saves_vectors(lines):
        function.dynamic = size is None
        function.frame = max(fixed, function.frame or 0) + registers * vector_frames.LONGEST_REGISTER
    elif function.frame is not None and not function.from_compiler:
        function.frame = max(fixed, function.frame)


def known_frames(graph: CallGraph, frames: Iterable[tuple[str, int]]) -> None:
    """Enters frame sizes given by the user, for functions without compiler data."""
    for name, size in frames:
        function = graph.function(graph.resolve(name))
        function.frame, function.from_compiler = size, True
