"""Instructions per call of the float library, beside glibc's on x86-64 and newlib's on an emulated Cortex-M4F.

    python benchmarks/libm.py [--costs]

Counts, not times: callgrind on x86-64, the instruction-exact timer of QEMU's -icount on the Cortex-M4F. The call and
return are counted with the function. Inputs are 256 scrambled values of the range that libm_calls.h gives.
`--costs` compares what kernels are priced by, nnbuild/base/helper_costs.py, with counts on the Cortex-M4F, and those of
the integer rules (numeric_cortex_m4.c). Exit code 1 where one is more than a fifth and three instructions off.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from nnbuild.base.helper_costs import COSTS

HERE = Path(__file__).resolve().parent
LIBM = HERE.parent / "firmware" / "libm"
NUMERIC = HERE.parent / "firmware" / "numeric"
BARE = HERE.parent / "tests" / "libm"
FLAGS = [
    "-std=gnu99",
    "-O2",
    "-ffp-contract=off",
    "-fno-builtin",
    f"-I{LIBM}",
    f"-I{NUMERIC}",
    f"-I{BARE}",
    f"-I{HERE}",
]
CORTEX_M4F = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]
CALLS = 256


@dataclass(frozen=True)
class Row:
    name: str
    ours: float
    theirs: float


def run(*command: str | Path) -> str:
    parts = [str(part) for part in command]
    done = subprocess.run(parts, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{' '.join(parts)}\n{done.stdout}{done.stderr}")
    return done.stdout


def library() -> list[Path]:
    return sorted(LIBM.glob("nn_*.c"))


def counted_on_cortex_m4(image: Path, *sources: Path) -> list[list[str]]:
    """The words of each line that a program for the Cortex-M4F prints."""
    link: list[str | Path] = ["-nostartfiles", "--specs=nosys.specs", "-T", BARE / "cortex_m4.ld", "-lm"]
    run("arm-none-eabi-gcc", *CORTEX_M4F, *FLAGS, *sources, BARE / "cortex_m4.c", *link, "-o", image)
    text = ["-chardev", "stdio,id=text", "-semihosting-config", "enable=on,target=native,chardev=text"]
    quiet = ["-display", "none", "-monitor", "none", "-serial", "none", "-icount", "shift=0"]
    printed = run("qemu-system-arm", "-M", "netduinoplus2", *quiet, *text, "-kernel", image)
    return [line.split() for line in printed.splitlines()]


def on_cortex_m4(work: Path) -> list[Row]:
    lines = counted_on_cortex_m4(work / "libm.elf", HERE / "libm_cortex_m4.c", *library())
    return [Row(name, int(ours, 16) / 100, int(theirs, 16) / 100) for name, ours, theirs in lines]


def rules_on_cortex_m4(work: Path, known: bool) -> dict[str, float]:
    """The integer rules, compiled with numbers for their multipliers and shifts or as functions of variables."""
    rules, calls = sorted(NUMERIC.glob("nn_*.c")), HERE / "numeric_cortex_m4.c"
    one = work / "one.c"
    one.write_text("".join(f'#include "{source}"\n' for source in (*rules, calls)))
    lines = counted_on_cortex_m4(work / "rules.elf", *((one,) if known else (*rules, calls)))
    return {name: int(count, 16) / 100 for name, count in lines}


def costs() -> int:
    """Compares the costs that kernels are priced by with counts."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        known = rules_on_cortex_m4(work, True) | {row.name: row.ours for row in on_cortex_m4(work)}
        variable = rules_on_cortex_m4(work, False)
    off = False
    for name, cost in COSTS.items():
        pairs = [(cost.known, known[name]), *([(cost.variable, variable[name])] if cost.variable else [])]
        wrong = any(abs(priced - counted) > counted / 5 + 3 for priced, counted in pairs)
        off |= wrong
        told = ", ".join(f"{counted:.0f} counted, {priced:.0f} priced" for priced, counted in pairs)
        print(f"{name}: {told}{', too far off' if wrong else ''}")
    return int(off)


def on_x86(work: Path) -> list[Row]:
    program, counts = work / "libm_x86", work / "callgrind.out"
    run("gcc", *FLAGS, HERE / "libm_x86.c", *library(), "-Wl,-z,now", "-o", program, "-lm")
    run("valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}", program)
    listing = run("callgrind_annotate", "--inclusive=yes", "--threshold=100", counts)
    found = re.findall(r"^\s*([\d,]+) .*:measure_(\w+)", listing, flags=re.MULTILINE)
    total = {label: int(count.replace(",", "")) for count, label in found}
    two = {"fminf", "fmaxf", "fmodf", "powf"}

    def per_call(library_name: str, name: str) -> float:
        empty = total["empty_two" if name in two else "empty_one"]
        return (total[f"{library_name}_{name}"] - empty) / CALLS + 1

    names = [label.removeprefix("ours_") for label in total if label.startswith("ours_")]
    return [Row(name, per_call("ours", name), per_call("theirs", name)) for name in names]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        arm = on_cortex_m4(Path(folder))
        x86 = {row.name: row for row in on_x86(Path(folder))}
    print("| function | Cortex-M4F | newlib | x86-64 | glibc |")
    print("|---|---:|---:|---:|---:|")
    for row in arm:
        host = x86[row.name]
        print(f"| {row.name} | {row.ours:.0f} | {row.theirs:.0f} | {host.ours:.0f} | {host.theirs:.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(costs() if sys.argv[1:] == ["--costs"] else main())
