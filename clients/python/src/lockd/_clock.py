"""The clock that a client is certain by, and how coroutines wait by it.

It never goes back, no change of the wall clock moves it, and it counts the time that the machine
was suspended, because a lease goes on running meanwhile. The timers of asyncio do not count that
time: so nobody here sleeps for long without a look at this clock.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["NEVER", "now", "wait_until", "within"]

NEVER = float("inf")
_LOOK_INTERVAL = 2.0
_T = TypeVar("_T")

if sys.platform == "linux":

    def now() -> float:
        """Seconds since the machine was booted."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

elif sys.platform == "darwin":

    def now() -> float:
        """Seconds; on macOS this clock counts suspended time, and ``time.monotonic`` does not."""
        return time.clock_gettime(time.CLOCK_MONOTONIC)

else:

    def now() -> float:
        """Seconds, by the best clock that there is."""
        return time.monotonic()


async def wait_until(deadline: float, *futures: asyncio.Future[Any]) -> None:
    """Waits until one of the futures is done, or until the deadline."""
    while True:
        left = deadline - now()
        if left <= 0 or any(future.done() for future in futures):
            return
        pause = min(left, _LOOK_INTERVAL)
        if futures:
            await asyncio.wait(set(futures), timeout=pause, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(pause)


async def within(deadline: float, doing: Coroutine[Any, Any, _T]) -> _T:
    """What the coroutine returns; ``asyncio.TimeoutError`` when it is not done by the deadline."""
    task = asyncio.ensure_future(doing)
    try:
        await wait_until(deadline, task)
    finally:
        if not task.done():
            task.cancel()
    if not task.done():
        raise asyncio.TimeoutError
    return task.result()
