"""What both clients are made of: everything that they do, as coroutines of one event loop.

``lockd.aio.Client`` runs it on its caller's loop, ``lockd.Client`` on a loop of its own thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Callable, TypeVar, Union

from ._acquisition import Acquisition, Joined, Taken, Terms, join, withdraw
from ._calls import ask_by_token, at_leader, log
from ._clock import now
from ._cluster import Address, Cluster, shard_of
from ._hold import Hold
from ._link import STATS_SIZE_MAX, Link
from ._options import Options
from ._renewal import Renewal
from ._replies import check, count_of, stats_of
from ._requests import STATS, Wanted, Wish, publish_lines
from ._sets import WantedSet
from ._subscription import Listening
from .errors import (
    Cancelled,
    Disconnected,
    Draining,
    InvalidRequest,
    LockdError,
    LockLost,
    NotLeader,
    Refused,
)

__all__ = ["Addresses", "Engine", "Kept", "KeptPlace", "OnLost"]

Addresses = Union[str, Sequence[str]]
OnLost = Callable[[LockLost], object]
_T = TypeVar("_T")
_IDLE_MAX = 10.0  # how old a connection for small calls may be: a server closes silent ones


class Kept:
    """A hold and its renewal, for whoever may release it."""

    def __init__(self, taken: Taken, on_lost: OnLost | None) -> None:
        self.hold = taken.hold
        loop = asyncio.get_running_loop()
        self.loop = loop
        self.ended: asyncio.Future[None] = loop.create_future()
        """Done when it is lost or released."""
        if on_lost is not None:
            self.hold.on_loss.append(lambda loss: loop.call_soon(on_lost, loss))
        self.hold.on_loss.append(lambda loss: self.ended.set_result(None))
        self._renewal = Renewal(taken.hold, taken.link)

    async def release(self) -> None:
        """Raises ``LockLost`` when there was nothing left to release. Once is enough."""
        hold = self.hold
        if hold.is_released:
            return
        loss = hold.why_over()
        if loss is not None:
            raise loss
        hold.is_released = True
        hold.certainty.end(now())
        self.ended.set_result(None)
        link = self._renewal.withdraw()
        try:
            await self._tell_server(hold, link)
        finally:
            link.close()

    async def leave(self) -> None:
        """Releases it, for an owner who has nothing more to do: a server that does not answer is
        left to the lease."""
        try:
            await self.release()
        except LockLost:
            raise
        except LockdError as failure:
            log.warning("%s is left to its lease: %s", self.hold.wanted, failure)

    def abandon(self) -> None:
        """For an owner who is gone."""
        task = self.loop.create_task(self.leave())
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _tell_server(self, hold: Hold, link: Link) -> None:
        was_open = not link.is_closed
        lines = hold.wanted.release(hold.grant.token)
        until = now() + hold.cluster.options.release_timeout
        try:
            await ask_by_token(
                hold.cluster, link, lines, until, lambda reply: hold.wanted.read_release(reply.line)
            )
        except Refused as refusal:
            # A first release whose answer was lost may have been what released it.
            if not (was_open and link.is_closed):
                raise hold.lost("the server says so", "refused") from refusal


class KeptPlace:
    """A place in a queue."""

    def __init__(
        self, engine: Engine, terms: Terms, joined: Joined, on_lost: OnLost | None
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.terms = terms
        self.is_granted = joined.grant is not None
        self._engine = engine
        self._joined: Joined | None = joined
        self._on_lost = on_lost

    @property
    def is_used_up(self) -> bool:
        return self._joined is None

    async def wait(self, wait: float | None) -> Kept:
        joined = self._joined
        if joined is None:
            raise InvalidRequest("the place is used up")
        acquisition = Acquisition(self.terms, wait)
        self._use_up()
        taken = await self._engine.wait_for(acquisition.run_from(joined), _give_back)
        return self._engine.keep(taken, self._on_lost)

    def give_up(self) -> None:
        """The end of the connection gives up the place; a grant is released by name, too."""
        joined = self._joined
        if joined is not None:
            self._use_up()
            _leave(joined)

    def _use_up(self) -> None:
        self._joined = None
        self._engine.places.discard(self)


def _give_back(taken: Taken) -> None:
    taken.link.send(taken.hold.wanted.release(taken.hold.grant.token))
    taken.link.close()


def _leave(joined: Joined) -> None:
    wanted, link, grant = joined
    if grant is not None and not link.is_closed:
        link.send(wanted.release(grant.token))
        link.close()
    else:
        link.abort()


class Engine:
    """Connects to nobody until it is asked to. All but the constructor runs on one event loop."""

    def __init__(
        self, servers: Addresses | None, cluster: Addresses | None, options: Options
    ) -> None:
        if servers is not None and cluster is not None:
            raise InvalidRequest("servers share the keys, a cluster has one leader: give one list")
        self.options = options
        if cluster is not None:
            self._clusters = [Cluster(_parse(cluster), options)]
        else:
            addresses = _parse("127.0.0.1" if servers is None else servers)
            self._clusters = [Cluster([address], options) for address in addresses]
        self._kept: set[Kept] = set()
        self.places: set[KeptPlace] = set()
        self._listening: set[Listening] = set()
        self._withdrawals: set[asyncio.Future[None]] = set()
        self._waiting: set[asyncio.Future[Any]] = set()  # of calls that may wait
        self._small: dict[Cluster, Link] = {}  # for small calls
        self._opening: dict[Cluster, asyncio.Lock] = {}
        self._is_closed = False

    # --- locks

    async def acquire(
        self, wanted: Wish, wait: float | None, max_hold: float | None, on_lost: OnLost | None
    ) -> Kept:
        terms = self._terms(wanted, max_hold)
        self._check_open()
        acquisition = Acquisition(terms, wait)
        try:
            return self.keep(await self.wait_for(acquisition.run(), _give_back), on_lost)
        except BaseException:
            if acquisition.is_in_doubt and isinstance(wanted, WantedSet):
                self._withdraw(terms.cluster, wanted)
            raise

    async def enqueue(
        self, wanted: Wanted, max_hold: float | None, on_lost: OnLost | None
    ) -> KeptPlace:
        terms = self._terms(wanted, max_hold)
        self._check_open()
        joined = await self.wait_for(join(terms, wanted), _leave)
        place = KeptPlace(self, terms, joined, on_lost)
        self.places.add(place)
        return place

    async def wait_for(self, call: Coroutine[Any, Any, _T], give_back: Callable[[_T], None]) -> _T:
        """Until it has come to something, or the client is closed."""
        task = asyncio.ensure_future(call)
        self._waiting.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            # It may have been granted, and the caller cancelled before it was told.
            if task.done() and not task.cancelled() and task.exception() is None:
                give_back(task.result())
            if task not in self._waiting:
                raise Cancelled("the client was closed") from None
            raise
        finally:
            self._waiting.discard(task)

    def keep(self, taken: Taken, on_lost: OnLost | None) -> Kept:
        if self._is_closed:
            _give_back(taken)
        self._check_open()
        kept = Kept(taken, on_lost)
        self._kept.add(kept)
        kept.ended.add_done_callback(lambda _: self._kept.discard(kept))
        return kept

    def _terms(self, wanted: Wish, max_hold: float | None) -> Terms:
        cluster = self._cluster_of(wanted.key)
        if any(self._cluster_of(key) is not cluster for key in wanted.keys):
            raise InvalidRequest(f"the keys of a {wanted} live on different servers")
        return Terms.of(cluster, wanted, max_hold)

    def _withdraw(self, cluster: Cluster, wanted: WantedSet) -> None:
        """Does not wait for it. What cannot be told is left to the lease."""
        task = asyncio.ensure_future(withdraw(cluster, wanted))
        self._withdrawals.add(task)
        task.add_done_callback(self._withdrawals.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    # --- signals and statistics

    async def listen(self, pattern: str, group: str | None) -> Listening:
        self._check_open()
        listening = Listening(self._clusters, pattern, group)
        await listening.begin()
        self._listening.add(listening)
        return listening

    async def publish(self, channel: str, payload: str | bytes) -> int:
        lines = publish_lines(channel, payload)
        return count_of(await self._ask(self._cluster_of(channel), lines, repeats=False))

    async def stats(self, server: str | None) -> dict[str, Any]:
        clusters = self._clusters
        if server is not None:
            clusters = [one for one in clusters if one.find(server) is not None]
            if not clusters:
                raise InvalidRequest(f"{server} is none of the servers that were given")
        elif len(clusters) > 1:
            raise InvalidRequest("there are several servers: say whose statistics")
        if server is None or clusters[0].is_alone:
            return stats_of(await self._ask(clusters[0], STATS, repeats=True))
        # Of a cluster this very server, whether it leads or not.
        endpoint = clusters[0].members[clusters[0].find(server) or 0]
        link = await Link.open(endpoint, now() + self.options.connect_timeout)
        try:
            return stats_of(await self._ask_at(link, STATS))
        finally:
            link.close()

    def server_of(self, key: str) -> str:
        cluster = self._cluster_of(key)
        return str(cluster.members[cluster.leader].address)

    async def close(self) -> None:
        """Gives up places and subscriptions, and releases what is held."""
        self._is_closed = True
        for place in list(self.places):
            place.give_up()
        for listening in list(self._listening):
            listening.end(Cancelled("the client was closed"))
        waiting = list(self._waiting)
        self._waiting.clear()
        for call in waiting:
            call.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        leaving = (kept.leave() for kept in self._kept)
        await asyncio.gather(*leaving, *self._withdrawals, return_exceptions=True)
        for link in self._small.values():
            link.close()
        self._small.clear()

    def unlisten(self, listening: Listening) -> None:
        listening.end()
        self._listening.discard(listening)

    async def _ask(self, cluster: Cluster, lines: bytes, *, repeats: bool) -> str:
        """A small call, on a connection that all of them share."""
        self._check_open()
        link = await self._small_link(cluster)
        try:
            return await self._ask_at(link, lines)
        except (NotLeader, Draining):
            pass  # nothing was done
        except Disconnected:
            if not repeats:
                raise
        if self._small.get(cluster) is link:
            del self._small[cluster]
        if link.is_idle:
            link.close()
        return await self._ask_at(await self._small_link(cluster), lines)

    async def _small_link(self, cluster: Cluster) -> Link:
        async with self._opening.setdefault(cluster, asyncio.Lock()):
            link = self._small.get(cluster)
            if link is not None and not link.is_closed:
                if not link.is_idle or now() - link.heard_at < _IDLE_MAX:
                    return link
                link.close()
            self._small[cluster] = link = await at_leader(cluster, now(), _itself)
            return link

    async def _ask_at(self, link: Link, lines: bytes) -> str:
        until = now() + self.options.reply_timeout
        reply = await link.ask(lines, until, reply_size_max=STATS_SIZE_MAX, stays_open=True)
        check(reply.line)
        return reply.line

    def _cluster_of(self, key: str) -> Cluster:
        return self._clusters[shard_of(key, len(self._clusters))]

    def _check_open(self) -> None:
        if self._is_closed:
            raise Cancelled("the client was closed")


async def _itself(link: Link) -> Link:
    return link


def _parse(addresses: Addresses) -> list[Address]:
    texts = [addresses] if isinstance(addresses, str) else list(addresses)
    if not texts:
        raise InvalidRequest("a client needs a server")
    return [Address.parse(text) for text in texts]
