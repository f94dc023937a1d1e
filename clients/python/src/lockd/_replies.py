"""What the server's lines mean: values, or the errors that they stand for."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Callable, NamedTuple

from . import errors
from .errors import Garbled, LockdError, Refused

__all__ = [
    "Conflict",
    "Grant",
    "Signal",
    "answer_of",
    "check",
    "conflict_of",
    "count_of",
    "failure_of",
    "fence_of",
    "garbled",
    "grant_of",
    "loss_of",
    "objects_of",
    "remaining_of",
    "shown",
    "signal_of",
    "stats_of",
]

_FENCE_DIGITS = 16
_TOKEN_SIZE_MAX = 240  # what fits a request's line, its lease behind it
_SHOWN_MAX = 80
_WHOLE_MAX = 2**63 - 1
_SECONDS_MAX = 9_223_372_036  # what a server can count

_REFUSALS: dict[str, tuple[Callable[..., Refused], str]] = {
    "error": (Refused, "the server refused"),
    "error_max_locks": (errors.TooManyKeys, "the server has as many keys as it may"),
    "error_max_waiters": (errors.TooManyWaiters, "the key has as many waiters as it may"),
    "error_max_holds": (errors.TooManyHolds, "the server, or this client, has its fill of holds"),
    "error_limit_mismatch": (errors.LimitMismatch, "the semaphore has another limit"),
    "error_mode_mismatch": (errors.ModeMismatch, "it was asked for in the other mode before"),
    "error_permits_mismatch": (
        errors.PermitsMismatch,
        "it was asked for with other permits before",
    ),
    "error_storage": (errors.StorageFull, "the server's disk is full"),
    "error_already_enqueued": (errors.AlreadyEnqueued, "there is a place in the queue already"),
    "error_not_enqueued": (errors.NotEnqueued, "there is no place in the queue"),
    "error_lease_expired": (errors.LeaseExpired, "the lease ran out before anyone took it"),
    "error_denied": (errors.Denied, "the auth token does not permit this"),
}


class Grant(NamedTuple):
    """What the server gave: ``sent_at`` is when it was asked, before the lease began."""

    token: str
    lease: int
    sent_at: float


class Conflict(NamedTuple):
    """Who was in the way, and how many wait for it: as far as the server told."""

    holder: str | None = None
    client: str | None = None
    waiters: int | None = None


class Signal(NamedTuple):
    """A signal as it came."""

    channel: str
    payload: bytes

    @property
    def text(self) -> str:
        """The payload as text; what is not UTF-8 is replaced."""
        return self.payload.decode(errors="replace")


def check(reply: str) -> list[str]:
    """The fields behind ``ok``, ``acquired``, ``queued`` or ``timeout``, that word first.

    Raises what any other reply stands for.
    """
    fields = reply.split(" ")
    if fields[0] in ("ok", "acquired", "queued", "timeout"):
        return fields
    raise failure_of(reply)


def grant_of(reply: str, sent_at: float, asked: int | None) -> Grant | None:
    """The grant; nothing for ``queued`` and ``timeout``."""
    fields = check(reply)
    if fields[0] in ("queued", "timeout"):
        return None
    if len(fields) < 3 or not _is_token(fields[1]):
        raise garbled(reply)
    lease = min(_whole(fields[2], reply), _SECONDS_MAX)
    if lease < 1:
        raise garbled(reply)
    return Grant(fields[1], lease if asked is None else min(lease, asked), sent_at)


def remaining_of(reply: str, asked: int) -> int:
    """The seconds of a renewal. A server that rounds down calls a lease of one second 0."""
    fields = check(reply)
    if fields[0] != "ok" or len(fields) < 2:
        raise garbled(reply)
    return min(max(_whole(fields[1], reply), 1), asked)


def count_of(reply: str) -> int:
    fields = check(reply)
    if fields[0] != "ok" or len(fields) < 2:
        raise garbled(reply)
    return _whole(fields[1], reply)


def stats_of(reply: str) -> dict[str, Any]:
    check(reply)
    try:
        stats = json.loads(reply[len("ok ") :])
    except ValueError:
        raise garbled(reply) from None
    if not isinstance(stats, dict):
        raise garbled(reply)
    return stats


def answer_of(reply: str) -> tuple[int, dict[str, Any]]:
    """Status and object of an answer of ``api``. Raises what any other reply stands for."""
    check(reply)
    words = reply.split(" ", 2)
    try:
        status, said = int(words[1]), json.loads(words[2])
    except (IndexError, ValueError, RecursionError):
        raise garbled(reply) from None
    if not isinstance(said, dict):
        raise garbled(reply)
    return status, said


def objects_of(said: object) -> list[dict[str, Any]]:
    """Those of a list; none of what is no list."""
    return [one for one in said if isinstance(one, dict)] if isinstance(said, list) else []


def conflict_of(told: Iterable[dict[str, Any]]) -> Conflict:
    """The first of those that are told to be in the way that has a holder."""
    for one in told:
        holder, client, waiters = (one.get(name) for name in Conflict._fields)
        if isinstance(holder, str) and holder:
            is_count = isinstance(waiters, int) and not isinstance(waiters, bool) and waiters >= 0
            return Conflict(
                holder,
                client if isinstance(client, str) and client else None,
                waiters if is_count else None,
            )
    return Conflict()


def signal_of(line: bytes) -> Signal | None:
    """The signal that a pushed line is, if it is one."""
    if not line.startswith(b"sig "):
        return None
    channel, _, payload = line[len(b"sig ") :].partition(b" ")
    return Signal(channel.decode(errors="replace"), payload)


def loss_of(line: bytes) -> tuple[str, str] | None:
    """Token and cause of a pushed line ``lost <token> <cause> <key>``, if it is one."""
    if not line.startswith(b"lost "):
        return None
    words = line.decode(errors="replace").split(" ", 3)
    return (words[1], words[2]) if len(words) > 2 else (words[1], "expired")


def fence_of(token: str) -> int:
    """The number of the grant: 0 when the token is none of this project's kind."""
    digits = token[:_FENCE_DIGITS]
    is_hex = len(digits) == _FENCE_DIGITS and all(c in "0123456789abcdefABCDEF" for c in digits)
    return int(digits, 16) if is_hex else 0


def shown(text: str) -> str:
    """Text of a stranger, fit to be shown."""
    safe = "".join(c if c.isprintable() else "?" for c in text[:_SHOWN_MAX])
    return f'"{safe}..."' if len(text) > _SHOWN_MAX else f'"{safe}"'


def failure_of(reply: str) -> LockdError:
    """What a reply stands for that is no success."""
    fields = reply.split(" ")
    word = fields[0]
    if word in _REFUSALS:
        kind, message = _REFUSALS[word]
        return kind(message, reply=word)
    if word == "error_not_leader":
        leader = fields[1] if len(fields) > 1 and fields[1] not in ("", "-") else None
        said = f"{shown(leader)} does" if leader else "nobody does"
        return errors.NotLeader(f"the server does not lead; it says that {said}", leader=leader)
    if word == "error_draining":
        return errors.Draining("the server is stopping")
    if word == "error_auth":
        return errors.Unauthorized("the server asks for another auth token")
    if word.startswith("error"):
        return Refused(f"the server says {shown(reply)}", reply=word)
    return garbled(reply)


def _whole(word: str, reply: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= 20 and int(word) <= _WHOLE_MAX):
        raise garbled(reply)
    return int(word)


def _is_token(word: str) -> bool:
    """Whether it can be sent back as it came."""
    return 0 < len(word) <= _TOKEN_SIZE_MAX and all(" " < c < "\x7f" for c in word)


def garbled(reply: str) -> Garbled:
    return Garbled(f"the server's answer makes no sense: {shown(reply)}")
