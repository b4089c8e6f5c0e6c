"""Writes what hardware and C must know of the tables in device.py: python devices/systolic/generate.py

`rtl/systolic_registers.sv` is the package of registers and descriptors, `driver/systolic_registers.h` the C header.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent


def device() -> ModuleType:
    spec = importlib.util.spec_from_file_location("systolic_device", HERE / "device.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def package(d: ModuleType) -> str:
    lines = ["// Written by generate.py from device.py.", "package systolic_registers;"]
    lines += [
        f"    localparam logic [31:0] ID = 32'h{d.ID:08x};",
        f"    localparam logic [7:0] VERSION = 8'd{d.VERSION};",
    ]
    lines += [f"    localparam logic [7:0] REG_{name.upper()} = 8'h{at:02x};" for name, at in d.REGISTERS.items()]
    lines += [
        f"    localparam int {register.upper()}_{name.upper()} = {low};"
        for register, fields in d.BITS.items()
        for name, (low, _) in fields.items()
        if register in ("ctrl", "irq")
    ]
    lines += [f"    localparam logic [3:0] ERROR_{name.upper()} = 4'd{code};" for name, code in d.ERRORS.items()]
    lines += [f"    localparam logic [7:0] OP_{name.upper()} = 8'd{code};" for name, code in d.OPERATIONS.items()]
    lines += [f"    localparam int FLAG_{name.upper()} = {bit};" for name, bit in d.FLAGS.items()]
    lines += ["    typedef struct packed {"]
    lines += [f"        logic [{bits - 1}:0] {name};" for name, bits in reversed(d.DESCRIPTOR)]
    return "\n".join([*lines, "    } descriptor_t;", "endpackage", ""])


def header(d: ModuleType) -> str:
    lines = [
        "/* Written by generate.py from device.py. */",
        "#ifndef SYSTOLIC_REGISTERS_H",
        "#define SYSTOLIC_REGISTERS_H",
    ]
    lines += [f"#define SYSTOLIC_ID 0x{d.ID:08x}u", f"#define SYSTOLIC_VERSION {d.VERSION}u"]
    lines += [
        f"#define SYSTOLIC_QUEUE {d.QUEUE}u",
        f"#define SYSTOLIC_LANES {d.LANES}u",
        f"#define SYSTOLIC_DESCRIPTOR {sum(b for _, b in d.DESCRIPTOR) // 8}u",
    ]
    lines += [f"#define SYSTOLIC_REG_{name.upper()} 0x{at:02x}u" for name, at in d.REGISTERS.items()]
    lines += list(_masks(d))
    lines += [f"#define SYSTOLIC_ERROR_{name.upper()} {code}u" for name, code in d.ERRORS.items()]
    return "\n".join([*lines, "#endif", ""])


def _masks(d: ModuleType) -> Iterator[str]:
    for register, fields in d.BITS.items():
        for name, (low, bits) in fields.items():
            prefix = f"#define SYSTOLIC_{register.upper()}_{name.upper()}"
            yield f"{prefix}_SHIFT {low}"
            yield f"{prefix} 0x{((1 << bits) - 1) << low:08x}u"


def files() -> dict[Path, str]:
    d = device()
    return {
        HERE / "rtl" / "systolic_registers.sv": package(d),
        HERE / "driver" / "systolic_registers.h": header(d),
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
