"""What the importers' fuzzers share: cases by number, what may become of one, and the bars that all must keep.

A spoilt file must end as a graph or as an error for the user, within a second of the processor and 200 MB.
"""

from __future__ import annotations

import argparse
import gc
import math
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nnbuild import frontend, passes
from nnbuild.base.errors import NnbuildError
from nnbuild.emit.emit import emit
from nnbuild.model.graph import Graph
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target

LONGEST_SECONDS = 10
"""After which a case is cut off; of the processor, so that a loaded machine is no hang."""
MOST_SECONDS, MOST_MEGABYTES = 1.0, 200
LARGEST_PRINTED = 10**6
"""Numbers in the tensors of a graph: larger ones are not printed."""
PRINTED_OF = 4
"""Of so many graphs one is planned and printed, too: that takes longer than all the rest of a case."""
WARM = 40
"""Cases before the first, so that what is imported and cached but once is not counted as one's time and memory."""


class Hang(BaseException):
    """Not an Exception, so that nothing on the way takes it for a damaged file."""


@dataclass(frozen=True)
class Fuzzer:
    """`case` is what was spoilt, and the file or what `load` takes. A call of `inside` says the container is sound."""

    name: str
    suffix: str
    case: Callable[[random.Random], tuple[str, Any]]
    inside: tuple[tuple[Any, str], ...]
    load: Callable[[Path, Any], Graph] | None = None
    prints: bool = True

    def graph(self, path: Path, data: Any) -> Graph:
        if self.load is not None and not isinstance(data, bytes):
            return self.load(path, data)
        path.write_bytes(data)
        return frontend.load(path, "fuzzed")


def try_case(fuzzer: Fuzzer, path: Path, data: Any, prints: bool) -> str:
    """ "imported" or "refused"; whatever else happens is raised."""
    signal.setitimer(signal.ITIMER_PROF, LONGEST_SECONDS)
    try:
        graph = passes.run(fuzzer.graph(path, data))
        if prints and sum(math.prod(tensor.shape) for tensor in graph.tensors.values()) < LARGEST_PRINTED:
            emit(make_plan(graph, "fuzzed", Target()))
    except NnbuildError as error:
        text = str(error)
        if "Please report this model" in text or not error.next_step or len(text) > 2000:
            raise AssertionError(f"not an error for a user: {text[:500]}") from error
        return "refused"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "imported"


def replayed(fuzzer: Fuzzer, seed: int, number: int, folder: Path) -> str:
    """One case of a run, with warnings as errors, as there."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, data = fuzzer.case(random.Random(f"{seed} {number}"))
        return try_case(fuzzer, folder / f"case{fuzzer.suffix}", data, fuzzer.prints)


def run(fuzzer: Fuzzer, seed: int, cases: range, show: bool) -> int:
    """The number of bugs found."""

    def hang(*_: Any) -> None:
        raise Hang(f"longer than {LONGEST_SECONDS} s")

    signal.signal(signal.SIGPROF, hang)
    warnings.simplefilter("error")
    passed = _counting(fuzzer)
    results: Counter[str] = Counter()
    slowest, bugs = (0.0, 0), 0
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        path = Path(folder) / f"case{fuzzer.suffix}"
        for number in range(WARM):
            try:
                try_case(fuzzer, path, fuzzer.case(random.Random(f"warm {number}"))[1], fuzzer.prints)
            except Exception:  # it is not counted, and its like will come again
                continue
        gc.collect()
        gc.freeze()
        before = most = _megabytes()
        for number in cases:
            rng = random.Random(f"{seed} {number}")
            kind, data = fuzzer.case(rng)
            passed[0], started = False, time.process_time()
            try:
                outcome = try_case(fuzzer, path, data, fuzzer.prints and number % PRINTED_OF == 0)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                bugs += 1
                outcome = "BUG"
                print(f"case {number} ({kind}): {type(error).__name__}: {str(error)[:300]}", flush=True)
                if show:
                    traceback.print_exc()
            spent, grown = time.process_time() - started, _megabytes() - most
            if spent > MOST_SECONDS or grown > MOST_MEGABYTES:
                bugs += 1
                print(f"case {number} ({kind}): it takes {spent:.1f} s and {grown} MB", flush=True)
            slowest, most = max(slowest, (spent, number)), most + grown
            results[outcome] += 1
            results["past the container"] += passed[0]
    more = _megabytes() - before
    print(
        f"seed {seed}, {len(cases)} cases: {dict(results)}, slowest {slowest[0]:.2f} s (case {slowest[1]}), "
        f"at most {more} MB more"
    )
    few = len(cases) >= 100 and 2 * results["past the container"] < len(cases)
    return bugs + few


def _megabytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _counting(fuzzer: Fuzzer) -> list[bool]:
    """Its one element becomes true when the container of a file was believed."""
    passed = [False]
    for owner, name in fuzzer.inside:
        original = getattr(owner, name)

        def counted(*given: Any, original: Any = original) -> Any:
            made = original(*given)
            passed[0] = True
            return made

        setattr(owner, name, counted)
    return passed


def main(choose: Callable[[argparse.Namespace], Fuzzer], *flags: tuple[str, str]) -> int:
    """The command of a fuzzer, which may have flags of its own."""
    parser = argparse.ArgumentParser(description="Fuzz an importer.")
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="repeat this case and show its traceback")
    for flag, meaning in flags:
        parser.add_argument(flag, action="store_true", help=meaning)
    arguments = parser.parse_args()
    cases = range(arguments.first, arguments.first + arguments.cases)
    if arguments.only is not None:
        cases = range(arguments.only, arguments.only + 1)
    return 1 if run(choose(arguments), arguments.seed, cases, arguments.only is not None) else 0


if __name__ == "__main__":
    sys.exit("It is part of the fuzzers: python -m tests.fuzz.tflite, for one.")
