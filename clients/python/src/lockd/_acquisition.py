"""One wish for a lock, from the first request to the grant, through whatever happens meanwhile."""

from __future__ import annotations

import secrets
from typing import Callable, NamedTuple

from ._calls import ask_by_token, at_leader
from ._clock import NEVER, now, wait_until
from ._cluster import Cluster
from ._hold import Hold
from ._link import Link, Reply
from ._renewal import due, says_gone
from ._replies import Conflict, Grant, shown
from ._requests import Wanted, Wish
from ._sets import WantedSet
from .errors import (
    ConnectionFailed,
    Disconnected,
    Draining,
    InvalidRequest,
    LeaseExpired,
    LockdError,
    LockLost,
    NoReply,
    NotAcquired,
    NotLeader,
    Refused,
    Unsupported,
)

__all__ = ["Acquisition", "Joined", "Taken", "Terms", "join", "withdraw"]

_REFUSALS_MAX = 3  # of one request in a row: then it is meant
_ROUNDING = 0.1  # what the server's count of a wait may exceed the client's by
_PAUSE_AFTER_CUT = 0.05
_CONFLICT_TIMEOUT = 1.0  # of the question who was in the way
_Lines = Callable[[float], bytes]


class Terms(NamedTuple):
    """What is wanted, and where. A secret of its own: asking twice with it is asking once."""

    cluster: Cluster
    wanted: Wish
    max_hold: float | None
    secret: str

    @classmethod
    def of(cls, cluster: Cluster, wanted: Wish, max_hold: float | None) -> Terms:
        if max_hold is not None and not max_hold > 0:
            raise InvalidRequest("max_hold is more than 0 seconds")
        return cls(cluster, wanted, max_hold, secrets.token_hex(8))

    def secret_for(self, link: Link) -> str | None:
        """Only a server that knows ``client`` knows it. Raises ``Unsupported`` for another server
        that would misunderstand the rest, too."""
        if link.knows_client:
            return self.secret
        if not self.wanted.is_plain:
            raise Unsupported(
                f"{link.endpoint.address} knows no shared locks, several permits or several keys"
            )
        return None


class Taken(NamedTuple):
    """A hold, and the connection on which it was granted."""

    hold: Hold
    link: Link


class Joined(NamedTuple):
    """A place in the queue, and its connection; the grant, if it came at once."""

    wanted: Wanted
    link: Link
    grant: Grant | None


async def join(terms: Terms, wanted: Wanted) -> Joined:
    """Joins the queue, and returns."""

    async def ask(link: Link) -> Joined:
        until = now() + terms.cluster.options.reply_timeout
        reply = await link.ask(wanted.enqueue(terms.secret_for(link)), until)
        return Joined(wanted, link, wanted.read_grant(reply.line, reply.sent_at))

    return await at_leader(terms.cluster, now(), ask)


async def withdraw(cluster: Cluster, wanted: WantedSet) -> None:
    """Releases what may have been granted to an acquisition that ended before it heard of it.

    Who asks again under its name gets its own grant back, and no other hold has this name.
    """
    until = now() + cluster.options.release_timeout

    def read(reply: Reply) -> Grant | None:
        return wanted.read_grant(reply.line, reply.sent_at)

    grant = await ask_by_token(cluster, None, wanted.take_back(), until, read)
    if grant is not None:
        lines = wanted.release(grant.token)
        await ask_by_token(
            cluster, None, lines, until, lambda reply: wanted.read_release(reply.line)
        )


class Acquisition:
    """Asks until its own deadline. Whoever cancels it gives up its place in the queue at once."""

    def __init__(self, terms: Terms, wait: float | None) -> None:
        if wait is not None and not wait >= 0:
            raise InvalidRequest("a wait is not negative; None waits without bound")
        self._terms = terms
        self._wanted = terms.wanted
        self._reply_timeout = terms.cluster.options.reply_timeout
        self._deadline = NEVER if wait is None else now() + wait
        self._was_queued = False  # and is so no more
        self._queued_again = False
        self._refusals = 0
        self._last_line = ""
        self.is_in_doubt = False
        """Whether it was asked for, and the answer did not come."""

    async def run(self) -> Taken:
        return await at_leader(self._terms.cluster, self._deadline, self._acquire)

    async def run_from(self, place: Joined) -> Taken:
        """Goes on from a place in the queue; joins it again, at its end, if the place is lost."""
        try:
            return await self._take_place(place)
        except ConnectionFailed:
            place.link.abort()
            if now() >= self._deadline:
                raise
            self._was_queued = True
            return await self.run()
        except BaseException:
            place.link.abort()
            raise

    async def _take_place(self, place: Joined) -> Taken:
        grant = place.grant
        if grant is None:
            grant = await self._wait(place.link, self._left(), place.wanted.await_turn)
        return await self._take(place.link, grant)

    async def _acquire(self, link: Link) -> Taken:
        self._queued_again = self._queued_again or self._was_queued
        left = self._left()
        grant = None
        if 0 < left < 1:
            # It may be shorter than the way there and back: so it begins with a try.
            grant = await self._ask(link, 0)
            left = self._left()
        if grant is None:
            grant = await self._ask(link, left)
        while grant is None and now() < self._deadline:  # a server may cut a wait
            self._queued_again = True
            await wait_until(min(now() + _PAUSE_AFTER_CUT, self._deadline))
            grant = await self._ask(link, self._left())
        return await self._take(link, grant)

    async def _ask(self, link: Link, wait: float) -> Grant | None:
        secret = self._terms.secret_for(link)
        return await self._wait(link, wait, lambda named: self._wanted.acquire(named, secret))

    async def _wait(self, link: Link, wait: float, lines: _Lines) -> Grant | None:
        """Waits in the queue. A wait that cannot be named exactly is ended by leaving."""
        named = self._wanted.wait_to_name(wait)
        leaves = wait != NEVER and named - wait > _ROUNDING
        asked_at = now()
        until = asked_at + wait + (0 if leaves else self._reply_timeout)
        was_in_doubt, self.is_in_doubt = self.is_in_doubt, True
        try:
            reply = await link.ask(lines(named), until)
            self.is_in_doubt, self._last_line = was_in_doubt, reply.line
            grant = self._wanted.read_grant(reply.line, reply.sent_at)
            self.is_in_doubt = False
        except NoReply:
            if leaves:
                return None
            raise
        except (Disconnected, Draining, NotLeader):  # a leader ends the waits at it so
            self._was_queued = named > 0
            raise
        except Refused as refusal:
            self.is_in_doubt = False
            self._judge(refusal, named, asked_at)
            raise Disconnected("the server ended the wait") from refusal
        return grant

    def _judge(self, refusal: Refused, named: float, asked_at: float) -> None:
        """Raises it, unless it may be the plain ``error`` by which a stopping server ends waits."""
        self._refusals = 1 if now() - asked_at > 1 else self._refusals + 1
        if refusal.reply != "error" or named == 0 or self._refusals >= _REFUSALS_MAX:
            raise refusal
        self._was_queued = True

    async def _take(self, link: Link, grant: Grant | None) -> Taken:
        """Makes it a hold. One that is due for renewal already is renewed first, so that nobody is
        given what ran out while the reply was under way or this process was stopped."""
        if grant is None:
            raise self._not_acquired(await self._conflict(link))
        if grant.token in link.losses:
            self._take_back(link.losses[grant.token])
        if link.is_closed or now() >= due(grant.sent_at, grant.lease):
            grant = await self._confirm(link, grant)
        hold = Hold(
            self._terms.cluster,
            self._wanted,
            grant,
            queued_again=self._queued_again,
            max_hold=self._terms.max_hold,
        )
        return Taken(hold, link)

    async def _conflict(self, link: Link) -> Conflict:
        """Who was in the way, as the refusal says or a server that knows is asked. Without an
        answer nothing is known."""
        question = self._wanted.ask_conflict()
        try:
            if question is None:
                return self._wanted.read_conflict(self._last_line)
            if link.knows_client:
                reply = await link.ask(question, now() + _CONFLICT_TIMEOUT)
                return self._wanted.read_conflict(reply.line)
        except LockdError:
            pass
        return Conflict()

    def _not_acquired(self, conflict: Conflict) -> NotAcquired:
        name = conflict.client or conflict.holder
        by_whom = f", held by {shown(name)}" if name else ""
        return NotAcquired(
            f"{self._wanted} was not granted within the wait{by_whom}",
            key=self._wanted.key,
            queued_again=self._queued_again,
            **conflict._asdict(),
        )

    async def _confirm(self, link: Link, grant: Grant) -> Grant:
        lines = self._wanted.renew(grant.token, grant.lease)
        until = now() + min(grant.lease, self._reply_timeout)

        def read(reply: Reply) -> Grant:
            remaining = self._wanted.read_renewal(reply.line, grant.lease)
            return grant._replace(lease=remaining, sent_at=reply.sent_at)

        try:
            return await ask_by_token(self._terms.cluster, link, lines, until, read)
        except BaseException as failure:
            # It may be in force: it is released as well as can be without waiting.
            link.send(self._wanted.release(grant.token))
            self.is_in_doubt = link.is_closed
            if isinstance(failure, LockdError) and says_gone(failure):
                self._lapse()
            raise

    def _take_back(self, cause: str) -> None:
        """The server has ended what nobody had yet."""
        if cause == "expired":
            self._lapse()
        raise LockLost(
            f"{self._wanted} is held no more: the server says that it was {cause}",
            key=self._wanted.key,
            cause=cause,
        )

    def _lapse(self) -> None:
        """The turn came and went. There may be time to ask again."""
        self._was_queued = True
        lapsed = f"{self._wanted} was granted, and its lease ran out before anyone took it"
        if now() < self._deadline:
            raise Disconnected(lapsed)
        raise LeaseExpired(lapsed, reply="error_lease_expired")

    def _left(self) -> float:
        return max(self._deadline - now(), 0.0)
