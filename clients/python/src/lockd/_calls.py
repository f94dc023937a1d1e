"""Calls that find the server that leads, and go on through servers that are down."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Callable, TypeVar

from ._clock import now, wait_until
from ._cluster import Cluster, LeaderSearch, moves_on
from ._link import Link, Reply
from ._replies import check
from ._requests import BARRIER
from .errors import LockdError

__all__ = ["ask_by_token", "at_leader", "log"]

log = logging.getLogger("lockd")
_T = TypeVar("_T")


async def at_leader(cluster: Cluster, deadline: float, ask: Callable[[Link], Awaitable[_T]]) -> _T:
    """What ``ask`` returns of a connection with whoever leads, which is then its to close.

    Whoever cannot be reached, or stops to lead, is asked again, or the next one is, until the
    deadline. The first try is made in any case, and in a cluster an election is waited for.
    """
    search = LeaderSearch(cluster)
    began = now()
    if not cluster.is_alone:
        deadline = max(deadline, began + cluster.options.connect_timeout)
    failures = 0
    while True:
        await wait_until(min(search.not_before, deadline))
        try:
            # What is left of a wait bounds a second try, not the first.
            link = await _open(search, max(deadline, now() + 1) if failures else None)
            try:
                return await ask(link)
            except BaseException:
                link.abort()
                raise
        except LockdError as failure:
            if not moves_on(failure):
                raise
            search.move_on(failure, now())
            if search.is_hopeless or now() >= deadline:
                raise search.verdict() from failure.__cause__
            if failures == 0:
                log.warning("%s; trying again", failure)
            failures += 1


async def ask_by_token(
    cluster: Cluster,
    link: Link | None,
    lines: bytes,
    until: float,
    read: Callable[[Reply], _T],
) -> _T:
    """What the answer to a renewal or a release means, which is asked on this connection or, when
    it ends, on another.

    The connection stays open when the caller is cancelled.
    """
    if link is not None and not link.is_closed:
        # Of a cluster another may lead by now: not all the time is for this one.
        left = until - now()
        share = left if cluster.is_alone else left / 2
        try:
            return read(await link.ask(lines, now() + share, stays_open=True))
        except LockdError as failure:
            if not moves_on(failure) or now() >= until:
                raise
    search = LeaderSearch(cluster)
    while True:
        await wait_until(min(search.not_before, until))
        visit: Link | None = None
        try:
            visit = await Link.open(cluster.members[search.here], _attempt_until(cluster, until))
            reply = await visit.ask(lines, until)
            answer = read(reply)
            cluster.leader = search.here
            return answer
        except LockdError as failure:
            if not moves_on(failure):
                raise
            search.move_on(failure, now())
            if search.is_hopeless or max(now(), search.not_before) >= until:
                raise search.verdict() from failure.__cause__
        finally:
            if visit is not None:
                visit.close()


async def _open(search: LeaderSearch, until: float | None) -> Link:
    cluster = search.cluster
    attempt_until = _attempt_until(cluster, until)
    link = await Link.open(cluster.members[search.here], attempt_until)
    try:
        if not cluster.is_alone:
            check((await link.ask(BARRIER, attempt_until)).line)
            cluster.leader = search.here
    except BaseException:
        link.abort()
        raise
    return link


def _attempt_until(cluster: Cluster, until: float | None) -> float:
    """What one server may take, so that there is time for all, and for a second look at one."""
    parts = 1 if cluster.is_alone else len(cluster.members) + 1
    limit = now() + cluster.options.connect_timeout / parts
    return limit if until is None else min(limit, until)
