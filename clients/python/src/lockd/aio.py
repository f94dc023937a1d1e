"""Locks and semaphores for asyncio.

    async with lockd.aio.Client("locks.example.com") as locks:
        async with locks.lock("my-job", wait=10, lease=30) as held:
            await write(row, fence=held.fence)
            held.check()

All of a client belongs to the event loop on which it is first used; only what a ``HeldLock`` can be
asked without ``await`` is for any thread. To cancel a task that waits gives up its place in the
queue at once.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any

from ._clock import NEVER, now, wait_until
from ._engine import Addresses, Engine, Kept, KeptPlace, OnLost
from ._hold import HoldView
from ._options import TLS, Options
from ._replies import Signal
from ._requests import Wanted
from ._sets import Item, WantedSet
from ._subscription import Listening
from .errors import LockLost

__all__ = ["Client", "HeldLock", "Place", "Subscription"]


class HeldLock(HoldView):
    """A lock, or permits of a semaphore, that is held and renews itself until it is released."""

    def __init__(self, kept: Kept) -> None:
        super().__init__(kept.hold)
        self._kept = kept

    async def release(self) -> None:
        """Raises ``LockLost`` when it was held no more. Does nothing the second time."""
        await self._kept.release()

    async def wait_lost(self, wait: float | None = None) -> LockLost | None:
        """Waits until it is held no more, and says why; nothing when it still is after the wait."""
        await wait_until(NEVER if wait is None else now() + wait, self._kept.ended)
        return self.loss

    async def __aenter__(self) -> HeldLock:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Releases it. To leave the block is the last check: ``LockLost`` if it was lost within."""
        try:
            await self._kept.leave()
        except LockLost:
            if error is None:
                raise

    def __del__(self) -> None:
        kept = self._kept
        if kept.hold.is_released or kept.hold.loss is not None:
            return
        if not kept.loop.is_closed():
            kept.loop.call_soon_threadsafe(kept.abandon)
        # Last: it is an exception where a program wants that.
        warnings.warn(f"{self!r} was never released", ResourceWarning, source=self, stacklevel=2)


class Place:
    """A place in a queue: wait for its turn, or give it up."""

    def __init__(self, kept: KeptPlace) -> None:
        self._kept = kept

    @property
    def is_granted(self) -> bool:
        """Whether it was granted at once. Its lease runs, and nobody renews it before ``wait``."""
        return self._kept.is_granted

    async def wait(self, wait: float | None = None) -> HeldLock:
        """Waits for its turn. Whatever comes of it, the place is used up.

        A place that was lost with its connection is asked for again, at the end of the queue:
        ``queued_again``. ``LeaseExpired``: the turn came, and nobody took it in time.
        """
        return HeldLock(await self._kept.wait(wait))

    def give_up(self) -> None:
        """Leaves the queue. Does nothing when the place is used up."""
        self._kept.give_up()

    async def __aenter__(self) -> Place:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.give_up()

    def __del__(self) -> None:
        kept = self._kept
        if not kept.is_used_up and not kept.loop.is_closed():
            kept.loop.call_soon_threadsafe(kept.give_up)


class Subscription:
    """Signals as they come: ``async for``, or ``next``."""

    def __init__(self, engine: Engine, listening: Listening) -> None:
        self._loop = asyncio.get_running_loop()
        self._engine = engine
        self._listening = listening

    @property
    def dropped(self) -> int:
        """How many signals were dropped, because they were not asked for soon enough."""
        return self._listening.dropped

    @property
    def gaps(self) -> int:
        """How often a connection was made anew: signals may have been missed."""
        return self._listening.gaps

    async def next(self, wait: float | None = None) -> Signal | None:
        """The next signal; nothing when none comes within the wait."""
        return await self._listening.next(wait)

    def close(self) -> None:
        self._engine.unlisten(self._listening)

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Signal:
        signal = await self._listening.next(None)
        assert signal is not None, "the wait has no end"
        return signal

    async def __aenter__(self) -> Subscription:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not self._listening.is_ended and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._engine.unlisten, self._listening)


class Client:
    """Locks on one server, on several that share the keys, or on a cluster.

    The parameters, and those of its methods, are those of ``lockd.Client``.
    """

    def __init__(
        self,
        servers: Addresses | None = None,
        *,
        cluster: Addresses | None = None,
        token: str | None = None,
        token_file: str | os.PathLike[str] | None = None,
        tls: TLS | bool | None = None,
        name: str | None = None,
        note: str | None = None,
        connect_timeout: float = 10.0,
        reply_timeout: float = 10.0,
        release_timeout: float = 5.0,
    ) -> None:
        options = Options(
            token=token,
            token_file=token_file,
            tls=tls,
            name=name,
            note=note,
            connect_timeout=connect_timeout,
            reply_timeout=reply_timeout,
            release_timeout=release_timeout,
        )
        self._engine = Engine(servers, cluster, options)

    @asynccontextmanager
    async def lock(
        self,
        key: str,
        *,
        shared: bool = False,
        wait: float | None = None,
        lease: int | None = None,
        max_hold: float | None = None,
        on_lost: OnLost | None = None,
    ) -> AsyncIterator[HeldLock]:
        """Holds the lock for the block, alone or shared."""
        held = await self.acquire(
            key, shared=shared, wait=wait, lease=lease, max_hold=max_hold, on_lost=on_lost
        )
        async with held:
            yield held

    @asynccontextmanager
    async def semaphore(
        self,
        key: str,
        limit: int,
        *,
        permits: int = 1,
        wait: float | None = None,
        lease: int | None = None,
        max_hold: float | None = None,
        on_lost: OnLost | None = None,
    ) -> AsyncIterator[HeldLock]:
        """Holds permits of the semaphore for the block."""
        held = await self.acquire(
            key,
            limit=limit,
            permits=permits,
            wait=wait,
            lease=lease,
            max_hold=max_hold,
            on_lost=on_lost,
        )
        async with held:
            yield held

    async def acquire(
        self,
        key: str,
        *,
        wait: float | None = None,
        lease: int | None = None,
        shared: bool = False,
        limit: int | None = None,
        permits: int = 1,
        max_hold: float | None = None,
        on_lost: OnLost | None = None,
    ) -> HeldLock:
        """Waits for the lock, or for permits of a semaphore when a limit is given."""
        wanted = Wanted(key, lease, limit, shared=shared, permits=permits)
        return HeldLock(await self._engine.acquire(wanted, wait, max_hold, on_lost))

    async def acquire_all(
        self,
        items: Iterable[Item],
        *,
        wait: float | None = None,
        lease: int | None = None,
        max_hold: float | None = None,
        on_lost: OnLost | None = None,
    ) -> HeldLock:
        """Waits for all of several locks and semaphores at once."""
        wanted = WantedSet(items, lease, self._engine.options.name)
        return HeldLock(await self._engine.acquire(wanted, wait, max_hold, on_lost))

    async def enqueue(
        self,
        key: str,
        *,
        lease: int | None = None,
        shared: bool = False,
        limit: int | None = None,
        permits: int = 1,
        max_hold: float | None = None,
        on_lost: OnLost | None = None,
    ) -> Place:
        """Joins the queue, and returns at once."""
        wanted = Wanted(key, lease, limit, shared=shared, permits=permits)
        return Place(await self._engine.enqueue(wanted, max_hold, on_lost))

    async def listen(self, pattern: str, *, group: str | None = None) -> Subscription:
        """Listens to the channels that match. Of a group each signal reaches one member."""
        return Subscription(self._engine, await self._engine.listen(pattern, group))

    async def publish(self, channel: str, payload: str | bytes) -> int:
        """How many connections the signal reached."""
        return await self._engine.publish(channel, payload)

    async def stats(self, server: str | None = None) -> dict[str, Any]:
        """The server's statistics; of a cluster, its leader's."""
        return await self._engine.stats(server)

    def server_of(self, key: str) -> str:
        """The server that has the key; of a cluster, the one that was last known to lead."""
        return self._engine.server_of(key)

    async def close(self) -> None:
        """Releases what is held, and gives up all else."""
        await self._engine.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
