"""Several at once, held by a name: calls of the HTTP API, over the line command ``api``.

What is so held lives by its lease alone. A connection that ends gives up a place in the queues, and
releases nothing.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Union

from ._replies import (
    Conflict,
    Grant,
    answer_of,
    conflict_of,
    failure_of,
    garbled,
    objects_of,
)
from ._requests import Wish, check_key, check_lease, check_share
from .errors import InvalidRequest, Refused

__all__ = ["Item", "SetItem", "WantedSet"]

_ITEMS_MAX = 64
_NAME_SIZE_MAX = 256
_WAIT_MS_MAX = 9_223_372_036_000
_WITHDRAWAL_MS = 1000  # the lease of what is asked for only to be released
_GONE = ("expired", "stale_token", "not_holder")
_WORDS = {"unauthorized": "error_auth", "not_leader": "error_not_leader -"}


@dataclass(frozen=True)
class SetItem:
    """One of several that are wanted at once: a lock, or permits of a semaphore with this limit."""

    key: str
    shared: bool = False
    limit: int | None = None
    permits: int = 1


Item = Union[str, SetItem]
"""A key is a lock that is held alone."""


class WantedSet(Wish):
    """All of several locks and semaphores, or none of them."""

    outlives_link = True

    def __init__(self, items: Iterable[Item], lease: int | None, client: str) -> None:
        """``client``: the name by which operators know whose it is."""
        given = [_checked(item) for item in ((items,) if isinstance(items, str) else items)]
        names = {(item.key, item.limit is None) for item in given}  # a lock and a semaphore differ
        if not 1 <= len(given) <= _ITEMS_MAX or len(names) < len(given):
            raise InvalidRequest(f"a set is 1 to {_ITEMS_MAX} different locks and semaphores")
        check_lease(lease)
        super().__init__(tuple(item.key for item in given), lease)
        is_of_keys = all(item == SetItem(item.key) for item in given)
        self._asked = {"keys": self.keys} if is_of_keys else {"items": [*map(_members, given)]}
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

    def take_back(self) -> bytes:
        """Asks for a grant that nobody may have heard of, in order to release it."""
        return self._call("acquire", ttl_ms=_WITHDRAWAL_MS)

    def renew(self, token: str, lease: int) -> bytes:
        return self._call("renew", token=int(token, 16), ttl_ms=lease * 1000)

    def release(self, token: str) -> bytes:
        return self._call("release", token=int(token, 16))

    def read_grant(self, line: str, sent_at: float) -> Grant | None:
        status, said = answer_of(line)
        if status == 409 and said.get("error") in ("held", "wait_timeout"):
            return None
        _check(status, said)
        lease = _whole(said, "ttl_ms", line) // 1000
        if lease < 1:
            raise garbled(line)
        token = f"{_whole(said, 'token', line):016x}"
        return Grant(token, lease if self.lease is None else min(lease, self.lease), sent_at)

    def read_renewal(self, line: str, lease: int) -> int:
        status, said = answer_of(line)
        _check(status, said)
        return min(max(_whole(said, "ttl_ms", line) // 1000, 1), lease)

    def read_release(self, line: str) -> None:
        status, said = answer_of(line)
        _check(status, said)
        if said.get("not_held"):
            first = said["not_held"][0]
            raise _gone(first.get("key") if isinstance(first, dict) else first)

    def read_conflict(self, line: str) -> Conflict:
        _, said = answer_of(line)
        return conflict_of(
            {**held_by, "waiters": key.get("waiters")}
            for key in objects_of(said.get("conflicts"))
            for held_by in objects_of([key.get("held_by")])
        )

    def _call(self, call: str, **members: int | None) -> bytes:
        given = {name: value for name, value in members.items() if value is not None}
        asked = {**self._asked, "holder": self._holder, **given}
        return f"api\nPOST /v1/{call}\n{json.dumps(asked, ensure_ascii=False)}\n".encode()


def _checked(item: Item) -> SetItem:
    given = SetItem(item) if isinstance(item, str) else item
    check_key(given.key)
    check_share(given.limit, given.shared, given.permits)
    return given


def _members(item: SetItem) -> dict[str, Any]:
    if item.limit is not None:
        share = {"limit": int(item.limit), "permits": int(item.permits)}
        return {"key": item.key, "kind": "semaphore", **share}
    return {"key": item.key, "mode": "shared"} if item.shared else {"key": item.key}


def _holder_of(client: str) -> str:
    """A name of its own for each set: two of one client exclude each other, too."""
    unique = f"#{secrets.token_hex(8)}"
    room = _NAME_SIZE_MAX - len(unique)
    return client.encode()[:room].decode(errors="ignore") + unique


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
