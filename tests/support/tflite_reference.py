"""What TFLite's reference kernels take, asked of the interpreter, each question in a process of its own: some crash.

python -m tests.support.tflite_reference registered    the operators that they know
python -m tests.support.tflite_reference retyped       files of one operator that also run in another type
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from tests.frontend.tflite_files import KINDS, File, O, T, to_bytes
from tests.fuzz.tflite_seeds import SEEDS, retyped

COLUMNS = ("float32", "int8", "int16", "int32")
UNKNOWN = "Didn't find op"
VERSIONS = range(1, 6)


def answer(file: File, run: bool) -> str:
    """ "", or what the interpreter has against a file."""
    with tempfile.NamedTemporaryFile(suffix=".tflite") as held:
        held.write(to_bytes(file))
        held.flush()
        try:
            made = Interpreter(held.name, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
            if run:
                made.allocate_tensors()
                for detail in made.get_input_details():
                    made.set_tensor(detail["index"], np.ones(detail["shape"], detail["dtype"]))
                made.invoke()
        except (ValueError, RuntimeError) as error:
            return str(error)
    return ""


def apart(question: Callable[[], str]) -> str:
    """The answer of a process, or "crash"."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.write(writes, question()[:500].encode() or b"fine")
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        found = pipe.read().decode()
    os.waitpid(child, 0)
    return "" if found == "fine" else found or "crash"


def registered() -> Iterator[str]:
    for kind in KINDS:
        tensors = [T("x", (1, 4), "float32"), T("y", (1, 4), "float32")]
        files = [File(tensors, [O(kind, [0], [1], version=v)], [0], [1]) for v in VERSIONS]
        if kind != "CUSTOM" and any(UNKNOWN not in answer(file, run=False) for file in files):
            yield kind


def also_run() -> Iterator[str]:
    """Operators and types, by the files that exist of other types."""
    seen = set()
    for name, file in SEEDS.items():
        kind, source = name.split("-")[0], name.split("-")[-1]
        for dtype in COLUMNS if source in COLUMNS else ():
            if dtype == source or (kind, dtype) in seen:
                continue
            for version in VERSIONS:
                operators = [replace(o, version=version) if o.kind == kind else o for o in file.operators]
                other = retyped(replace(file, operators=operators), source, dtype)
                if not apart(lambda other=other: answer(other, run=True)):  # type: ignore[misc]
                    seen.add((kind, dtype))
                    yield f"{kind} {dtype}"
                    break


if __name__ == "__main__":
    print("\n".join(registered() if sys.argv[1] == "registered" else also_run()))
