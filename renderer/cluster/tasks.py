"""Several things at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed

_THREADS = 8


def each[T, R](step: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return what a step makes of every item, in their order; what a step raises ends it all."""
    pool = ThreadPoolExecutor(_THREADS)
    try:
        futures = [pool.submit(step, item) for item in items]
        for future in as_completed(futures):
            future.result()
        return [future.result() for future in futures]
    finally:
        pool.shutdown(cancel_futures=True)
