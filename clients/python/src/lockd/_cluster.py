"""Where servers are, which of them has a key, and the way to the one that leads.

``servers`` are clusters of one, which share the keys; a ``cluster`` is one of several. Nothing here
waits or asks: those who do are in ``_calls`` and ``_renewal``.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

from ._options import Options
from ._replies import shown
from .errors import (
    ConnectionFailed,
    Draining,
    Garbled,
    InvalidRequest,
    LockdError,
    NotLeader,
    Unauthorized,
    Untrusted,
)

__all__ = ["Address", "Cluster", "Endpoint", "LeaderSearch", "moves_on", "shard_of"]

DEFAULT_PORT = 6388
_CLUSTER_SIZE_MAX = 16


class Address(NamedTuple):
    """A name, or an IP address without brackets, and a port."""

    host: str
    port: int = DEFAULT_PORT

    @classmethod
    def parse(cls, text: str) -> Address:
        """``host``, ``host:port``, ``[::1]:6388``, ``::1``. Raises ``InvalidRequest``."""
        host, port = text, ""
        if text.startswith("["):
            host, bracket, behind = text[1:].partition("]")
            port = behind[1:]
            is_well_formed = bool(bracket) and (not behind or behind.startswith(":"))
            is_well_formed = is_well_formed and bool(port) == bool(behind)
        elif text.count(":") == 1:
            host, _, port = text.partition(":")
            is_well_formed = bool(port)
        else:
            is_well_formed = True
        is_well_formed = is_well_formed and bool(host) and not any(c.isspace() for c in text)
        if port:
            is_well_formed = is_well_formed and port.isascii() and port.isdigit()
            is_well_formed = is_well_formed and 0 < int(port) < 65536
        if not is_well_formed:
            raise InvalidRequest(f"an address is host or host:port, not {shown(text)}")
        return cls(host, int(port) if port else DEFAULT_PORT)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def shard_of(key: str, servers: int) -> int:
    """The position of the server that has the key, in a list of that many.

    CRC-32 of the key, modulo their number, as all clients do.
    """
    return zlib.crc32(key.encode()) % servers


class Endpoint:
    """One server, and what was learned of it."""

    def __init__(self, address: Address, options: Options) -> None:
        self.address = address
        self.options = options
        self.knows_client = True
        """Whether it knows ``client``: believed until it says otherwise."""
        self.last_peer: str | None = None
        """What was behind its name, for when no name server answers."""


class Cluster:
    """The servers of one cluster, of which one leads; a server that stands alone is one of one."""

    def __init__(self, addresses: Sequence[Address], options: Options) -> None:
        if not 1 <= len(addresses) <= _CLUSTER_SIZE_MAX:
            raise InvalidRequest(f"a cluster has 1 to {_CLUSTER_SIZE_MAX} addresses")
        if len(set(addresses)) != len(addresses):
            raise InvalidRequest("an address of the cluster is given twice")
        self.options = options
        self.members = [Endpoint(address, options) for address in addresses]
        self.leader = 0
        """Who was last known to lead; at first the first."""

    @property
    def is_alone(self) -> bool:
        return len(self.members) == 1

    def find(self, text: str) -> int | None:
        """The member that was given by this address."""
        try:
            address = Address.parse(text)
        except InvalidRequest:
            return None
        for index, member in enumerate(self.members):
            if member.address == address:
                return index
        return None

    def index_of(self, endpoint: Endpoint) -> int:
        return self.members.index(endpoint)

    def __str__(self) -> str:
        return ", ".join(str(member.address) for member in self.members)


def moves_on(failure: LockdError) -> bool:
    """Whether this is no answer, or that of a server that does not lead: another may give one."""
    return isinstance(failure, (ConnectionFailed, Untrusted, Unauthorized, Garbled))


class LeaderSearch:
    """Goes from server to server of a cluster until it has met the one that leads.

    From a server that did not answer, or does not lead, it goes to whom that one named as the
    leader, if that address was given; else to whom somebody else has found meanwhile; else to the
    next of the list: to each once a round. A new round begins at once, then after a pause, which
    grows. So whoever names a leader that is gone, or two who name each other, keep nobody from the
    third. An address that was not given is never gone to; the verdict tells of it.
    """

    def __init__(self, cluster: Cluster, begin: int | None = None) -> None:
        self.cluster = cluster
        self.here = cluster.leader if begin is None else begin
        # A server that stands alone is waited for; of a cluster's another will soon lead.
        self._pause_min, self._pause_max = (0.05, 1.0) if cluster.is_alone else (0.01, 0.2)
        self._start()

    def _start(self) -> None:
        self.not_before = 0.0
        """When to ask who is here."""
        self.is_hopeless = False
        """Whether in the last round everybody failed in a way that waiting does not cure."""
        self._tried: list[bool] = [False] * len(self.cluster.members)
        self._pause = 0.0
        self._has_hope = False
        self._failure: LockdError | None = None
        self._stranger = ""

    def move_on(self, why: LockdError, now: float) -> None:
        self._tried[self.here] = True
        self._has_hope = self._has_hope or isinstance(why, ConnectionFailed)
        if self._failure is None or _weight(why) >= _weight(self._failure):
            self._failure = why
        if all(self._tried):
            self._begin_round(now)
        self.here = self._choose(why)

    def found(self, leader: int) -> None:
        """It is this one that leads: the next search begins with it, and this one anew."""
        self.cluster.leader = leader
        self.here = leader
        self._start()

    def verdict(self) -> LockdError:
        """Why nobody was found: the most telling failure."""
        failure = self._failure
        assert failure is not None, "move_on() comes first"
        if self.cluster.is_alone:
            return failure
        detail = f"no leader was found among {self.cluster}: {failure}"
        if self._stranger:
            detail += f"; {shown(self._stranger)} was named, and was not given"
        if isinstance(failure, NotLeader):
            return NotLeader(detail, leader=failure.leader)
        return type(failure)(detail)

    def _begin_round(self, now: float) -> None:
        self._tried = [False] * len(self._tried)
        self.is_hopeless, self._has_hope = not self._has_hope, False
        self.not_before = now + self._pause
        self._pause = min(max(2 * self._pause, self._pause_min), self._pause_max)

    def _choose(self, why: LockdError) -> int:
        if isinstance(why, NotLeader) and why.leader:
            named = self.cluster.find(why.leader)
            if named is None:
                self._stranger = why.leader
            elif not self._tried[named]:
                return named
        known = self.cluster.leader
        if known != self.here and not self._tried[known]:
            return known
        count = len(self._tried)
        following = ((self.here + step) % count for step in range(1, count + 1))
        return next(index for index in following if not self._tried[index])


def _weight(failure: LockdError) -> int:
    """How much it tells: that nobody could be asked, that nobody leads, or what is to be fixed."""
    if not isinstance(failure, ConnectionFailed):
        return 2
    return 1 if isinstance(failure, (NotLeader, Draining)) else 0
