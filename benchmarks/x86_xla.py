"""Builds TensorFlow's ahead-of-time objects of a model into a library that can be called in a loop.

The runtime they need lies in the wheel as source; it is compiled once, which takes some minutes.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from x86_models import WORK
from x86_runners import Missing

WRAPPER = """\
#include "net.h"

extern "C" {
void *xla_new(void) { return new Net(); }
void *xla_arg(void *net, int index) { return static_cast<Net *>(net)->arg_data(index); }
int xla_run(void *net, long times)
{
    bool fine = true;
    for (long i = 0; i < times; ++i)
        fine = static_cast<Net *>(net)->Run() && fine;
    return fine;
}
}
"""
COMPILE = ("g++", "-std=c++17", "-O2", "-fPIC", "-w")


def build(saved: Path, folder: Path) -> tuple[Path, list[tuple[str, tuple[int, ...]]]]:
    """The library, and its inputs as (name, shape)."""
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or spec.origin is None:
        raise Missing("tensorflow is not installed")
    root = Path(spec.origin).parent
    folder.mkdir(parents=True, exist_ok=True)
    library, described = folder / "net.so", folder / "inputs.json"
    if not library.exists():
        _objects(saved, folder)
        (folder / "wrapper.cc").write_text(WRAPPER)
        includes = [f"-I{folder}", f"-I{root / 'include'}"]
        made = [str(folder / "wrapper.cc"), *map(str, sorted(folder.glob("net*.o"))), *map(str, _runtime(root))]
        _do([*COMPILE, *includes, "-shared", *made, "-Wl,--gc-sections", "-o", str(library)])
        described.write_text(json.dumps(_inputs((folder / "net.h").read_text())))
    return library, [(name, tuple(shape)) for name, shape in json.loads(described.read_text())]


def _objects(saved: Path, folder: Path) -> None:
    tool = Path(sys.executable).with_name("saved_model_cli")
    tools = [tool] if tool.exists() else [Path(p) / "saved_model_cli" for p in os.environ["PATH"].split(":")]
    found = next((path for path in tools if path.exists()), None)
    command = [str(found)] if found else [sys.executable, "-m", "tensorflow.python.tools.saved_model_cli"]
    options = ["--dir", str(saved), "--tag_set", "serve", "--signature_def_key", "serving_default"]
    target = ["--output_prefix", str(folder / "net"), "--cpp_class", "Net", "--multithreading", "false"]
    _do([*command, "aot_compile_cpu", *options, *target, "--target_cpu", _processor()])


def _processor() -> str:
    """What LLVM calls this processor; a name it does not know would leave the vector sets out."""
    done = subprocess.run(["clang", "-march=native", "-###", "-x", "c", "-"], capture_output=True, text=True)
    found = re.search(r'"-target-cpu" "([\w-]+)"', done.stderr)
    return found[1] if found else ""


def _runtime(root: Path) -> list[Path]:
    source, folder = root / "xla_aot_runtime_src", WORK / "xla-runtime"
    folder.mkdir(parents=True, exist_ok=True)
    objects = []
    for path in sorted(source.rglob("*.cc")):
        out = folder / (str(path.relative_to(source)).replace("/", "_") + ".o")
        if not out.exists():
            flags = ["-march=native", "-ffunction-sections", f"-I{root / 'include'}", f"-I{source}"]
            _do([*COMPILE, *flags, "-c", str(path), "-o", str(out)])
        objects.append(out)
    return objects


def _inputs(header: str) -> list[tuple[str, list[int]]]:
    """From the comment on the signature and the names of the accessors."""
    signature = re.search(r"\((arg0: [^)]*)\) ->", header)
    shapes = re.findall(r"f32\[([\d,]*)\]", signature[1]) if signature else []
    names = dict(re.findall(r"void set_arg_feed_(\w+)_data\(const void\* data\) \{\s*set_arg_data\((\d+)", header))
    by_index = {int(index): name for name, index in names.items()}
    return [(by_index.get(i, str(i)), [int(n) for n in shape.split(",") if n]) for i, shape in enumerate(shapes)]


def _do(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        last = [line for line in done.stderr.splitlines() if "rror" in line] or done.stderr.splitlines()
        raise Missing(f"{Path(command[0]).name}: {(last or ['failed'])[-1][:200]}")
