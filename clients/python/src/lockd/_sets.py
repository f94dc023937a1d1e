"""Several keys at once, held by a name: calls of the HTTP API, over the line command ``api``.

What is so held lives by its lease alone. A connection that ends gives up a place in the queues, and
releases nothing.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Iterable
from typing import Any

from ._replies import Grant, check, failure_of, garbled
from ._requests import Wish, check_key, check_lease
from .errors import InvalidRequest, Refused

__all__ = ["WantedSet"]

_KEYS_MAX = 64
_NAME_SIZE_MAX = 256
_WAIT_MS_MAX = 9_223_372_036_000
_GONE = ("expired", "stale_token", "not_holder")
_WORDS = {"unauthorized": "error_auth", "not_leader": "error_not_leader -"}


class WantedSet(Wish):
    """All of several locks, or none of them."""

    outlives_link = True

    def __init__(self, keys: Iterable[str], lease: int | None, client: str) -> None:
        """``client``: the name by which operators know whose it is."""
        given = (keys,) if isinstance(keys, str) else tuple(keys)
        for key in given:
            check_key(key)
        if not 1 <= len(given) <= _KEYS_MAX or len(set(given)) != len(given):
            raise InvalidRequest(f"a set is 1 to {_KEYS_MAX} different keys")
        check_lease(lease)
        super().__init__(given, lease)
        self._holder = _holder_of(client)

    def __str__(self) -> str:
        others = f" and {len(self.keys) - 1} more" if len(self.keys) > 1 else ""
        return f"set of {self.key!r}{others}"

    def wait_to_name(self, wait: float) -> float:
        return wait if wait == math.inf else math.ceil(wait * 1000) / 1000

    def acquire(self, wait: float, secret: str | None = None) -> bytes:
        """Asking twice is asking once, since the holder is the same."""
        ttl_ms = None if self.lease is None else self.lease * 1000
        wait_ms = round(min(wait * 1000, _WAIT_MS_MAX))
        return self._call("acquire", ttl_ms=ttl_ms, wait_ms=wait_ms or None)

    def renew(self, token: str, lease: int) -> bytes:
        return self._call("renew", token=int(token, 16), ttl_ms=lease * 1000)

    def release(self, token: str) -> bytes:
        return self._call("release", token=int(token, 16))

    def ask_fence(self) -> bytes:
        return _api("GET /v1/fence", {"key": self.key})

    def read_grant(self, line: str, sent_at: float) -> Grant | None:
        status, said = _answer_of(line)
        if status == 409 and said.get("error") in ("held", "wait_timeout"):
            return None
        _check(status, said)
        lease = _whole(said, "ttl_ms", line) // 1000
        if lease < 1:
            raise garbled(line)
        token = f"{_whole(said, 'token', line):016x}"
        return Grant(token, lease if self.lease is None else min(lease, self.lease), sent_at)

    def read_renewal(self, line: str, lease: int) -> int:
        status, said = _answer_of(line)
        _check(status, said)
        return min(max(_whole(said, "ttl_ms", line) // 1000, 1), lease)

    def read_release(self, line: str) -> None:
        status, said = _answer_of(line)
        _check(status, said)
        if said.get("not_held"):
            raise _gone(said["not_held"][0])

    def read_fence(self, line: str) -> str | None:
        """Names the grant that is in force, whosever it is."""
        status, said = _answer_of(line)
        _check(status, said)
        return f"{_whole(said, 'token', line):016x}" if said.get("held") else None

    def _call(self, call: str, **members: int | None) -> bytes:
        given = {name: value for name, value in members.items() if value is not None}
        return _api(f"POST /v1/{call}", {"keys": self.keys, "holder": self._holder, **given})


def _holder_of(client: str) -> str:
    """A name of its own for each set: two of one client exclude each other, too."""
    unique = f"#{secrets.token_hex(8)}"
    room = _NAME_SIZE_MAX - len(unique)
    return client.encode()[:room].decode(errors="ignore") + unique


def _api(call: str, members: dict[str, Any]) -> bytes:
    return f"api\n{call}\n{json.dumps(members, ensure_ascii=False)}\n".encode()


def _answer_of(line: str) -> tuple[int, dict[str, Any]]:
    """Status and object of an answer of ``api``. Raises what any other reply stands for."""
    check(line)
    words = line.split(" ", 2)
    try:
        status, said = int(words[1]), json.loads(words[2])
    except (IndexError, ValueError):
        raise garbled(line) from None
    if not isinstance(said, dict):
        raise garbled(line)
    return status, said


def _check(status: int, said: dict[str, Any]) -> None:
    """Raises what a refusal stands for: mostly the line protocol has a word for the same."""
    if status == 200:
        return
    code = str(said.get("error", status))
    if code in _GONE:
        raise _gone(said.get("key"))
    raise failure_of(f"{_WORDS.get(code, f'error_{code}')} {said.get('detail', '')}")


def _gone(key: object) -> Refused:
    return Refused("it is held no more" if key is None else f"{key!r} is held no more")


def _whole(said: dict[str, Any], member: str, line: str) -> int:
    number = said.get(member)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise garbled(line)
    return number
