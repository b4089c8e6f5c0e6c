"""A process for everyone who is measured, so that one's libraries and crashes are no matter to the others."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection
from typing import Any

from x86_runners import Missing, Runner


class Worker:
    """A runner in its own process. `outputs` are those of its first run."""

    def __init__(self, kind: type[Runner], arguments: tuple[Any, ...]) -> None:
        context = multiprocessing.get_context("spawn")
        self.line, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, kind, arguments), daemon=True)
        self.process.start()
        theirs.close()
        self.macs, self.deployed, self.outputs = self._answer()

    def _answer(self) -> Any:
        try:
            good, value = self.line.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            raise Missing(f"its process ended with status {self.process.exitcode}") from None
        if not good:
            raise Missing(value)
        return value

    def seconds(self, times: int) -> float:
        """CPU time of so many runs."""
        self.line.send(times)
        return float(self._answer()[0])

    def elapsed(self, times: int) -> float:
        """How long so many runs take, by the clock on the wall."""
        self.line.send(times)
        return float(self._answer()[1])

    def runs_in(self, wanted: float) -> int:
        """How many runs take so many seconds."""
        times = 1
        while (spent := self.seconds(times)) < wanted / 4:
            times *= 4
        return max(1, round(times * wanted / spent))

    def stop(self) -> None:
        self.line.close()
        self.process.join(10)


def _serve(line: Connection, kind: type[Runner], arguments: tuple[Any, ...]) -> None:
    try:
        runner = kind(*arguments)
        runner.run(1)
        line.send((True, (getattr(runner, "macs", 0), runner.deployed, runner.outputs())))
    except Exception as error:  # whatever a peer may throw: it is missing then
        text = (str(error).splitlines() or [""])[0][:160]
        line.send((False, text if isinstance(error, Missing) else f"{type(error).__name__}: {text}"))
        return
    while True:
        try:
            times = line.recv()
        except EOFError:
            return
        start, begin = time.process_time_ns(), time.perf_counter_ns()
        runner.run(times)
        both = time.process_time_ns() - start, time.perf_counter_ns() - begin
        line.send((True, (both[0] / 1e9, both[1] / 1e9)))
