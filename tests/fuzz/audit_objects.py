"""Damages object files and audits them: each must give a report or an error that names what is wrong.

    python -m tests.fuzz.audit_objects --cases 10000 --seed 1

The cases run in one child process at a time with its memory limited to 1 GB and each case to a few seconds; a
traceback, a hang or a crash of the child is a failure, which names the case's number so that it can be run again.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.audit.toolchains import ALL

MEMORY_LIMIT = 1 << 30
SECONDS_PER_CASE = 10
BATCH = 500

SOURCE = """
extern float expf(float); extern void *malloc(unsigned long); extern int g(int); extern int (*fp)(int);
static float weights[4] = {1, 2, 3, 4}; const int table[3] = {1, 2, 3}; int counter;
static inline float act(float x) { return expf(x) * 0.5; }
int rec(int n) { return n ? rec(n - 1) + g(n) : 0; }
__attribute__((constructor)) void early(void) { counter = 1; }
int pick(int n) { switch (n) { case 0: return g(1); case 1: return g(2) * 3; case 2: return g(3) ^ 4;
  case 3: return g(4) - 5; case 4: return g(n) / 3; default: return 0; } }
float run(float x, int n) { volatile char b[5000]; b[n % 5000] = 1; weights[n & 3] += x;
  return act(x) + (float)rec(n) + (float)fp(n) + (malloc(4) != 0) + (float)table[n % 3] + b[0] + pick(n); }
"""


@dataclass(frozen=True)
class Seeds:
    """The undamaged files, and beside each stack table where there is one."""

    objects: tuple[bytes, ...]


def make_seeds(directory: Path) -> Seeds:
    """Objects of every compiler at hand with and without debug information, a linked image and an archive."""
    files: list[bytes] = []
    for chain in ALL:
        if chain.missing:
            continue
        variants = {"g": ("-O2", "-g"), "g4": ("-O1", "-gdwarf-4"), "n": ("-O2", "-ffunction-sections")}
        if chain.is_gcc:
            variants["z"] = ("-O2", "-g", "-gz")
        for label, flags in variants.items():
            extra = () if chain.is_gcc else ("-fstack-size-section",)
            path = chain.compile(directory, f"{chain.name}-{label}", SOURCE, (*flags, *extra))
            files.append(path.read_bytes())
    if Path("/bin/false").is_file():
        files.append(Path("/bin/false").read_bytes())
    files.append(_archive(files[:2]))
    return Seeds(tuple(files))


def _archive(members: Sequence[bytes]) -> bytes:
    data = b"!<arch>\n"
    for number, member in enumerate(members):
        header = f"{f'm{number}.o/':<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(member):<10}`\n"
        data += header.encode() + member + (b"\n" if len(member) & 1 else b"")
    return data


def damaged(seeds: Seeds, seed: int, case: int) -> bytes:
    """Case number `case`: odd ones keep a valid ELF header, even ones are damaged anywhere."""
    rng = random.Random(f"{seed}:{case}")
    data = bytearray(rng.choice(seeds.objects))
    if case % 2 == 0:
        return _anywhere(rng, data)
    while data[:4] != b"\x7fELF":
        data = bytearray(rng.choice(seeds.objects))
    header = bytes(data[:64])
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        _in_tables(rng, data)
        data[: len(header)] = header  # a damaged section header may lead back to the file's own header
    return bytes(data)


INTERESTING = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x100, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 40, (1 << 64) - 1)


def _anywhere(rng: random.Random, data: bytearray) -> bytes:
    action = rng.randrange(5)
    if action == 0:
        return bytes(data[: rng.randrange(len(data) + 1)])
    if action == 1:
        return bytes(rng.randbytes(rng.randrange(2000)))
    for _ in range(rng.choice((1, 4, 32, 256))):
        limit = 64 if action == 2 else len(data)
        data[rng.randrange(min(limit, len(data)))] = rng.randrange(256)
    if action == 4:
        at, length = rng.randrange(len(data)), rng.randrange(400)
        del data[at : at + length]
    return bytes(data)


def _in_tables(rng: random.Random, data: bytearray) -> None:
    """Damages a section header, or bytes or a word inside a section that the audit reads."""
    wide, order = data[4] == 2, "<" if data[5] == 1 else ">"
    start = struct.unpack_from(order + ("Q" if wide else "I"), data, 40 if wide else 32)[0]
    size, count = struct.unpack_from(order + "HH", data, 58 if wide else 46)
    number = rng.randrange(1, count)
    at = start + number * size
    if rng.random() < 0.3:
        field = rng.randrange(size // 4)
        struct.pack_into(order + "I", data, at + 4 * field, _value(rng) & 0xFFFFFFFF)
        return
    offset, length = struct.unpack_from(order + ("QQ" if wide else "II"), data, at + (24 if wide else 16))
    if not 0 < length <= len(data) - offset:
        return
    if rng.random() < 0.5:
        data[offset + rng.randrange(length)] = rng.randrange(256)
    else:
        width = rng.choice((1, 2, 4, 8))
        place = offset + rng.randrange(length)
        if place + width <= len(data):
            value = _value(rng) & ((1 << 8 * width) - 1)
            data[place : place + width] = value.to_bytes(width, "little")


def _value(rng: random.Random) -> int:
    return rng.choice(INTERESTING) if rng.random() < 0.6 else rng.getrandbits(rng.choice((8, 16, 32, 64)))


def audit_case(path: Path, case: int) -> str:
    """`report` or `error`; anything else that is raised is the fuzzer's find."""
    from nnbuild.audit import audit_files, load_policy, render_text, report_json
    from nnbuild.audit.stack import render_stack, stack_bound
    from nnbuild.base.errors import NnbuildError

    outcome = "report"
    try:
        report = audit_files([path], load_policy(("kernel", "mcu", "hosted")[case % 3]), explain=["g", "expf"])
        render_text(report)
        report_json(report)
    except NnbuildError as problem:
        assert all((problem.where, problem.cause, problem.next_step))
        outcome = "error"
    with contextlib.suppress(NnbuildError):
        render_stack(stack_bound([path], "run"))
    return outcome


def _worker(seeds: Seeds, seed: int, cases: range, channel: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    signal.signal(signal.SIGPROF, _overtime)
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "case.o"
        for case in cases:
            channel.send(("at", case))
            path.write_bytes(damaged(seeds, seed, case))
            began = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_CASE)
            try:
                outcomes[audit_case(path, case)] += 1
            except BaseException:
                channel.send(("failed", (case, traceback.format_exc())))
            signal.setitimer(signal.ITIMER_PROF, 0)
            slowest = max(slowest, time.process_time() - began)
    channel.send(("done", (dict(outcomes), slowest, _peak())))


def _peak() -> int:
    """Most memory of this program in bytes: what `getrusage` says may be that of the process that started it."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) << 10


def _overtime(*_: Any) -> None:
    raise TimeoutError(f"one case took over {SECONDS_PER_CASE} s of CPU")


@dataclass
class Outcome:
    cases: int
    outcomes: Counter[str]
    failures: list[tuple[int, str]]
    slowest: float = 0.0
    peak: int = 0


def fuzz(cases: int, seed: int) -> Outcome:
    with tempfile.TemporaryDirectory() as directory:
        seeds = make_seeds(Path(directory))
    result = Outcome(cases, Counter(), [])
    first = 0
    while first < cases:
        first = _batch(seeds, seed, range(first, min(first + BATCH, cases)), result)
    return result


def _batch(seeds: Seeds, seed: int, cases: range, result: Outcome) -> int:
    """Runs a batch in a child; returns the case to go on with, past one that killed the child."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_worker, args=(seeds, seed, cases, sender))
    child.start()
    sender.close()
    at = cases.start
    try:
        while True:
            if not receiver.poll(SECONDS_PER_CASE + 60):
                raise EOFError
            kind, value = receiver.recv()
            if kind == "at":
                at = value
            elif kind == "failed":
                result.failures.append(value)
            else:
                outcomes, slowest, peak = value
                result.outcomes.update(outcomes)
                result.slowest, result.peak = max(result.slowest, slowest), max(result.peak, peak)
                return cases.stop
    except EOFError:
        result.failures.append((at, f"the process hung or died (exit code {child.exitcode})"))
        return at + 1
    finally:
        child.kill()
        child.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    result = fuzz(args.cases, args.seed)
    for case, text in result.failures:
        print(f"case {case}:\n{text}")
    print(f"{result.cases} cases, seed {args.seed}: {dict(result.outcomes)}, {len(result.failures)} failures")
    print(f"slowest {result.slowest:.2f} s of CPU, largest process {result.peak / 2**20:.0f} MB")
    return 1 if result.failures else 0


if __name__ == "__main__":
    sys.exit(main())
