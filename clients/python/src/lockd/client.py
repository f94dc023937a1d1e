"""Locks and semaphores for programs with threads: the calls block.

A client has one thread of its own, which renews whatever is held. Any thread may call anything at
any time. After ``fork`` a client is of no use to the child, which makes one of its own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Callable, TypeVar

from . import aio
from ._background import Background, Stop
from ._engine import Addresses, OnLost
from ._hold import HoldView
from ._options import TLS
from ._replies import Signal
from ._sets import Item
from .errors import LockLost

__all__ = ["Client", "HeldLock", "Place", "Subscription"]

_T = TypeVar("_T")


class HeldLock(HoldView):
    """A lock, or permits of a semaphore, that is held and renews itself until it is released."""

    def __init__(self, background: Background, held: aio.HeldLock) -> None:
        super().__init__(held._hold)
        self._held = held  # first, so that it goes first: it is released by the thread of the other
        self._background = background

    def release(self) -> None:
        """Raises ``LockLost`` when it was held no more. Does nothing the second time."""
        loss = self.loss
        if loss is None and self._background.is_here:
            self._background.call_soon(self._held._kept.abandon)
        elif loss is None:
            self._background.call(self._held.release())
        elif loss.cause != "released":
            raise loss

    def wait_lost(self, wait: float | None = None) -> LockLost | None:
        """Waits until it is held no more, and says why; nothing when it still is after the wait."""
        return self.loss or self._background.call(self._held.wait_lost(wait))

    def __enter__(self) -> HeldLock:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Releases it. To leave the block is the last check: ``LockLost`` if it was lost within."""
        loss = self.loss
        if loss is None:
            self._background.call(self._held.__aexit__(kind, error, trace))
        elif error is None and loss.cause != "released":
            raise loss


class Place:
    """A place in a queue: wait for its turn, or give it up."""

    def __init__(self, background: Background, place: aio.Place) -> None:
        self._background = background
        self._place = place

    @property
    def is_granted(self) -> bool:
        """Whether it was granted at once. Its lease runs, and nobody renews it before ``wait``."""
        return self._place.is_granted

    def wait(self, wait: float | None = None, *, stop: Stop | None = None) -> HeldLock:
        """Waits for its turn. Whatever comes of it, the place is used up.

        A place that was lost with its connection is asked for again, at the end of the queue:
        ``queued_again``. ``LeaseExpired``: the turn came, and nobody took it in time.
        """
        return HeldLock(self._background, self._background.call(self._place.wait(wait), stop))

    def give_up(self) -> None:
        """Leaves the queue. Does nothing when the place is used up."""
        self._background.call_soon(self._place.give_up)

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_up()


class Subscription:
    """Signals as they come: ``for``, or ``next``."""

    def __init__(self, background: Background, subscription: aio.Subscription) -> None:
        self._background = background
        self._subscription = subscription

    @property
    def dropped(self) -> int:
        """How many signals were dropped, because they were not asked for soon enough."""
        return self._subscription.dropped

    @property
    def gaps(self) -> int:
        """How often a connection was made anew: signals may have been missed."""
        return self._subscription.gaps

    def next(self, wait: float | None = None, *, stop: Stop | None = None) -> Signal | None:
        """The next signal; nothing when none comes within the wait."""
        return self._background.call(self._subscription.next(wait), stop)

    def close(self) -> None:
        self._background.call_soon(self._subscription.close)

    def __iter__(self) -> Iterator[Signal]:
        while True:
            signal = self.next()
            assert signal is not None, "the wait has no end"
            yield signal

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Client:
    """Locks on one server, on several that share the keys, or on a cluster.

    ``servers``: ``host`` or ``host:port``, one or several. Several share the keys among them: all
    clients must have the same list, in the same order. Without any it is ``127.0.0.1:6388``.

    ``cluster``: instead, the servers of one cluster, in any order. The one that leads is looked for
    among these, and nowhere else, whomever they name.

    ``token``, ``token_file``: the auth token, or the file whose first line it is, which is read for
    every connection.

    ``tls``: ``True``, or a ``TLS`` that says more.

    ``name``, ``note``: what operators are shown; ``user@host:pid`` and the program's name.

    ``connect_timeout`` bounds one connection with its handshakes, and the search for a leader;
    ``reply_timeout`` a reply, beyond what the request asked to wait; ``release_timeout`` a release,
    at however many servers. All times are in seconds.
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
        self._client = aio.Client(
            servers,
            cluster=cluster,
            token=token,
            token_file=token_file,
            tls=tls,
            name=name,
            note=note,
            connect_timeout=connect_timeout,
            reply_timeout=reply_timeout,
            release_timeout=release_timeout,
        )
        self._background = Background()

    @contextmanager
    def lock(
        self,
        key: str,
        *,
        shared: bool = False,
        wait: float | None = None,
        lease: int | None = None,
        max_hold: float | None = None,
        on_lost: OnLost | None = None,
        stop: Stop | None = None,
    ) -> Iterator[HeldLock]:
        """Holds the lock for the block; the parameters are those of ``acquire``."""
        with self.acquire(
            key,
            shared=shared,
            wait=wait,
            lease=lease,
            max_hold=max_hold,
            on_lost=on_lost,
            stop=stop,
        ) as held:
            yield held

    @contextmanager
    def semaphore(
        self,
        key: str,
        limit: int,
        *,
        permits: int = 1,
        wait: float | None = None,
        lease: int | None = None,
        max_hold: float | None = None,
        on_lost: OnLost | None = None,
        stop: Stop | None = None,
    ) -> Iterator[HeldLock]:
        """Holds ``permits`` of ``limit`` for the block; the parameters are those of ``acquire``."""
        with self.acquire(
            key,
            limit=limit,
            permits=permits,
            wait=wait,
            lease=lease,
            max_hold=max_hold,
            on_lost=on_lost,
            stop=stop,
        ) as held:
            yield held

    def acquire(
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
        stop: Stop | None = None,
    ) -> HeldLock:
        """Waits for the lock, or for permits of a semaphore when a limit is given.

        ``wait``: at most so many seconds, from this call on; 0 is a try; ``None`` is without bound.
        A server that is down, or goes down meanwhile, is asked again until then. A try, and the
        first connection, may take ``connect_timeout``.

        ``lease``: whole seconds, renewed at a third of it; without it, the server's default.

        ``shared``: any number hold the lock together, and nobody alone meanwhile. Who waits to hold
        it alone is overtaken by no one.

        ``permits``: how many of the ``limit``. More than one needs a lease on the wire: without
        ``lease`` it is 33 seconds.

        ``max_hold``: so many seconds after the grant it is no longer renewed, and ends with its
        lease: a program that is stuck does not hold it for ever.

        ``on_lost`` is called with the ``LockLost`` when that happens, on a thread of its own.

        Raises ``NotAcquired`` when the wait is over; the other types of ``lockd.errors`` say why.
        """
        acquiring = self._client.acquire(
            key,
            wait=wait,
            lease=lease,
            shared=shared,
            limit=limit,
            permits=permits,
            max_hold=max_hold,
            on_lost=_on_own_thread(on_lost),
        )
        return HeldLock(self._background, self._call(acquiring, stop))

    def acquire_all(
        self,
        items: Iterable[Item],
        *,
        wait: float | None = None,
        lease: int | None = None,
        max_hold: float | None = None,
        on_lost: OnLost | None = None,
        stop: Stop | None = None,
    ) -> HeldLock:
        """Waits for all of several at once, 1 to 64; no part of them is ever held.

        A key is a lock that is held alone; a ``SetItem`` may be shared, or permits of a semaphore.
        They have one fence, larger than any that was granted for one of them before, and are
        renewed, lost and released together. The other parameters are those of ``acquire``. They are
        held by a name: should the program die, they end with their lease, and not before. Of
        several servers, one must have all the keys.
        """
        acquiring = self._client.acquire_all(
            items, wait=wait, lease=lease, max_hold=max_hold, on_lost=_on_own_thread(on_lost)
        )
        return HeldLock(self._background, self._call(acquiring, stop))

    def enqueue(
        self,
        key: str,
        *,
        lease: int | None = None,
        shared: bool = False,
        limit: int | None = None,
        permits: int = 1,
        max_hold: float | None = None,
        on_lost: OnLost | None = None,
        stop: Stop | None = None,
    ) -> Place:
        """Joins the queue, and returns at once: the first of two phases."""
        joining = self._client.enqueue(
            key,
            lease=lease,
            shared=shared,
            limit=limit,
            permits=permits,
            max_hold=max_hold,
            on_lost=_on_own_thread(on_lost),
        )
        return Place(self._background, self._call(joining, stop))

    def listen(self, pattern: str, *, group: str | None = None) -> Subscription:
        """Listens to the channels that match; of a group, each signal reaches one member.

        In a pattern ``*`` is one token of a channel, and ``>`` all the rest.
        """
        return Subscription(self._background, self._call(self._client.listen(pattern, group=group)))

    def publish(self, channel: str, payload: str | bytes) -> int:
        """How many connections the signal reached. A lost connection may have lost it, too."""
        return self._call(self._client.publish(channel, payload))

    def stats(self, server: str | None = None) -> dict[str, Any]:
        """The server's statistics, of a cluster its leader's. Of several servers, say whose."""
        return self._call(self._client.stats(server))

    def server_of(self, key: str) -> str:
        """The server that has the key; of a cluster, the one that was last known to lead."""
        return self._client.server_of(key)

    def close(self) -> None:
        """Releases what is held, and gives up all else: calls that wait raise ``Cancelled``."""
        self._background.close(self._client.close())

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, doing: Coroutine[Any, Any, _T], stop: Stop | None = None) -> _T:
        return self._background.call(doing, stop)


def _on_own_thread(on_lost: OnLost | None) -> Callable[[LockLost], object] | None:
    """So that it may block, and use the client."""
    if on_lost is None:
        return None
    tell = on_lost

    def start(loss: LockLost) -> None:
        threading.Thread(target=tell, args=(loss,), name="lockd-lost", daemon=True).start()

    return start
