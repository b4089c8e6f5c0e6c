"""How much CPU time the audit of an object of 10 MB takes.

    python benchmarks/audit.py

Code with and without its debug information, clean and with sins in every second function, and constants
alone. The policy `kernel` asks for everything: every instruction is read, and every finding's line and inlined calls
are looked up.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nnbuild.audit import audit_files, load_policy, render_text, report_json

TARGET = 10_000_000

FUNCTION = """
static inline float act{n}(float x) {{ return expf(x) * {n}.5f; }}
static __attribute__((used)) int layer{n}(const signed char *in, signed char *out, int size) {{
    int total = {n};
    for (int i = 0; i < size; i++) {{
        int sum = {n} * 3;
        for (int k = 0; k < 9; k++) sum += in[i + k] * table[(i * {n} + k) & 255];
        sum = (sum >> 7) + ((sum >> 6) & 1);
        out[i] = (signed char)(sum > 127 ? 127 : sum < -128 ? -128 : sum);
        total += out[i] ^ (sum << 3);
    }}
    return total;
}}
"""
SINFUL = """
static __attribute__((used)) float sin{n}(const float *in, float *out, int size) {{
    float total = {n};
    for (int i = 0; i < size; i++) {{
        out[i] = act{n}(in[i]) + act{n}(in[i] * 0.3) * total;
        total += out[i];
    }}
    return total;
}}
"""


def object_of(directory: Path, name: str, flags: list[str], template: str) -> Path:
    """An object of at least 10 MB: copies of one unit linked into one relocatable file."""
    source = directory / f"{name}.c"
    head = "extern float expf(float);\nstatic const signed char table[256] = {1, 2, 3};\n"
    source.write_text(head + "".join(template.format(n=n) for n in range(1, 400)))
    unit = directory / f"{name}-unit.o"
    subprocess.run(["gcc", "-c", "-O2", "-fno-pic", *flags, source, "-o", unit], check=True)
    copies = -(-TARGET // unit.stat().st_size)
    result = directory / f"{name}.o"
    subprocess.run(["ld", "-r", "-z", "muldefs", *[unit] * copies, "-o", result], check=True)
    return result


def constants(directory: Path) -> Path:
    (directory / "weights.bin").write_bytes(bytes(TARGET))
    symbol = ".globl weights\n.type weights, @object\n.size weights, 10000000\n"
    source = f'.section .rodata\n{symbol}weights: .incbin "weights.bin"\n'
    (directory / "weights.s").write_text(source + '.section .note.GNU-stack,"",@progbits\n')
    subprocess.run(["gcc", "-c", "weights.s", "-o", "weights.o"], cwd=directory, check=True)
    return directory / "weights.o"


def measure(path: Path) -> None:
    began = time.process_time()
    report = audit_files([path], load_policy("kernel"))
    render_text(report)
    report_json(report)
    spent = time.process_time() - began
    text = sum(file.sizes.code for file in report.files)
    print(
        f"{path.stem:<28} {path.stat().st_size / 1e6:6.1f} MB, {text / 1e6:5.1f} MB of code, "
        f"{len(report.findings):>6} findings: {spent:5.2f} s of CPU"
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        measure(object_of(directory, "code-with-debug-information", ["-g"], FUNCTION))
        measure(object_of(directory, "integer-code-alone", ["-mno-sse"], FUNCTION))
        measure(object_of(directory, "sins-with-debug-information", ["-g"], FUNCTION + SINFUL))
        measure(object_of(directory, "sins-alone", [], FUNCTION + SINFUL))
        measure(constants(directory))


if __name__ == "__main__":
    main()
