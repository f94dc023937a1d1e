"""What a call raises: each type says why, and each message says it to people.

``LockdError`` is the base of all. The two that most programs handle are ``NotAcquired``, when the
wait is over, and ``LockLost``, when a lock is held no more. ``ConnectionFailed`` is the base of
those that another try may cure.
"""

from __future__ import annotations

__all__ = [
    "AlreadyEnqueued",
    "Cancelled",
    "ConnectionFailed",
    "Denied",
    "Disconnected",
    "Draining",
    "Garbled",
    "InvalidRequest",
    "LeaseExpired",
    "LimitMismatch",
    "LockLost",
    "LockSuspect",
    "LockdError",
    "ModeMismatch",
    "NoReply",
    "NotAcquired",
    "NotEnqueued",
    "NotLeader",
    "PermitsMismatch",
    "Refused",
    "StorageFull",
    "TooManyHolds",
    "TooManyKeys",
    "TooManyWaiters",
    "Unauthorized",
    "Unreachable",
    "Unsupported",
    "Untrusted",
]


class LockdError(Exception):
    """The base of everything that this package raises."""


class InvalidRequest(LockdError, ValueError):
    """The request can be sent to no server, and was not."""


class Unsupported(LockdError):
    """The server does not know what was asked for, and was not asked."""


class NotAcquired(LockdError, TimeoutError):
    """The wait is over, and somebody else has the lock. No place in the queue is left.

    ``holder``, ``client`` and ``waiters`` are ``None`` unless the server told them. It is asked
    when it has ended the wait, for a second at most. Of one key it counts whole seconds: where the
    wait, or what is left of it once connected, is no such number, this client leaves, and nobody is
    asked.
    """

    def __init__(
        self,
        message: str,
        *,
        key: str = "",
        holder: str | None = None,
        client: str | None = None,
        waiters: int | None = None,
        queued_again: bool = False,
    ) -> None:
        super().__init__(message)
        self.key = key
        self.holder = holder
        """Who holds it: ``tcp:17`` of a connection, or the name by which it is held."""
        self.client = client
        """The name that the holder gave itself."""
        self.waiters = waiters
        """How many others wait for it."""
        self.queued_again = queued_again
        """Whether the place in the queue was lost, and asked for again, meanwhile."""


class LockLost(LockdError):
    """The lock is held no more.

    ``cause`` is one of: ``expired`` and ``revoked``, as the server's ``lost`` line says;
    ``refused``, when the server refused to renew it or to release it; ``unauthorized``, when the
    server did not let this client in again, or denied it the right to renew; ``unsure``, when its
    lease ran out by this client's clock without a confirmed renewal; ``max_hold``; ``released``, by
    its own owner. ``__cause__`` is the error of the last renewal that failed, if one did.
    """

    def __init__(self, message: str, *, key: str = "", cause: str = "unsure") -> None:
        super().__init__(message)
        self.key = key
        self.cause = cause


class LockSuspect(LockdError):
    """The connection of the lock has ended, and no new one has renewed it yet.

    The server may have released the lock with the connection, so another client may hold it. The
    client tries to renew it until its lease is over: then it is held again, or lost. ``__cause__``
    is why the last try failed.
    """

    def __init__(self, message: str, *, key: str = "") -> None:
        super().__init__(message)
        self.key = key


class Cancelled(LockdError):
    """The caller gave up, by a ``Stop`` or by closing the client."""


class Refused(LockdError):
    """The server answered, and the answer is no. ``reply`` is its word for it."""

    def __init__(self, message: str, *, reply: str = "error") -> None:
        super().__init__(message)
        self.reply = reply


class TooManyKeys(Refused):
    """The server has as many keys as it may (``--max-locks``)."""


class TooManyWaiters(Refused):
    """The key has as many waiters as it may (``--max-waiters``)."""


class TooManyHolds(Refused):
    """The server, or this client, has as many holds and places as it may."""


class LimitMismatch(Refused):
    """The semaphore has another limit."""


class ModeMismatch(Refused):
    """It was asked for before, in the other mode. There is no upgrade: release, and ask again."""


class PermitsMismatch(Refused):
    """It was asked for before, with another number of permits."""


class StorageFull(Refused):
    """The server's disk is full."""


class AlreadyEnqueued(Refused):
    """This connection has a place in that queue."""


class NotEnqueued(Refused):
    """This connection has no place in that queue."""


class LeaseExpired(Refused):
    """The turn came, and its lease ran out before anyone took it."""


class Denied(Refused):
    """The auth token does not permit this."""


class Unauthorized(LockdError):
    """The server did not let this client in: its auth token or its certificate."""


class Untrusted(LockdError):
    """The server's certificate could not be verified."""


class Garbled(LockdError):
    """What came from the server is no answer."""


class ConnectionFailed(LockdError, ConnectionError):
    """There was no answer, or none from a server that grants. It may pass by itself."""


class Unreachable(ConnectionFailed):
    """No connection could be made: the name, the network, TLS, or not in time."""


class Disconnected(ConnectionFailed):
    """The connection ended. A request that had been sent may have been executed."""


class NoReply(ConnectionFailed):
    """The server did not answer in time. The request may have been executed."""


class Draining(ConnectionFailed):
    """The server is stopping, and grants no more."""


class NotLeader(ConnectionFailed):
    """Another server of the cluster leads: ``leader`` is its address, where it is known."""

    def __init__(self, message: str, *, leader: str | None = None) -> None:
        super().__init__(message)
        self.leader = leader
