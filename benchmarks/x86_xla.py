"""Builds TensorFlow's ahead-of-time objects of a model into a library that can be called in a loop.

One file of the runtime they need lies in the wheel as source and is compiled here; the rest is in its libraries.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

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
RUNTIME = "xla_aot_runtime_src/tensorflow/compiler/tf2xla/xla_compiled_cpu_function.cc"
LIBRARIES = ("-l:libtensorflow_framework.so.2", "-l:libtensorflow_cc.so.2")
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
        made = [str(folder / "wrapper.cc"), *map(str, sorted(folder.glob("net*.o"))), str(root / RUNTIME)]
        libraries = [f"-L{root}", *LIBRARIES, f"-Wl,-rpath,{root}"]
        _do([*COMPILE, *includes, "-shared", *made, *libraries, "-o", str(library)])
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
    """A processor of LLVM's that has what this one has; without a name the vector sets would be left out."""
    about = Path("/proc/cpuinfo").read_text()
    if "avx512vnni" in about.replace("_", ""):
        return "znver5" if "AuthenticAMD" in about else "icelake-server"
    return "haswell" if "avx2" in about else "nehalem"


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
