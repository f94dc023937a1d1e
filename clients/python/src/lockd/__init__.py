"""Locks and semaphores of a lockd or dflockd server.

    import lockd

    locks = lockd.Client("locks.example.com")
    with locks.lock("my-job", wait=10, lease=30) as held:   # NotAcquired when the wait is over
        write(row, fence=held.fence)                        # refuses a smaller fence than it saw
        held.check()                                        # LockLost when it is not certain

``lockd.aio`` is the same for asyncio. A lock renews itself; when that fails its owner is told.
"""

from . import aio, errors
from ._background import Stop
from ._cluster import shard_of
from ._options import TLS
from ._replies import Signal
from ._sets import SetItem
from .client import Client, HeldLock, Place, Subscription
from .errors import *  # noqa: F403
from .errors import __all__ as _errors

__version__ = "0.1.0"

__all__ = [
    "TLS",
    "Client",
    "HeldLock",
    "Place",
    "SetItem",
    "Signal",
    "Stop",
    "Subscription",
    "aio",
    "errors",
    "shard_of",
    *_errors,
]
