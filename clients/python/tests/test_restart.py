"""Servers that are stopped, killed and started again, while a client holds and while it waits."""

from __future__ import annotations

import signal
import tempfile
import threading
import time
import unittest

import lockd

from .support import PATIENCE, Server, eventually


class Restarts(unittest.TestCase):
    def setUp(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.server = Server("--wal", self.directory.name, "--shutdown-timeout", "1")
        self.addCleanup(self.server.__exit__)
        self.locks = lockd.Client(self.server.address, release_timeout=2)
        self.addCleanup(self.locks.close)

    def hold_and_wait_through(self, end: str) -> None:
        held = self.locks.acquire("k", lease=30)
        got: list[lockd.HeldLock] = []
        other = lockd.Client(self.server.address)
        self.addCleanup(other.close)
        thread = threading.Thread(target=lambda: got.append(other.acquire("k", wait=60)))
        thread.start()
        eventually(lambda: self.locks.stats()["locks"][0]["waiters"] == 1, "a waiter")
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

    def test_a_hold_and_a_wait_go_on_through_a_stop(self) -> None:
        self.hold_and_wait_through("stop")

    def test_a_hold_and_a_wait_go_on_through_a_kill(self) -> None:
        self.hold_and_wait_through("kill")

    def test_a_server_that_stands_still_for_a_while_changes_nothing(self) -> None:
        with self.locks.lock("k", lease=4) as held:
            self.server.signal(signal.SIGSTOP)
            time.sleep(2)
            self.server.signal(signal.SIGCONT)
            time.sleep(3)
            held.check()


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


if __name__ == "__main__":
    unittest.main()
