"""Listens to a pattern at every server, and goes on listening when one is gone for a while."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from ._calls import at_leader, log
from ._clock import NEVER, now, wait_until
from ._cluster import Cluster
from ._link import Link
from ._replies import Signal, check
from ._requests import PING, listen_lines
from .errors import Cancelled, ConnectionFailed, LockdError

__all__ = ["Listening"]

_PING_INTERVAL = 15.0
_SIGNALS_MAX = 1024
_SIGNAL_BYTES_MAX = 16 * 1024 * 1024


class Listening:
    """The signals of one pattern, in the order in which they came. Made by ``begin``."""

    def __init__(self, clusters: Sequence[Cluster], pattern: str, group: str | None) -> None:
        self.dropped = 0
        """How many signals were dropped, because they were not asked for soon enough."""
        self.gaps = 0
        """How often a connection was made anew: signals may have been missed."""
        self._clusters = clusters
        self._lines = listen_lines(pattern, group)
        self._signals: deque[Signal] = deque()
        self._bytes = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._links: list[Link] = []
        self._failure: LockdError | None = None
        self._news: asyncio.Future[None] | None = None

    @property
    def is_ended(self) -> bool:
        return self._failure is not None

    async def begin(self) -> None:
        """Returns when all servers have confirmed."""
        try:
            for cluster in self._clusters:
                self._links.append(await at_leader(cluster, now(), self._listen))
        except BaseException:
            self.end()
            raise
        loop = asyncio.get_running_loop()
        for cluster, link in zip(self._clusters, self._links):
            self._tasks.append(loop.create_task(self._keep(cluster, link)))

    async def next(self, wait: float | None) -> Signal | None:
        """The next signal; nothing when none comes within the wait."""
        deadline = NEVER if wait is None else now() + wait
        while True:
            if self._signals:
                signal = self._signals.popleft()
                self._bytes -= _size(signal)
                return signal
            if self._failure is not None:
                raise self._failure
            if now() >= deadline:
                return None
            if self._news is None or self._news.done():
                self._news = asyncio.get_running_loop().create_future()
            await wait_until(deadline, self._news)

    def end(self, why: LockdError | None = None) -> None:
        for task in self._tasks:
            task.cancel()
        for link in self._links:
            link.abort()
        self._failure = self._failure or why or Cancelled("the subscription was closed")
        self._tell()

    async def _keep(self, cluster: Cluster, link: Link) -> None:
        try:
            while True:
                await self._watch(link)
                log.warning("%s; listening again", link.failure)
                self._links.remove(link)
                link = await at_leader(cluster, NEVER, self._listen)
                self._links.append(link)
                self.gaps += 1
        except LockdError as failure:  # one that waiting does not cure
            self.end(failure)

    async def _watch(self, link: Link) -> None:
        """Until the connection has ended. One that is silent is asked whether it lives."""
        while not link.is_closed:
            await wait_until(link.heard_at + _PING_INTERVAL, link.closed)
            if now() < link.heard_at + _PING_INTERVAL or link.is_closed:
                continue
            try:
                await link.ask(PING, now() + link.endpoint.options.reply_timeout)
            except ConnectionFailed:
                return

    async def _listen(self, link: Link) -> Link:
        link.on_signal = self._keep_signal
        reply = await link.ask(self._lines, now() + link.endpoint.options.reply_timeout)
        check(reply.line)
        return link

    def _keep_signal(self, signal: Signal) -> None:
        self._signals.append(signal)
        self._bytes += _size(signal)
        while len(self._signals) > _SIGNALS_MAX or self._bytes > _SIGNAL_BYTES_MAX:
            self._bytes -= _size(self._signals.popleft())
            self.dropped += 1
        self._tell()

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


def _size(signal: Signal) -> int:
    return len(signal.channel) + len(signal.payload)
