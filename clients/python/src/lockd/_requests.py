"""Requests as they are on the wire: three lines, in which no server finds a fault."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod

from ._replies import (
    Conflict,
    Grant,
    answer_of,
    check,
    conflict_of,
    grant_of,
    objects_of,
    remaining_of,
)
from .errors import InvalidRequest

__all__ = [
    "BARRIER",
    "PING",
    "STATS",
    "Wanted",
    "Wish",
    "auth_lines",
    "check_key",
    "check_lease",
    "check_share",
    "client_lines",
    "listen_lines",
    "publish_lines",
]

_LINE_SIZE_MAX = 256
_LONG_LINE_SIZE_MAX = 65_536
_SECONDS_MAX = 9_223_372_036
_LIMIT_MAX = 2_147_483_647
_LEASE_BESIDE_PERMITS = 33  # as a server's own by default: on the wire permits stand behind a lease

PING = b"ping\n_\n\n"
STATS = b"stats\n_\n\n"
BARRIER = b"barrier\n_\n\n"


class Wish(ABC):
    """What to ask for, how, and what the answers mean. Constant."""

    is_plain = False
    """Whether every server of the protocol understands it, dflockd's own too."""
    outlives_link = False
    """Whether it is held by a name, which the end of a connection does not release."""

    def __init__(self, keys: tuple[str, ...], lease: int | None) -> None:
        self.keys = keys
        self.lease = None if lease is None else int(lease)

    @property
    def key(self) -> str:
        return self.keys[0]

    @abstractmethod
    def wait_to_name(self, wait: float) -> float:
        """The seconds to name on the wire for a wait: never less."""

    @abstractmethod
    def acquire(self, wait: float, secret: str | None = None) -> bytes:
        """``secret``: for servers that know ``as=``; asking twice with one is asking once."""

    @abstractmethod
    def renew(self, token: str, lease: int) -> bytes: ...

    @abstractmethod
    def release(self, token: str) -> bytes: ...

    @abstractmethod
    def read_grant(self, line: str, sent_at: float) -> Grant | None:
        """The grant; nothing when others hold it."""

    @abstractmethod
    def read_renewal(self, line: str, lease: int) -> int:
        """For how many seconds it was renewed."""

    @abstractmethod
    def read_release(self, line: str) -> None:
        """Raises what the answer stands for, when it is no release."""

    def ask_conflict(self) -> bytes | None:
        """The question who is in the way; nothing when the refusal has told it."""
        return None

    @abstractmethod
    def read_conflict(self, line: str) -> Conflict:
        """Of the answer to that question, or of the refusal. Raises what is no answer."""


class Wanted(Wish):
    """A lock, or permits of a semaphore when a limit is given."""

    def __init__(
        self,
        key: str,
        lease: int | None = None,
        limit: int | None = None,
        *,
        shared: bool = False,
        permits: int = 1,
    ) -> None:
        check_key(key)
        check_lease(lease)
        check_share(limit, shared, permits)
        if permits > 1 and lease is None:
            lease = _LEASE_BESIDE_PERMITS
        super().__init__((key,), lease)
        self.limit = None if limit is None else int(limit)
        self._mode = "shared" if shared else None
        self._permits = int(permits) if permits > 1 else None
        self.is_plain = self._mode is None and self._permits is None

    def __str__(self) -> str:
        return f"lock {self.key!r}" if self.limit is None else f"semaphore {self.key!r}"

    def wait_to_name(self, wait: float) -> int:
        return _SECONDS_MAX if wait >= _SECONDS_MAX else math.ceil(wait)

    def acquire(self, wait: float, secret: str | None = None) -> bytes:
        return self._lines("l", int(wait), *self._share(), _as(secret))

    def enqueue(self, secret: str | None = None) -> bytes:
        return self._lines("e", *self._share(), _as(secret))

    def await_turn(self, wait: float) -> bytes:
        return self._lines("w", int(wait))

    def renew(self, token: str, lease: int) -> bytes:
        return self._lines("n", token, lease)

    def release(self, token: str) -> bytes:
        return self._lines("r", token)

    def read_grant(self, line: str, sent_at: float) -> Grant | None:
        return grant_of(line, sent_at, self.lease)

    def read_renewal(self, line: str, lease: int) -> int:
        return remaining_of(line, lease)

    def read_release(self, line: str) -> None:
        check(line)

    def ask_conflict(self) -> bytes:
        query = json.dumps({"key": self.key}, ensure_ascii=False, separators=(",", ":"))
        return f"api\nGET /v1/locks\n{query}\n".encode()

    def read_conflict(self, line: str) -> Conflict:
        """A key may be that of a lock, and of a semaphore."""
        _, said = answer_of(line)
        is_semaphore = self.limit is not None
        return conflict_of(
            {**hold, "waiters": lock.get("waiters")}
            for lock in objects_of(said.get("locks"))
            if (lock.get("kind") == "semaphore") == is_semaphore
            for hold in objects_of(lock.get("holds"))
        )

    def _share(self) -> tuple[int | str | None, ...]:
        """What of the key, and for how long."""
        return self.limit, self.lease, self._permits, self._mode

    def _lines(self, command: str, *words: int | str | None) -> bytes:
        prefix = "" if self.limit is None else "s"
        argument = " ".join(str(word) for word in words if word is not None)
        return f"{prefix}{command}\n{self.key}\n{argument}\n".encode()


def auth_lines(auth_token: str) -> bytes:
    """It is trimmed, as the server does with it."""
    encoded = auth_token.strip().encode()
    if not encoded or len(encoded) > _LONG_LINE_SIZE_MAX or b"\n" in encoded:
        raise InvalidRequest("the auth token must be one line of at most 65536 bytes")
    return b"auth\n_\n" + encoded + b"\n"


def client_lines(name: str, note: str) -> bytes:
    _check_name(name, "a name")
    if note:
        _check_name(note, "a note")
    return f"client\n{name}\n{note}\n".encode()


def listen_lines(pattern: str, group: str | None) -> bytes:
    _check_name(pattern, "a pattern")
    tokens = pattern.split(".")
    for place, token in enumerate(tokens, 1):
        is_whole = token in ("*", ">") or not any(wild in token for wild in "*>")
        if not is_whole or (token == ">" and place < len(tokens)):
            raise InvalidRequest(
                f"in a pattern * and > are whole tokens, and > is the last: not {pattern!r}"
            )
    if group is not None:
        _check_name(group, "a group")
        if group != group.strip(" \t"):
            raise InvalidRequest("a group has no blanks around it")
    return f"listen\n{pattern}\n{group or ''}\n".encode()


def publish_lines(channel: str, payload: str | bytes) -> bytes:
    _check_name(channel, "a channel")
    if any(wild in token for token in channel.split(".") for wild in "*>") or " " in channel:
        raise InvalidRequest(f"a channel has no *, > or blanks: not {channel!r}")
    encoded = payload.encode() if isinstance(payload, str) else payload
    size_max = _LONG_LINE_SIZE_MAX - 5 - len(channel.encode())
    if not encoded.strip() or b"\n" in encoded or len(encoded) > size_max:
        raise InvalidRequest(f"a payload is one line, not blank, of at most {size_max} bytes")
    return f"signal\n{channel}\n".encode() + encoded + b"\n"


def check_key(key: str) -> None:
    _check_name(key, "a key")


def check_lease(lease: int | None) -> None:
    if lease is not None and not _is_whole(lease, 1, _SECONDS_MAX):
        raise InvalidRequest(f"a lease is a whole number of seconds from 1, not {lease!r}")


def check_share(limit: int | None, shared: bool, permits: int) -> None:
    """That so much can be wanted of a key."""
    if limit is not None and not _is_whole(limit, 1, _LIMIT_MAX):
        raise InvalidRequest(f"a limit is a whole number from 1 to {_LIMIT_MAX}, not {limit!r}")
    if shared and limit is not None:
        raise InvalidRequest("a semaphore is shared by its permits: give a limit or shared")
    if limit is None and permits != 1:
        raise InvalidRequest("permits are a semaphore's: give its limit, too")
    if limit is not None and not _is_whole(permits, 1, int(limit)):
        raise InvalidRequest(f"permits are a whole number from 1 to the limit, not {permits!r}")


def _check_name(name: str, what: str) -> None:
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        size = 0
    if not 1 <= size <= _LINE_SIZE_MAX or any(c < " " or c == "\x7f" for c in name):
        raise InvalidRequest(
            f"{what} is 1 to {_LINE_SIZE_MAX} bytes of UTF-8 without control characters"
        )


def _is_whole(number: float, least: int, most: int) -> bool:
    return least <= number <= most and number == int(number)


def _as(secret: str | None) -> str | None:
    return None if secret is None else f"as={secret}"
