"""No call of a step is lost where the compiler knows in which object its tensors lie: in one file, or at link time."""

from __future__ import annotations

import subprocess
from math import prod
from pathlib import Path

import numpy as np
import pytest

from benchmarks import campaign
from nnbuild.emit.emit import emit

MAIN = """\
#include <stdio.h>
#include <string.h>
#include "{p}.h"

static {p}_context context;
static const unsigned char given[] = {{{given}}};

int main(void)
{{
    {p}_init(&context);
    memcpy({p}_input(&context, 0), given, sizeof given);
    {p}_run(&context);
    for (unsigned i = 0; i < {size}; ++i) printf("%02x", ((const unsigned char *){p}_output(&context, 0))[i]);
    return 0;
}}
"""
CASES = [
    campaign.Case(4800505206, "int16", "c99", "speed"),
    campaign.Case(4800504684, "int16", "c99", "ram"),
    *(campaign.Case(seed, "int16", "c99", "speed") for seed in range(3)),
    *(campaign.Case(seed, "mixed", "c99", "speed") for seed in range(2)),
]


@pytest.mark.turns(6)
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_step_is_called(case: campaign.Case, tmp_path: Path) -> None:
    entry = campaign.entry_of(case, 0)
    plan = entry.plan
    emit(plan).write(tmp_path)
    first = entry.inputs[plan.graph.inputs[0]][0]
    output = plan.tensor(plan.graph.outputs[0])
    size = prod(output.shape) * np.dtype(output.dtype).itemsize
    text = MAIN.format(p=plan.prefix, given=", ".join(map(str, first.tobytes())), size=size)
    (tmp_path / "main.c").write_text(text)
    sources = sorted(path.name for path in tmp_path.glob("*.c"))
    (tmp_path / "whole").write_text("".join(f'#include "{name}"\n' for name in sources))

    def ran(*flags: str) -> str:
        command = ["gcc", "-w", *flags, "-o", "program"]
        subprocess.run(command, check=True, cwd=tmp_path)
        return subprocess.run(["./program"], check=True, cwd=tmp_path, capture_output=True, text=True).stdout

    wanted = ran("-O0", *sources)
    for flags in ("-O2", "-O3", "-O2 -fno-inline", "-O3 -fno-inline"):
        assert ran(*flags.split(), "-x", "c", "whole") == wanted, flags
        assert ran(*flags.split(), "-flto", *sources) == wanted, flags
