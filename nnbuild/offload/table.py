"""Reads devices from their tables, and the Python file that each names. `nnbuild docs devices` documents the format.
Anything misspelt or missing is an error that names the field."""

from __future__ import annotations

import difflib
import importlib.util
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

from nnbuild.base.errors import UsageError
from nnbuild.base.paths import DEVICES
from nnbuild.numeric.arithmetic import ROUNDINGS, SCALES, TFLITE, Arithmetic
from nnbuild.offload.checked_calls import checked_functions
from nnbuild.offload.device import HOLDS, Copying, Device, Driver, Functions, Memory, Operator
from nnbuild.offload.shapes import QUANTITIES

TABLE = "device.toml"
OPERATORS = ("conv2d", "depthwise_conv2d", "dense", "max_pool", "average_pool", "add", "concatenate", "load", "store")
SIMULATED = ("registers", "memory", "bytes", "interrupt")
KINDS = ("host", "native", "firmware")
"""The kinds of board that a driver may serve: a native one is a host with this PC's own processor."""


def device_files() -> dict[str, Path]:
    return {file.parent.name: file for file in sorted(DEVICES.glob(f"*/{TABLE}"))}


def find_device(name: str) -> Device:
    """The device of this name, folder or table; a driver's name may follow a colon."""
    text, _, driver = name.partition(":")
    path, known = Path(text), device_files()
    if text in known:
        file = known[text]
    elif path.is_dir() or path.suffix == ".toml" or "/" in text:
        file = path if path.suffix == ".toml" else path / TABLE
    else:
        near = difflib.get_close_matches(text, known, 1, 0.4)
        step = f"Did you mean {near[0]}?" if near else "Give the folder of its device.toml."
        raise UsageError(f"--device {name}", "there is no such device.", step)
    device = read_device(file)
    names = [each.name for each in device.drivers]
    if driver and driver not in names:
        cause = f"it has no driver {driver!r}."
        raise UsageError(f"--device {name}", cause, f"Its drivers: {', '.join(names)}.")
    return replace(device, chosen=driver or None)


def read_device(file: Path) -> Device:
    where = f"device {file.parent.name!r}"
    try:
        table = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise UsageError(where, f"{file} cannot be read ({error.strerror}).", "Check the file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(where, f"{file} is not valid TOML: {error}.", "Correct that line.") from None
    return _Reader(where, file, table).device()


def rules_of(device: Device) -> dict[str, Arithmetic]:
    """The arithmetic of every operator that computes."""
    return {name: each.arithmetic for name, each in device.operators.items() if name not in ("load", "store")}


def device_inputs(name: str) -> list[Path]:
    """The files that make up a device."""
    device = find_device(name)
    sources = [path for driver in device.drivers for path in driver.sources]
    return [device.file, *sorted(device.file.parent.glob("*.py")), *sources]


class _Reader:
    """Reads a table and checks every field."""

    def __init__(self, where: str, file: Path, table: dict[str, Any]) -> None:
        self.where, self.file, self.table = where, file, table

    def wrong(self, cause: str, step: str = "See 'nnbuild docs devices' for the format of the table.") -> UsageError:
        return UsageError(self.where, cause, step)

    def device(self) -> Device:
        known = (
            *("summary", "file", "clock", "channels", "depth", "descriptor", "margin", "overhead", "macs"),
            *("memory", "copying", "arithmetic", "operators", "driver"),
        )
        self.known(self.table, known, "")
        arithmetic = self.arithmetic(self.part(self.table, "arithmetic", ""), "arithmetic", TFLITE)
        device = Device(
            name=self.file.resolve().parent.name,
            summary=self.text(self.table, "summary", ""),
            file=self.file,
            memories=self.memories(),
            operators={
                name: self.operator(
                    name, self.part(self.part(self.table, "operators", ""), name, "operators."), arithmetic
                )
                for name in self.part(self.table, "operators", "")
            },
            arithmetic=arithmetic,
            drivers=tuple(self.driver(name) for name in self.part(self.table, "driver", "")),
            copying=self.copying(self.part(self.table, "copying", "")),
            functions=self.functions(),
            clock=self.number(self.table, "clock", "", 1.0),
            channels=self.whole(self.table, "channels", "", 1, 1024, 1),
            depth=self.whole(self.table, "depth", "", 1, 64, 1),
            descriptor=self.whole(self.table, "descriptor", "", 1, 4096),
            margin=self.whole(self.table, "margin", "", 0, 1 << 30, 10_000),
            overhead=self.number(self.table, "overhead", "", 0.0),
            macs=self.whole(self.table, "macs", "", 0, 1 << 20, 0),
        )
        return self.sound(device)

    def sound(self, device: Device) -> Device:
        """Checks fields against each other."""
        for use in HOLDS:
            count = sum(use in memory.holds for memory in device.memories)
            if count != 1:
                raise self.wrong(f"{count or 'no'} memories hold {use}; exactly one must.")
        if not (device.memory("exchange").host and device.memory("constants").host):
            raise self.wrong("the memories that hold exchange and constants need host = true: the driver writes them.")
        reached = sorted((memory for memory in device.memories if memory.host), key=lambda memory: memory.begin)
        for one, other in pairwise(reached):
            if one.begin + one.size > other.begin:
                raise self.wrong(f"memory.{one.name} and memory.{other.name} overlap.")
        if not (device.clock and device.copying.bytes_per_cycle):
            raise self.wrong("clock and copying.bytes_per_cycle must be more than 0.")
        missing = [name for name in ("load", "store") if device.stages_tensors and name not in device.operators]
        if missing:
            raise self.wrong(f"the driver does not reach its tensors, and it has no operator {missing[0]}.")
        if "concatenate" in device.operators and "max_pool" not in device.operators:
            raise self.wrong("it has the operator concatenate, but not max_pool, which does the copying.")
        if not set(device.operators) - {"load", "store"}:
            raise self.wrong("it has no operator that computes.")
        return device

    def memories(self) -> tuple[Memory, ...]:
        found = []
        tables = self.part(self.table, "memory", "")
        for name in tables:
            table, at = self.part(tables, name, "memory."), f"memory.{name}."
            self.known(table, ("begin", "size", "alignment", "host", "holds", "reserved"), at)
            holds = table.get("holds", [])
            if not isinstance(holds, list) or not set(holds) <= set(HOLDS):
                raise self.wrong(f"{at}holds = {holds!r} is not a list of {', '.join(HOLDS)}.")
            size = self.whole(table, "size", at, 1, 1 << 32)
            begin = self.whole(table, "begin", at, 0, (1 << 32) - size, 0)
            alignment = self.whole(table, "alignment", at, 1, 4096, 1)
            if alignment & (alignment - 1):
                raise self.wrong(f"{at}alignment = {alignment} is not a power of two.")
            if begin % alignment:
                raise self.wrong(f"{at}begin = {begin:#x} is not a multiple of its alignment of {alignment}.")
            reserved = self.whole(table, "reserved", at, 0, size, 0)
            host = self.truth(table, "host", at, False)
            found.append(Memory(name, begin, size, alignment, host, frozenset(holds), reserved))
        return tuple(found)

    def operator(self, name: str, table: Mapping[str, Any], usual: Arithmetic) -> Operator:
        at = f"operators.{name}."
        if name not in OPERATORS:
            raise self.wrong(f"there is no operator {name!r}.", f"Operators: {', '.join(OPERATORS)}.")
        limits = {}
        for key, value in table.items():
            if key in ("engine", "arithmetic"):
                continue
            if key not in QUANTITIES:
                raise self.wrong(f"{at}{key} is not a known quantity.", f"Quantities: {', '.join(QUANTITIES)}.")
            right = isinstance(value, list) and len(value) == 2 and all(type(each) is int for each in value)
            if not right or value[0] > value[1]:
                raise self.wrong(f"{at}{key} = {value!r} is not [least, largest].")
            limits[key] = (value[0], value[1])
        own = self.arithmetic(self.part(table, "arithmetic", at), f"{at}arithmetic", usual)
        return Operator(name, self.text(table, "engine", at, "device"), limits, own)

    def arithmetic(self, table: Mapping[str, Any], at: str, usual: Arithmetic) -> Arithmetic:
        at += "."
        self.known(table, tuple(vars(usual)), at)
        rounding = table.get("rounding", list(usual.rounding))
        if not isinstance(rounding, list) or len(rounding) != 2 or rounding[0] not in tuple(ROUNDINGS):
            raise self.wrong(f"{at}rounding = {rounding!r} is not a pair of {', '.join(ROUNDINGS)}.")
        if rounding[1] not in (*ROUNDINGS, "none"):
            raise self.wrong(f"{at}rounding = {rounding!r}: the second is none, or one of {', '.join(ROUNDINGS)}.")
        scale, mean = table.get("scale", usual.scale), table.get("mean", usual.mean)
        if scale not in tuple(SCALES):
            raise self.wrong(f"{at}scale = {scale!r} is not one of {', '.join(SCALES)}.")
        if mean not in tuple(ROUNDINGS):
            raise self.wrong(f"{at}mean = {mean!r} is not one of {', '.join(ROUNDINGS)}.")
        shifts = table.get("shifts", list(usual.shifts))
        fine = isinstance(shifts, list) and len(shifts) == 2 and all(type(each) is int for each in shifts)
        if not fine or not -62 <= shifts[0] <= shifts[1] <= 30:
            raise self.wrong(f"{at}shifts = {shifts!r} is not [least, largest] from -62 to 30.")
        return Arithmetic(
            acc_bits=self.whole(table, "acc_bits", at, 16, 32, usual.acc_bits),
            scale=scale,
            per_channel=self.truth(table, "per_channel", at, usual.per_channel),
            rounding=(rounding[0], rounding[1]),
            zero_in=self.truth(table, "zero_in", at, usual.zero_in),
            zero_out=self.truth(table, "zero_out", at, usual.zero_out),
            bias_bits=self.whole(table, "bias_bits", at, 8, 32, usual.bias_bits),
            shifts=(shifts[0], shifts[1]),
            mean=mean,
            spare=self.whole(table, "spare", at, 0, 20, usual.spare),
        )

    def driver(self, name: str) -> Driver:
        table, at = self.part(self.part(self.table, "driver", ""), name, "driver."), f"driver.{name}."
        self.known(
            table, ("boards", "sources", "includes", "flags", "link_flags", "stack", "software", "simulated"), at
        )
        folder = self.file.parent.resolve()
        sources = tuple(folder / each for each in self.words(table, "sources", at))
        missing = next((path for path in sources if not path.is_file()), None)
        if missing is not None:
            raise self.wrong(f"{at}sources: {missing.name} does not exist.", f"Paths are relative to {folder}.")
        boards = self.words(table, "boards", at)
        if not boards or not set(boards) <= set(KINDS):
            raise self.wrong(f"{at}boards = {list(boards)!r} is not a list of {', '.join(KINDS)}.")
        return Driver(
            name=name,
            boards=frozenset(boards),
            sources=sources,
            includes=tuple(folder / each for each in self.words(table, "includes", at)),
            flags=self.words(table, "flags", at),
            link_flags=self.words(table, "link_flags", at),
            stack=self.whole(table, "stack", at, 0, 1 << 20),
            software=self.truth(table, "software", at, False),
            simulated=self.simulated(self.part(table, "simulated", at), f"{at}simulated."),
        )

    def simulated(self, table: Mapping[str, Any], at: str) -> tuple[int, int, int, int] | None:
        """All fields, or None."""
        self.known(table, SIMULATED, at)
        if not table:
            return None
        registers, memory, size, interrupt = (self.whole(table, name, at, 0, (1 << 32) - 1) for name in SIMULATED)
        return registers, memory, size, interrupt

    def copying(self, table: Mapping[str, Any]) -> Copying:
        self.known(table, ("setup", "bytes_per_cycle", "submit", "wait"), "copying.")
        usual = {"setup": 50.0, "bytes_per_cycle": 4.0, "submit": 100.0, "wait": 100.0}
        return Copying(**{key: self.number(table, key, "copying.", value) for key, value in usual.items()})

    def functions(self) -> Functions:
        file = self.file.parent / self.text(self.table, "file", "", "device.py")
        module = _module(file, self)
        for name in ("pack", "describe", "cycles", "compute"):
            if not callable(getattr(module, name, None)):
                raise self.wrong(f"{file.name} has no function {name}.", "Write it: see 'nnbuild docs devices'.")
        return checked_functions(module, self.where, file)

    # --- fields ---

    def known(self, table: Mapping[str, Any], names: Iterable[str], at: str) -> None:
        for key in table:
            if key not in names:
                near = difflib.get_close_matches(key, list(names), 1, 0.5)
                step = f"Did you mean {near[0]}?" if near else f"It may have {', '.join(names)}."
                raise self.wrong(f"{at}{key} is not a known field.", step)

    def part(self, table: Mapping[str, Any], key: str, at: str) -> Mapping[str, Any]:
        value = table.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(f"{at}{key} is not a table.")
        return value

    def text(self, table: Mapping[str, Any], key: str, at: str, usual: str | None = None) -> str:
        value = table.get(key, usual)
        if not isinstance(value, str) or not value:
            raise self.wrong(f"{at}{key} is missing." if value is None else f"{at}{key} = {value!r} is not a text.")
        return value

    def words(self, table: Mapping[str, Any], key: str, at: str) -> tuple[str, ...]:
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.wrong(f"{at}{key} = {value!r} is not a list of strings.")
        return tuple(value)

    def whole(self, table: Mapping[str, Any], key: str, at: str, low: int, high: int, usual: int | None = None) -> int:
        value = table.get(key, usual)
        if value is None:
            raise self.wrong(f"{at}{key} is missing.")
        if type(value) is not int or not low <= value <= high:
            raise self.wrong(f"{at}{key} = {value!r} is not an integer from {low:,} to {high:,}.")
        return value

    def number(self, table: Mapping[str, Any], key: str, at: str, usual: float) -> float:
        value = table.get(key, usual)
        if type(value) not in (int, float) or not 0 <= value < 1e9:
            raise self.wrong(f"{at}{key} = {value!r} is not a number of at least 0.")
        return float(value)

    def truth(self, table: Mapping[str, Any], key: str, at: str, usual: bool) -> bool:
        value = table.get(key, usual)
        if type(value) is not bool:
            raise self.wrong(f"{at}{key} = {value!r} is neither true nor false.")
        return value


def _module(file: Path, reader: _Reader) -> ModuleType:
    """Executes the device's Python file: it is part of the build, like an SConstruct."""
    if not file.is_file():
        raise reader.wrong(f"its file {file.name} does not exist.", f"It must lie in {file.parent.resolve()}.")
    spec = importlib.util.spec_from_file_location(f"nnbuild_device_{file.resolve().parent.name}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise reader.wrong(f"{file.name} fails: {type(error).__name__}: {error}.", "Correct that file.") from error
    return module
