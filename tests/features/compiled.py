"""The C of a front end as a library of this process, fed in parts of any length."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from nnbuild.features.frontend import Array, FrontEnd
from nnbuild.features.frontend_c import feature_files
from tests.support.compiled import STRICT

GLUE = """\
#include "k_features.h"
static k_features f;
void begin(void) { k_features_init(&f); }
int feed(const SAMPLE *x, int n, ROW *out)
{
    int count = 0;
    while (n > 0) {
        const int taken = k_features_push(&f, x, n);
        x += taken * AXES;
        n -= taken;
        if (f.ready) {
            for (int i = 0; i < K_FEATURES_SIZE; ++i) out[count * K_FEATURES_SIZE + i] = f.row[i];
            ++count;
        }
    }
    return count;
}
"""
KINDS = {"uint16": "uint16_t", "int16": "int16_t", "float32": "float"}
UNDEFINED = ("-O1", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error")


def built(
    front_end: FrontEnd,
    folder: Path,
    flags: tuple[str, ...] = UNDEFINED,
    changed: Callable[[Mapping[str, bytes]], Mapping[str, bytes]] = lambda files: files,
) -> ctypes.CDLL:
    for name, content in changed(feature_files(front_end, "k")).items():
        (folder / name).write_bytes(content)
    framing = front_end.framing
    text = GLUE.replace("SAMPLE", KINDS[framing.sample]).replace("ROW", KINDS[front_end.row[0]])
    (folder / "glue.c").write_text(text.replace("AXES", str(framing.axes)))
    sources = [str(folder / name) for name in ("k_features.c", "glue.c")]
    library = folder / "k.so"
    command = ["gcc", *STRICT, *flags, "-shared", "-fPIC", "-o", str(library), *sources]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(library))


def fed(library: ctypes.CDLL, front_end: FrontEnd, samples: Array, chance: np.random.Generator | None = None) -> Array:
    """From a new stream; in parts by chance, some of them empty."""
    framing, (kind, size) = front_end.framing, front_end.row
    whole = np.ascontiguousarray(samples, framing.sample).reshape(-1, framing.axes)
    rows = np.zeros((len(whole) // framing.step + 2, size), kind)
    library.begin()
    at = count = 0
    while at < len(whole):
        step = len(whole) if chance is None else int(chance.integers(0, 3 * framing.step))
        part = np.ascontiguousarray(whole[at : at + step])
        where = rows[count:].ctypes.data_as(ctypes.c_void_p)
        count += library.feed(part.ctypes.data_as(ctypes.c_void_p), len(part), where)
        at += step
    return rows[:count]
