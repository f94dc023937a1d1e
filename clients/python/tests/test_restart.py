"""Servers that are stopped, killed and started again, while a client holds and while it waits."""

from __future__ import annotations

import signal
import tempfile
import threading
import time
import unittest

import lockd

from .support import PATIENCE, Server, eventually, now


class Restarts(unittest.TestCase):
    def setUp(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.server = Server("--wal", self.directory.name, "--shutdown-timeout", "1")
        self.addCleanup(self.server.__exit__)
        self.locks = lockd.Client(self.server.address, release_timeout=2)
        self.addCleanup(self.locks.close)

    def wait_in_background(self, wait: float) -> tuple[threading.Thread, list[lockd.HeldLock]]:
        got: list[lockd.HeldLock] = []
        other = lockd.Client(self.server.address)
        self.addCleanup(other.close)
        thread = threading.Thread(target=lambda: got.append(other.acquire("k", wait=wait)))
        thread.start()
        eventually(lambda: self.locks.stats()["locks"][0]["waiters"] == 1, "a waiter")
        return thread, got

    def hold_through(self, end: str) -> None:
        held = self.locks.acquire("k", lease=12)
        getattr(self.server, end)()
        certain_until = now() + held.remaining
        self.server.start()
        eventually(lambda: now() + held.remaining > certain_until + 0.1, "a renewal by its token")
        held.check()
        with self.assertRaises(lockd.NotAcquired):
            self.locks.acquire("k", wait=0)
        held.release()
        self.locks.acquire("k", wait=0).release()

    def test_a_lock_is_held_through_a_stop(self) -> None:
        self.hold_through("stop")

    def test_a_lock_is_held_through_a_kill(self) -> None:
        self.hold_through("kill")

    def wait_through(self, end: str) -> None:
        held = self.locks.acquire("k", lease=30)
        thread, got = self.wait_in_background(60)
        getattr(self.server, end)()
        time.sleep(0.3)
        self.server.start()
        eventually(lambda: self.locks.stats()["locks"][0]["waiters"] == 1, "a waiter, again")
        eventually(lambda: held.is_held, "a renewal on a new connection")
        self.assertFalse(held.queued_again)
        held.release()
        thread.join(PATIENCE)
        self.assertTrue(got[0].queued_again)
        self.assertGreater(got[0].fence, held.fence)
        got[0].release()

    def test_a_wait_goes_on_through_a_stop(self) -> None:
        self.wait_through("stop")

    def test_a_wait_goes_on_through_a_kill(self) -> None:
        self.wait_through("kill")

    def test_a_wait_has_its_own_deadline(self) -> None:
        held = self.locks.acquire("k", lease=30)
        failures: list[BaseException] = []
        began = now()

        def wait() -> None:
            try:
                self.locks.acquire("k", wait=3)
            except lockd.NotAcquired as failure:
                failures.append(failure)

        thread = threading.Thread(target=wait)
        thread.start()
        eventually(lambda: self.locks.stats()["locks"][0]["waiters"] == 1, "a waiter")
        self.server.kill()
        self.server.start()
        thread.join(PATIENCE)
        self.assertGreaterEqual(now() - began, 3)
        failure = failures[0]
        assert isinstance(failure, lockd.NotAcquired)
        self.assertTrue(failure.queued_again)
        held.release()

    def test_a_server_that_stays_away_is_believed_for_no_longer_than_the_lease(self) -> None:
        losses: list[lockd.LockLost] = []
        held = self.locks.acquire("k", lease=2, on_lost=losses.append)
        granted = now()
        self.server.kill()
        asked = now()
        while held.is_held:
            self.assertLess(asked - granted, 2.0 + 2.0)  # one renewal may have been confirmed
            time.sleep(0.005)
            asked = now()
        eventually(lambda: bool(losses), "the callback")
        self.assertEqual(losses[0].cause, "unsure")

    def test_a_place_in_the_queue_is_asked_for_again(self) -> None:
        held = self.locks.acquire("k", lease=30)
        place = self.locks.enqueue("k")
        self.server.kill()
        self.server.start()
        time.sleep(0.5)
        held.release()
        with place.wait(PATIENCE) as turn:
            self.assertTrue(turn.queued_again)

    def test_a_server_that_stands_still_for_a_while_changes_nothing(self) -> None:
        with self.locks.lock("k", lease=4) as held:
            self.server.signal(signal.SIGSTOP)
            time.sleep(2)
            self.server.signal(signal.SIGCONT)
            time.sleep(3)
            held.check()

    def test_a_drained_server_serves_its_holders(self) -> None:
        held = self.locks.acquire("k", lease=30)
        self.server.signal(signal.SIGTERM)
        time.sleep(0.2)
        held.check()
        held.release()


class WithoutJournal(unittest.TestCase):
    def test_a_restart_loses_the_lock_and_its_owner_is_told(self) -> None:
        with Server() as server, lockd.Client(server.address) as locks:
            held = locks.acquire("k", lease=30)
            server.kill()
            server.start()
            loss = held.wait_lost(PATIENCE)
            assert loss is not None
            self.assertEqual(loss.cause, "refused")
            locks.acquire("k", wait=PATIENCE).release()

    def test_a_server_that_is_down_is_waited_for(self) -> None:
        with Server() as server, lockd.Client(server.address) as locks:
            server.kill()
            threading.Timer(0.7, server.start).start()
            with locks.lock("k", wait=PATIENCE) as held:
                self.assertFalse(held.queued_again)


if __name__ == "__main__":
    unittest.main()
