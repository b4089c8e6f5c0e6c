"""The assembly of the packed tile against its C meaning, both compiled for a Cortex-M4 and run in the emulator."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.base.writer import Writer
from nnbuild.bound.image import read_image
from nnbuild.cycles.clock import Processor
from nnbuild.emit.instructions import instructions
from nnbuild.kernels.dsp.assembly_tile import Iterations, Lines, turns
from nnbuild.kernels.dsp.scaling import Scaling
from nnbuild.kernels.dsp.shared_tile import Shared, multiply, pack
from nnbuild.kernels.dsp.tile import LONGEST, SHORT, Run, Tile
from nnbuild.kernels.dsp.tile_routine import call
from nnbuild.kernels.dsp.weight_layouts import Packed
from nnbuild.kernels.lanes.layer_sums import Sums
from nnbuild.numeric.requant_product import Form
from tests.bound.assembled import SCRIPT

LEVEL = Form(left=8, level=12)
SIGNED = Form(left=1, level=None, rounded=True, below=1)
BLOCKS = 3
LENGTHS = [(2, LONGEST), (14, SHORT), (22, SHORT), (32, LONGEST), (74, LONGEST), (614, LONGEST)]


def scaling(form: Form, low: int = -128, high: int = 127) -> Scaling:
    roles = ["multiplier", "offset", *(["shift"] if form.level is None else [])]
    none = np.zeros(4, np.int64)
    return Scaling(none, none, dict.fromkeys(roles, none), form, "", 0, low, high, 8)


def outputs(folder: Path, tile: Tile, flags: str) -> bytes:
    """The routine's outputs for pseudo-random inputs: two positions' channels, the same in every round."""
    w, sizes, roles = Writer("p"), tile.sizes(4), len(tile.roles)
    apart = BLOCKS * sum(sizes[:-1])
    call(w, tile, Run(4, BLOCKS), ("k", f"k + {apart}")[: len(sizes)], ("out", "out + 64"), str(BLOCKS))
    held = -(-tile.lines.rows * tile.lines.length // 4) if tile.lines else tile.pairs
    words = f"""
    for (int32_t i = 0; i < {2 * BLOCKS * sum(sizes)}; ++i) {{
        const int32_t at = i < {2 * apart} ? -1 : (i - {2 * apart}) % {2 * sizes[-1]} - {2 * sizes[-1] - 4 * roles};
        state = state * 1664525U + 1013904223U;
        words[i] = (int32_t)(at < 0 ? state & 0x3f3f3f3fU : (state >> 12) - 524288U);
        words[i] = at >= 0 && at % {roles} == 2 ? 11 + at % 4 : words[i];
    }}"""
    return stored(folder, w, f"static int64_t patch[{held}], k[{BLOCKS * sum(sizes)}];", 2 * held, words, flags)


def stored(folder: Path, w: Writer, arrays: str, held: int, filled: str, flags: str) -> bytes:
    """The outputs of a call with pseudo-random constants and `held` words of inputs."""
    text = f"""
#include <stdint.h>
{instructions(w.instructions.values(), "p", "")}
int8_t out[128];
{arrays}

void f(void);
void f(void)
{{
    uint32_t state = 12345U;
    int32_t *const x = (int32_t *)(void *)patch, *const words = (int32_t *)(void *)k;
    for (int32_t i = 0; i < {held}; ++i) {{
        state = state * 1664525U + 1013904223U;
        x[i] = (int32_t)((state >> 24) | (state >> 8 & 0xffU) << 16);
    }}{filled}
    {w}
}}
"""
    (folder / "p.c").write_text(text)
    (folder / "p.ld").write_text(SCRIPT.replace("16K", "64K"))
    command = [
        "arm-none-eabi-gcc",
        "-mcpu=cortex-m4",
        "-mthumb",
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-nostdlib",
    ]
    command += [flags, "-ffreestanding", "-Wl,-e,f", "-T", "p.ld", "p.c", "-o", "p.elf", "-lgcc"]
    subprocess.run(command, cwd=folder, check=True)
    processor = Processor(read_image(folder / "p.elf"))
    processor.call("f")
    return bytes(processor.cpu.mem_read(processor.image.symbol("out"), 128))


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("scaled", [scaling(LEVEL), scaling(LEVEL, -20, 90), scaling(SIGNED)])
@pytest.mark.parametrize(("pairs", "longest"), LENGTHS)
def test_assembly_computes_what_the_c_does(
    pairs: int, longest: int, scaled: Scaling, shared: bool, tmp_path: Path
) -> None:
    tile = Tile(Packed(), scaled, pairs, 2, longest=longest, shared=shared)
    native, meant = (outputs(tmp_path, tile, flags) for flags in ("-O2", "-O0"))
    assert native == meant
    assert len(set(native)) >= 6


@pytest.mark.parametrize("lines", [Lines(3, 5, 6, 32), Lines(5, 8, 2, 40), Lines(2, 12, 12, 44)])
def test_assembly_reads_lines_as_the_c_does(lines: Lines, tmp_path: Path) -> None:
    tile = Tile(Packed(), scaling(SIGNED), lines.rows * lines.pairs, 2, lines=lines, shared=lines.rows == 2)
    native, meant = (outputs(tmp_path, tile, flags) for flags in ("-O2", "-O0"))
    assert native == meant
    assert len(set(native)) >= 6


def layer(channels: int, pairs: int, scaled: Scaling) -> Scaling:
    """The scaling with constants for `channels` channels."""
    numbers = np.random.default_rng(channels)
    shift = numbers.integers(0, 7, channels)
    offset = (2 * scaled.zero + 1) << shift >> 1
    columns = {"multiplier": numbers.integers(1 << 20, (1 << 28) // pairs, channels), "offset": offset, "shift": shift}
    none = np.zeros(channels, np.int64)
    return replace(scaled, left=none, centre=none, columns=columns)


@pytest.mark.parametrize(
    "scaled",
    [scaling(SIGNED), scaling(SIGNED, -20, 90), replace(scaling(SIGNED), zero=-77), scaling(Form(left=0), -128, 30)],
)
@pytest.mark.parametrize(("pairs", "channels"), [(2, 4), (8, 6), (14, 9), (30, 12), (72, 3)])
def test_shared_tile_computes_what_its_c_does(pairs: int, channels: int, scaled: Scaling, tmp_path: Path) -> None:
    own, numbers = layer(channels, pairs, scaled), np.random.default_rng(pairs)
    if pairs == 14:
        own = replace(own, columns={**own.columns, "offset": own.columns["offset"] + 3})
    starts = numbers.integers(-9999, 9999, channels)
    sums = Sums(numbers.integers(-127, 128, (2 * pairs, channels)), starts, starts, starts)
    shape = Shared(own, pairs, channels)
    constants = pack(sums, shape, slice(0, channels))
    assert len(constants) == shape.words
    w = Writer("p")
    multiply(w, shape, "k", ("out", "out + 64"))
    arrays = f"static int64_t patch[{pairs}]; static const int32_t k[] = {{{', '.join(map(str, constants))}}};"
    made = [stored(tmp_path, w, arrays, 2 * pairs, "\n    (void)words;", flags) for flags in ("-O2", "-O0")]
    assert made[0] == made[1]
    assert not any(made[0][channels:64]) and not any(made[0][64 + channels :])
    assert len(set(made[0]) - {0, 127, 128}) > 1


def test_iterations_of_a_loop() -> None:
    assert turns(8, 10) == Iterations(8, 1, 0)
    assert turns(14, 10) == Iterations(7, 2, 0)
    assert turns(22, 10) == Iterations(8, 3, 2)
    assert turns(64, 8) == Iterations(8, 8, 0)
