"""One grant, shared by its owner, who may be on any thread, and by the renewal that keeps it."""

from __future__ import annotations

import os
import weakref
from typing import Callable

from ._certainty import Certainty
from ._clock import now
from ._cluster import Cluster
from ._replies import Grant, fence_of
from ._requests import Wish
from .errors import Denied, LockdError, LockLost, LockSuspect, Unauthorized

__all__ = ["Hold", "HoldView", "is_definite"]


class Hold:
    """Its certainty may be asked by any thread; all else belongs to the thread of its client."""

    def __init__(
        self,
        cluster: Cluster,
        wanted: Wish,
        grant: Grant,
        *,
        queued_again: bool = False,
        max_hold: float | None = None,
    ) -> None:
        self.cluster = cluster
        self.wanted = wanted
        self.grant = grant
        self.queued_again = queued_again
        self.held_until_max = None if max_hold is None else now() + max_hold
        self.certainty = Certainty(grant.sent_at + grant.lease)
        self.last_error: LockdError | None = None
        """Why it was not renewed when that was last tried; nothing once a renewal is confirmed."""
        self.loss: LockLost | None = None
        self.is_released = False
        self.on_loss: list[Callable[[LockLost], object]] = []
        _holds.add(self)

    def lost(self, why: str, cause: str) -> LockLost:
        loss = LockLost(f"{self.wanted} is held no more: {why}", key=self.wanted.key, cause=cause)
        loss.__cause__ = self.last_error
        return loss

    def refused(self, refusal: LockdError) -> LockLost:
        return self.lost(f"it cannot be renewed any more: {refusal}", "unauthorized")

    def lose(self, loss: LockLost) -> None:
        """Ends it, and tells those who asked to be told. Once."""
        if self.loss is not None or self.is_released:
            return
        self.loss = loss  # first: whoever finds it over finds out why
        self.certainty.end(now())
        for tell in self.on_loss:
            tell(loss)

    def is_held_for_max(self, time: float) -> bool:
        return self.held_until_max is not None and time >= self.held_until_max

    def why_over(self) -> LockLost | None:
        """Nothing while it is held, by the clock of this moment; a new exception each time."""
        time = now()
        if self.certainty.lasts(time):
            return None
        if self.loss is not None:
            again = LockLost(str(self.loss), key=self.loss.key, cause=self.loss.cause)
            again.__cause__ = self.loss.__cause__
            return again
        if self.is_released:
            return self.lost("its owner released it", "released")
        if self.is_held_for_max(time):
            return self.lost("it was not renewed for longer than max_hold", "max_hold")
        if self.last_error is not None and is_definite(self.last_error):
            return self.refused(self.last_error)
        return self.lost("its lease ran out without a confirmed renewal", "unsure")

    def why_suspect(self) -> LockSuspect | None:
        if not self.certainty.is_suspect(now()):
            return None
        why = f"{self.wanted} is suspect, since its connection has ended: {self.last_error}"
        suspect = LockSuspect(why, key=self.wanted.key)
        suspect.__cause__ = self.last_error
        return suspect


def is_definite(failure: LockdError) -> bool:
    """Whether the server refuses this client, which another try does not cure."""
    return isinstance(failure, (Denied, Unauthorized))


_holds: weakref.WeakSet[Hold] = weakref.WeakSet()


def _end_in_child() -> None:
    for hold in _holds:
        hold.loss = hold.loss or hold.lost("the process that forked has it", "unsure")
        hold.certainty.end_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_end_in_child)


class HoldView:
    """What an owner may ask of a lock that it holds. For any thread."""

    def __init__(self, hold: Hold) -> None:
        self._hold = hold

    @property
    def key(self) -> str:
        """Of several, the first."""
        return self._hold.wanted.key

    @property
    def keys(self) -> tuple[str, ...]:
        return self._hold.wanted.keys

    @property
    def token(self) -> str:
        """Names the grant to the server. Whoever knows it may release it."""
        return self._hold.grant.token

    @property
    def fence(self) -> int:
        """The fencing token: it rises with every grant of the key. Several keys have one.

        Hand it to whatever the lock protects, and let that refuse one smaller than it has seen.
        """
        return fence_of(self._hold.grant.token)

    @property
    def lease(self) -> int:
        """In seconds, as it was granted."""
        return self._hold.grant.lease

    @property
    def queued_again(self) -> bool:
        """Whether the place in the queue was lost while waiting, and asked for again."""
        return self._hold.queued_again

    @property
    def is_held(self) -> bool:
        """Whether it is certain at this moment, and so ``state`` is ``held``."""
        return self.state == "held"

    @property
    def state(self) -> str:
        """``held``; ``suspect``, while its connection is gone and no new one has renewed it; or
        ``lost``, which is final, and also after a release."""
        certainty, time = self._hold.certainty, now()
        if certainty.is_suspect(time):
            return "suspect"
        return "held" if certainty.lasts(time) else "lost"

    @property
    def last_error(self) -> LockdError | None:
        """Why the last renewal failed; nothing once a renewal is confirmed."""
        return self._hold.last_error

    @property
    def remaining(self) -> float:
        """For how many seconds its lease runs if no renewal is confirmed any more."""
        certainty = self._hold.certainty
        time = now()
        return max(certainty.until - time, 0.0) if certainty.lasts(time) else 0.0

    @property
    def loss(self) -> LockLost | None:
        """Why it is held no more; nothing while it is held or suspect."""
        return self._hold.why_over()

    def check(self) -> None:
        """Raises ``LockLost`` when it is held no more, and ``LockSuspect`` when it may be."""
        why = self._hold.why_over() or self._hold.why_suspect()
        if why is not None:
            raise why

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._hold.wanted}, fence {self.fence}, {self.state}>"
