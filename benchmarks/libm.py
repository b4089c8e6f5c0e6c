"""Instructions per call of the float library, beside glibc's on x86-64 and newlib's on an emulated Cortex-M4F.

    python benchmarks/libm.py

Counts, not times: callgrind on x86-64, the instruction-exact timer of QEMU's -icount on the Cortex-M4F. The call and
return are counted with the function. Inputs are 256 scrambled values of the range that libm_calls.h gives.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBM = HERE.parent / "firmware" / "libm"
BARE = HERE.parent / "tests" / "libm"
FLAGS = ["-std=gnu99", "-O2", "-ffp-contract=off", "-fno-builtin", f"-I{LIBM}", f"-I{BARE}", f"-I{HERE}"]
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


def on_cortex_m4(work: Path) -> list[Row]:
    image = work / "libm.elf"
    sources = [HERE / "libm_cortex_m4.c", BARE / "cortex_m4.c", *library()]
    link: list[str | Path] = ["-nostartfiles", "--specs=nosys.specs", "-T", BARE / "cortex_m4.ld", "-lm"]
    run("arm-none-eabi-gcc", *CORTEX_M4F, *FLAGS, *sources, *link, "-o", image)
    text = ["-chardev", "stdio,id=text", "-semihosting-config", "enable=on,target=native,chardev=text"]
    quiet = ["-display", "none", "-monitor", "none", "-serial", "none", "-icount", "shift=0"]
    rows = []
    for line in run("qemu-system-arm", "-M", "netduinoplus2", *quiet, *text, "-kernel", image).splitlines():
        name, ours, theirs = line.split()
        rows.append(Row(name, int(ours, 16) / 100, int(theirs, 16) / 100))
    return rows


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


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        arm = on_cortex_m4(Path(folder))
        x86 = {row.name: row for row in on_x86(Path(folder))}
    print("| function | Cortex-M4F | newlib | x86-64 | glibc |")
    print("|---|---:|---:|---:|---:|")
    for row in arm:
        host = x86[row.name]
        print(f"| {row.name} | {row.ours:.0f} | {row.theirs:.0f} | {host.ours:.0f} | {host.theirs:.0f} |")


if __name__ == "__main__":
    main()
