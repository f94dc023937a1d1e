"""Keeps one hold renewed, by a task of its own, and tells its owner when that is over.

    at home ──(a third of the lease)──> asking ──ok──> at home
                                           │
     the connection ends, or, in a cluster │
     the server does not lead, or is late  v
                       away: the next server, again and again ──ok──> home is there

Home is the connection on which the lock was granted or last renewed. To leave it would be to
release, so a server that is merely slow is waited for. In a cluster a leader may hang and another
take over: when its answer is overdue the others are asked as well, and home is kept, in case it
answers after all.

A server of a cluster that replies that it does not lead is left, and home is gone with it. Once
home is gone, a server may have released the lock: it is suspect from the first reconnection that
does not renew it, also one that reaches only followers, until one does. It is lost when a server
refuses this client.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from ._calls import log
from ._clock import NEVER, now, wait_until
from ._cluster import LeaderSearch, moves_on
from ._hold import Hold, is_definite
from ._link import Link
from .errors import (
    LeaseExpired,
    LockdError,
    LockLost,
    NoReply,
    NotEnqueued,
    NotLeader,
    Refused,
    Unreachable,
)

__all__ = ["Renewal", "due"]

_PAUSE_MIN = 0.05
_PAUSE_MAX = 1.0


def due(sent_at: float, lease: float) -> float:
    """When a lease that was asked for at ``sent_at`` is to be renewed."""
    return sent_at + lease / 3


def says_gone(refusal: LockdError) -> bool:
    """Whether the answer to a renewal says that there is nothing left to renew."""
    if isinstance(refusal, (LeaseExpired, NotEnqueued)):
        return True
    return isinstance(refusal, Refused) and refusal.reply == "error"


class _Confirmation(NamedTuple):
    link: Link
    asked_at: float
    remaining: int


class Renewal:
    """Begins at once. Ends when the hold is lost, or by ``withdraw``."""

    def __init__(self, hold: Hold, link: Link) -> None:
        loop = asyncio.get_running_loop()
        self._hold = hold
        self._search = LeaderSearch(hold.cluster, hold.cluster.index_of(link.endpoint))
        self._link = link
        self._former: list[Link] = []  # whose end may release: kept until this ends
        self._told: asyncio.Future[LockLost] = loop.create_future()  # by the server
        self._renew_at = due(hold.grant.sent_at, hold.grant.lease)
        self._pause = 0.0
        self._listen_at(link)
        self._task = loop.create_task(self._run())

    def withdraw(self) -> Link:
        """Nobody renews it any more. The connection is the caller's to close."""
        self._task.cancel()
        self._link.on_loss = None
        self._leave_former()
        return self._link

    async def _run(self) -> None:
        try:
            while True:
                await self._rest()
                await self._renew()
        except LockLost as loss:
            self._end(loss)
        except Exception as error:
            self._end(self._hold.lost(f"it is not renewed any more: {error!r}", "unsure"))

    def _end(self, loss: LockLost) -> None:
        # The server may keep it a little longer than this client believed in it.
        if not self._link.is_closed:
            self._link.send(self._hold.wanted.release(self._hold.grant.token))
        self._link.close()
        self._leave_former()
        self._hold.lose(loss)

    async def _rest(self) -> None:
        """Until something is to be done; raises when it is over."""
        until = min(self._renew_at, self._hold.certainty.until)
        await wait_until(until, self._told, *self._ends())
        self._raise_if_over()
        held_until_max = self._hold.held_until_max
        if held_until_max is not None and now() >= held_until_max:
            await wait_until(self._hold.certainty.until, self._told, *self._ends())
            # A connection that ends may release, which only a renewal could tell.
            self._hold.certainty.end(now())
            self._raise_if_over()

    def _ends(self) -> list[asyncio.Future[None]]:
        """Of connections with which a server may release it."""
        self._former = [link for link in self._former if not link.is_closed]
        return [link.closed for link in (self._link, *self._former)]

    async def _renew(self) -> None:
        """Returns when the server has confirmed, or cannot tell now."""
        home: asyncio.Task[_Confirmation] | None = None
        visit: asyncio.Task[_Confirmation] | None = None
        overdue_at = NEVER if self._hold.cluster.is_alone else now() + self._patience()
        if not self._link.is_closed:
            home = asyncio.ensure_future(self._ask(self._link))
        else:
            self._search.move_on(self._link.failure, now())
        try:
            while True:
                if visit is None and (home is None or now() >= overdue_at):
                    visit = self._visit_next(home is not None)
                await self._wait_for(home, visit, overdue_at)
                if home is not None and home.done():
                    failure = self._judge(home)
                    if failure is None:
                        return
                    home = None
                    # A server that does not lead cannot renew: its connection counts as lost.
                    self._link.abort(failure)
                    if visit is None:
                        self._search.move_on(failure, now())
                if visit is not None and visit.done():
                    failure = self._judge(visit)
                    if failure is None:
                        return
                    visit = None
                    self._search.move_on(failure, now())
                    self._doubt(failure)
        finally:
            for task in (home, visit):
                if task is not None:
                    self._discard(task)

    def _visit_next(self, home_is_open: bool) -> asyncio.Task[_Confirmation] | None:
        """Asks who is next; nobody when it is too early, or when that is who is asked already."""
        if now() < self._search.not_before:
            return None
        member = self._search.here
        if home_is_open and self._hold.cluster.members[member] is self._link.endpoint:
            self._search.move_on(NoReply("its answer is overdue"), now())
            return None
        return asyncio.ensure_future(self._visit(member))

    async def _wait_for(
        self,
        home: asyncio.Task[_Confirmation] | None,
        visit: asyncio.Task[_Confirmation] | None,
        overdue_at: float,
    ) -> None:
        until = self._hold.certainty.until
        if visit is None:
            next_visit_at = self._search.not_before
            if home is not None:
                next_visit_at = max(next_visit_at, overdue_at)
            until = min(until, next_visit_at)
        await wait_until(until, self._told, *(task for task in (home, visit) if task is not None))
        self._raise_if_over()

    def _judge(self, task: asyncio.Task[_Confirmation]) -> LockdError | None:
        """Nothing when there was an answer; else why another server has to be asked."""
        try:
            confirmed = task.result()
        except LockdError as failure:
            if says_gone(failure):
                raise self._hold.lost(f"not renewed, {failure}", "refused") from failure
            self._note(failure)
            # A server that stands alone, and does not lead, is not left: that would be to release.
            stays = isinstance(failure, NotLeader) and self._hold.cluster.is_alone
            if moves_on(failure) and not stays:
                return failure
            self._pause = min(max(2 * self._pause, _PAUSE_MIN), _PAUSE_MAX)
            self._renew_at = now() + self._pause
            self._doubt(failure)
            return None
        except Exception as error:  # of this machine: there is no thread, no memory
            unasked = Unreachable(f"the server cannot be asked: {error!r}")
            self._note(unasked)
            return unasked
        self._take(confirmed)
        return None

    def _note(self, failure: LockdError) -> None:
        """Warns once of each kind of failure in a row."""
        if type(failure) is not type(self._hold.last_error):
            log.warning("%s was not renewed: %s", self._hold.wanted, failure)
        self._hold.last_error = failure

    def _doubt(self, failure: LockdError) -> None:
        """After a try that did not renew: a server may have released it with its connection."""
        is_connected = any(not link.is_closed for link in (self._link, *self._former))
        if is_connected or self._hold.wanted.outlives_link:
            return
        is_by_all = isinstance(failure, Refused) or self._search.is_hopeless
        if is_definite(failure) and is_by_all:
            raise self._hold.refused(failure)
        self._hold.certainty.suspect()

    def _take(self, confirmed: _Confirmation) -> None:
        until = confirmed.asked_at + confirmed.remaining
        if not self._hold.certainty.extend(now(), until):
            self._raise_if_over()
        self._renew_at = due(confirmed.asked_at, confirmed.remaining)
        self._pause = 0.0
        self._hold.last_error = None
        self._search.found(self._hold.cluster.index_of(confirmed.link.endpoint))
        if confirmed.link is not self._link:
            self._former = [link for link in (*self._former, self._link) if not link.is_closed]
            self._link = confirmed.link
            self._listen_at(self._link)

    async def _visit(self, member: int) -> _Confirmation:
        cluster = self._hold.cluster
        left = self._hold.certainty.until - now()
        parts = 1 if cluster.is_alone else len(cluster.members) + 1
        limit = min(cluster.options.connect_timeout, self._patience(), left / parts)
        link = await Link.open(cluster.members[member], now() + limit)
        try:
            patience = NEVER if cluster.is_alone else now() + self._patience()
            return await self._ask(link, patience)
        except BaseException:
            link.abort()
            raise

    async def _ask(self, link: Link, until: float = NEVER) -> _Confirmation:
        # The lease is named, since there are servers that forget what was granted.
        lease = self._hold.grant.lease
        lines = self._hold.wanted.renew(self._hold.grant.token, lease)
        link.give_up_unacknowledged_after(self._patience())
        reply = await link.ask(lines, until, stays_open=True)
        remaining = self._hold.wanted.read_renewal(reply.line, lease)
        return _Confirmation(link, reply.sent_at, remaining)

    def _discard(self, task: asyncio.Task[_Confirmation]) -> None:
        """Of two that were asked, the one whose answer nobody needs any more."""
        if not task.done():
            task.cancel()
            return
        confirmed = None if task.cancelled() or task.exception() else task.result()
        if confirmed is not None and confirmed.link is not self._link:
            confirmed.link.abort()

    def _leave_former(self) -> None:
        for link in self._former:
            link.close()
        self._former.clear()

    def _listen_at(self, link: Link) -> None:
        link.on_loss = self._take_loss
        for token, cause in link.losses.items():
            self._take_loss(token, cause)

    def _take_loss(self, token: str, cause: str) -> None:
        if token == self._hold.grant.token and not self._told.done():
            loss = self._hold.lost(f"the server says that it was {cause}", cause)
            if cause == "expired" and self._hold.is_held_for_max(now()):
                loss = self._hold.lost("it was not renewed for longer than max_hold", "max_hold")
            self._told.set_result(loss)
            self._hold.lose(loss)

    def _raise_if_over(self) -> None:
        loss = self._hold.why_over()
        if loss is not None:
            raise loss

    def _patience(self) -> float:
        """For what must not take most of the lease."""
        return max(self._hold.grant.lease / 4, 1.0)
