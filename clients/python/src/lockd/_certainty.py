"""Until when a hold is certain, and that it is over for good once it is."""

from __future__ import annotations

import threading

__all__ = ["Certainty"]


class Certainty:
    """The end of a hold, as far as this client can know it. For any thread.

    The owner asks, the renewal extends, and the process may be stopped between any two steps of
    either. Whoever first finds that the time has passed ends it, so that no renewal that is
    confirmed late makes anybody believe again: an answer of false is final, for everybody.
    """

    def __init__(self, until: float) -> None:
        self._mutex = threading.Lock()
        self._until = until
        self._is_over = False
        self._is_suspect = False

    @property
    def until(self) -> float:
        """When it ends, or ended."""
        return self._until

    def end_in_child(self) -> None:
        """In the child of a fork, where it is nobody's, and whoever had the mutex is not there."""
        self._mutex = threading.Lock()
        self._is_over = True

    def lasts(self, now: float) -> bool:
        """Whether it lasts. ``now`` must have been read after the call was asked for."""
        with self._mutex:
            return self._lasts(now)

    def is_suspect(self, now: float) -> bool:
        """Whether it lasts, but for a server that may have released the hold already."""
        with self._mutex:
            return self._lasts(now) and self._is_suspect

    def suspect(self) -> None:
        """Makes it suspect until it is extended."""
        with self._mutex:
            self._is_suspect = True

    def extend(self, now: float, until: float) -> bool:
        """Moves its end, to an earlier time too. False when it was over by ``now``."""
        with self._mutex:
            if self._lasts(now):
                self._until = until
                self._is_suspect = False
            return not self._is_over

    def end(self, now: float) -> bool:
        """Ends it now. False when it was over already."""
        with self._mutex:
            lasted = self._lasts(now)
            self._is_over = True
            if lasted:
                self._until = now
            return lasted

    def _lasts(self, now: float) -> bool:
        if now >= self._until:
            self._is_over = True
        return not self._is_over
