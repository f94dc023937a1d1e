"""One wish for a lock, from the first request to the grant, through whatever happens meanwhile."""

from __future__ import annotations

import secrets
from typing import Callable, NamedTuple

from ._calls import ask_by_token, at_leader
from ._clock import NEVER, now
from ._cluster import Cluster
from ._hold import Hold
from ._link import Link
from ._renewal import due, says_gone
from ._replies import Grant, grant_of, remaining_of
from ._requests import Wanted, seconds_to_name
from .errors import (
    ConnectionFailed,
    Disconnected,
    InvalidRequest,
    LeaseExpired,
    LockdError,
    NoReply,
    NotAcquired,
    Refused,
    Unsupported,
)

__all__ = ["Acquisition", "Joined", "Taken", "Terms", "join"]

_REFUSALS_MAX = 3  # of one request in a row: then it is meant
_ROUNDING = 0.1  # what the server's count of a wait may exceed the client's by
_Lines = Callable[[int], bytes]


class Terms(NamedTuple):
    """What is wanted, and where. A secret of its own: asking twice with it is asking once."""

    cluster: Cluster
    wanted: Wanted
    max_hold: float | None
    secret: str

    @classmethod
    def of(cls, cluster: Cluster, wanted: Wanted, max_hold: float | None) -> Terms:
        if max_hold is not None and not max_hold > 0:
            raise InvalidRequest("max_hold is more than 0 seconds")
        return cls(cluster, wanted, max_hold, secrets.token_hex(8))

    def secret_for(self, link: Link) -> str | None:
        """Only a server that knows ``client`` knows it. Raises ``Unsupported`` for another server
        that would misunderstand the rest, too."""
        if link.knows_client:
            return self.secret
        if not self.wanted.is_plain:
            raise Unsupported(f"{link.endpoint.address} knows no shared locks and no permits")
        return None


class Taken(NamedTuple):
    """A hold, and the connection on which it was granted."""

    hold: Hold
    link: Link


class Joined(NamedTuple):
    """A place in the queue, and its connection; the grant, if it came at once."""

    link: Link
    grant: Grant | None


async def join(terms: Terms) -> Joined:
    """Joins the queue, and returns."""
    wanted = terms.wanted

    async def ask(link: Link) -> Joined:
        until = now() + terms.cluster.options.reply_timeout
        reply = await link.ask(wanted.enqueue(terms.secret_for(link)), until)
        return Joined(link, grant_of(reply.line, reply.sent_at, wanted.lease))

    return await at_leader(terms.cluster, now(), ask)


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
            grant = await self._wait(place.link, self._left(), self._wanted.await_turn)
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
        return await self._take(link, grant)

    async def _ask(self, link: Link, wait: float) -> Grant | None:
        secret = self._terms.secret_for(link)
        return await self._wait(link, wait, lambda seconds: self._wanted.acquire(seconds, secret))

    async def _wait(self, link: Link, wait: float, lines: _Lines) -> Grant | None:
        """Waits in the queue. A wait that is no whole number of seconds is ended by leaving."""
        named = seconds_to_name(wait)
        leaves = wait != NEVER and named - wait > _ROUNDING
        asked_at = now()
        until = asked_at + wait + (0 if leaves else self._reply_timeout)
        try:
            reply = await link.ask(lines(named), until)
            return grant_of(reply.line, reply.sent_at, self._wanted.lease)
        except NoReply:
            if leaves:
                return None
            raise
        except Disconnected:
            self._was_queued = named > 0
            raise
        except Refused as refusal:
            self._judge(refusal, named, asked_at)
            raise Disconnected("the server ended the wait") from refusal

    def _judge(self, refusal: Refused, named: int, asked_at: float) -> None:
        """Raises it, unless it may be the plain ``error`` by which a stopping server ends waits."""
        self._refusals = 1 if now() - asked_at > 1 else self._refusals + 1
        if refusal.reply != "error" or named == 0 or self._refusals >= _REFUSALS_MAX:
            raise refusal
        self._was_queued = True

    async def _take(self, link: Link, grant: Grant | None) -> Taken:
        """Makes it a hold. One that is due for renewal already is renewed first, so that nobody is
        given what ran out while the reply was under way or this process was stopped."""
        if grant is None:
            raise NotAcquired(
                f"{self._wanted} was not granted within the wait",
                key=self._wanted.key,
                queued_again=self._queued_again,
            )
        is_due = now() >= due(grant.sent_at, grant.lease)
        if link.is_closed or is_due or grant.token in link.losses:
            grant = await self._confirm(link, grant)
        hold = Hold(
            self._terms.cluster,
            self._wanted,
            grant,
            queued_again=self._queued_again,
            max_hold=self._terms.max_hold,
        )
        return Taken(hold, link)

    async def _confirm(self, link: Link, grant: Grant) -> Grant:
        lines = self._wanted.renew(grant.token, grant.lease)
        until = now() + min(grant.lease, self._reply_timeout)
        try:
            reply = await ask_by_token(self._terms.cluster, link, lines, until)
            remaining = remaining_of(reply.line, grant.lease)
        except BaseException as failure:
            # It may be in force: it is released as well as can be without waiting.
            link.send(self._wanted.release(grant.token))
            if isinstance(failure, LockdError) and says_gone(failure):
                self._lapse()
            raise
        return grant._replace(lease=remaining, sent_at=reply.sent_at)

    def _lapse(self) -> None:
        """The turn came and went. There may be time to ask again."""
        self._was_queued = True
        lapsed = f"{self._wanted} was granted, and its lease ran out before anyone took it"
        if now() < self._deadline:
            raise Disconnected(lapsed)
        raise LeaseExpired(lapsed, reply="error_lease_expired")

    def _left(self) -> float:
        return max(self._deadline - now(), 0.0)
