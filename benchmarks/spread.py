"""Parts of a campaign in this process, in several, or on machines that a dask scheduler knows. What a part gives is
handed out as soon as it is there, in whatever order; no part is begun when the time is up.

dask.distributed was chosen because a part is one function of one value here, and that is all it asks for: it places
parts, begins those of a worker that is gone anew, and needs nothing on a machine but a checkout and
`dask worker tcp://HOST:8786`. pytest-xdist over ssh spreads tests and gives verdicts back, not rows of a ledger.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack
from itertools import islice, takewhile
from typing import Any, TypeVar

Part = TypeVar("Part")
Row = TypeVar("Row")

AHEAD = 2
"""Parts for each worker that are under way or wait there."""


def spread(
    run: Callable[[Part], Row], parts: Iterable[Part], workers: str = "1", until: float = float("inf")
) -> Iterator[Row]:
    """`workers` is a number of processes, or the address of a scheduler."""
    left = takewhile(lambda _: time.monotonic() < until, parts)
    if workers == "1":
        yield from map(run, left)
        return
    with ExitStack() as stack:
        pool, count = _pool(workers, stack)
        waiting: set[Future[Row]] = {pool.submit(run, part) for part in islice(left, AHEAD * count)}
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            waiting |= {pool.submit(run, part) for part in islice(left, len(done))}
            for each in done:
                yield each.result()


def _pool(workers: str, stack: ExitStack) -> tuple[Executor, int]:
    if workers.isdigit():
        count = int(workers) or os.cpu_count() or 1
        return stack.enter_context(ProcessPoolExecutor(count)), count
    import distributed

    client: Any = stack.enter_context(distributed.Client(workers))
    client.wait_for_workers(1)
    executor = client.get_executor(pure=False)
    return stack.enter_context(executor), sum(client.ncores().values())
