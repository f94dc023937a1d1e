"""Auth tokens that are rotated at a real server, while a lock is held and another client waits."""

from __future__ import annotations

import hashlib
import signal
import tempfile
import threading
import time
import unittest
from pathlib import Path

import lockd

from .support import PATIENCE, Server, eventually


class Rotations(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.access = Path(folder.name) / "access.toml"
        self.token_file = Path(folder.name) / "token"
        self.token_file.write_text("the old token\n")
        self.accept("the old token", "the new token")
        self.server = Server("--access", str(self.access))
        self.addCleanup(self.server.__exit__)
        self.locks = lockd.Client(self.server.address, token_file=self.token_file)
        self.addCleanup(self.locks.close)
        self.next = lockd.Client(self.server.address, token="the new token")
        self.addCleanup(self.next.close)

    def accept(self, *tokens: str) -> None:
        tables = []
        for token in tokens:
            digest = hashlib.sha256(token.encode()).hexdigest()
            tables.append(f'[[token]]\nname = "app"\nsha256 = "{digest}"\nrights = ["lock"]\n')
        self.access.write_text("\n".join(tables))

    def rotate(self, token_file: str) -> lockd.LockLost:
        """Hands the lock to the one that waits. How the one that held it lost it."""
        held = self.locks.acquire("k", lease=30)
        self.token_file.write_text(token_file)
        granted: list[lockd.HeldLock] = []
        waiting = threading.Thread(
            target=lambda: granted.append(self.next.acquire("k", wait=PATIENCE))
        )
        waiting.start()
        time.sleep(0.3)
        self.accept("the new token")
        self.server.signal(signal.SIGHUP)
        waiting.join(PATIENCE)
        self.assertGreater(granted[0].fence, held.fence)
        began = time.monotonic()
        eventually(lambda: not held.is_held, "the end of certainty")
        self.assertLess(time.monotonic() - began, 5, "long before the lease is over")
        loss = held.wait_lost(PATIENCE)
        assert loss is not None
        granted[0].release()
        return loss

    def test_a_client_that_kept_the_old_token_loses_its_lock_at_once(self) -> None:
        with self.assertLogs("lockd", "WARNING") as logged:
            loss = self.rotate("the old token\n")
        self.assertEqual(loss.cause, "unauthorized")
        self.assertIsInstance(loss.__cause__, lockd.Unauthorized)
        self.assertEqual(len(logged.output), 1, logged.output)

    def test_a_client_whose_file_has_the_new_token_hears_that_the_lock_was_released(self) -> None:
        self.assertEqual(self.rotate("the new token\n").cause, "refused")
        self.locks.acquire("k", wait=PATIENCE).release()


if __name__ == "__main__":
    unittest.main()
