"""Locks that many hold together, and jobs that need several permits of a semaphore."""

from __future__ import annotations

import tempfile
import threading
import time
import unittest

import lockd

from .support import PATIENCE, FakeServer, Server, ServerCase, eventually, grants


class Case(ServerCase):
    def waiters(self, kind: str) -> int:
        for one in self.locks.stats()[kind]:
            if one["key"] == self.key:
                return int(one["waiters"])
        return 0


class Shared(Case):
    def test_readers_hold_together_and_the_writer_waits_for_all(self) -> None:
        with self.locks.lock(self.key, shared=True, wait=0) as one:
            with self.locks.lock(self.key, shared=True, wait=0) as two:
                self.assertGreater(two.fence, one.fence)
                with self.assertRaises(lockd.NotAcquired):
                    self.locks.acquire(self.key, wait=0)
            with self.assertRaises(lockd.NotAcquired):
                self.locks.acquire(self.key, wait=0)
        with self.locks.lock(self.key, wait=0) as writer:
            self.assertGreater(writer.fence, two.fence)
            with self.assertRaises(lockd.NotAcquired):
                self.locks.acquire(self.key, shared=True, wait=0)

    def test_no_reader_overtakes_a_writer(self) -> None:
        order: list[str] = []
        reader = self.locks.acquire(self.key, shared=True)

        def hold(shared: bool) -> None:
            with self.locks.lock(self.key, shared=shared, wait=PATIENCE):
                order.append("reader" if shared else "writer")

        threads = []
        for waiting, shared in ((1, False), (2, True), (3, True)):
            threads.append(threading.Thread(target=hold, args=(shared,)))
            threads[-1].start()
            eventually(lambda n=waiting: self.waiters("locks") == n, "a queue")  # type: ignore[misc]
        with self.assertRaises(lockd.NotAcquired):
            self.locks.acquire(self.key, shared=True, wait=0)
        self.assertEqual(order, [])
        reader.release()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(order, ["writer", "reader", "reader"])

    def test_two_phases(self) -> None:
        first = self.locks.enqueue(self.key, shared=True)
        second = self.locks.enqueue(self.key, shared=True, lease=7)
        writer = self.locks.enqueue(self.key)
        self.assertEqual(
            (first.is_granted, second.is_granted, writer.is_granted), (True, True, False)
        )
        first.wait().release()
        with second.wait() as held:
            self.assertEqual(held.lease, 7)
            with self.assertRaises(lockd.NotAcquired):
                writer.wait(0)

    def test_each_renews_itself(self) -> None:
        readers = [self.locks.acquire(self.key, shared=True, lease=1) for _ in range(3)]
        time.sleep(1.6)
        for reader in readers:
            reader.check()
            reader.release()
        self.locks.acquire(self.key, wait=0).release()

    def test_a_restart_is_survived(self) -> None:
        with tempfile.TemporaryDirectory() as journal, Server("--wal", journal) as server:
            with lockd.Client(server.address) as locks:
                readers = [locks.acquire("k", shared=True, lease=20) for _ in range(2)]
                server.kill()
                server.start()
                with self.assertRaises(lockd.NotAcquired):
                    locks.acquire("k", wait=0)
                for reader in readers:
                    reader.release()
                locks.acquire("k", wait=0).release()


class Permits(Case):
    def test_a_job_of_four_is_overtaken_by_no_small_one(self) -> None:
        pool = self.locks.acquire(self.key, limit=5, permits=2)
        job = self.locks.enqueue(self.key, limit=5, permits=4, lease=20)
        small = self.locks.enqueue(self.key, limit=5)
        self.assertEqual((job.is_granted, small.is_granted), (False, False))
        with self.assertRaises(lockd.NotAcquired):
            self.locks.acquire(self.key, limit=5, wait=0)  # three are free, and not for it
        pool.release()
        with job.wait(PATIENCE) as four, small.wait(PATIENCE) as one:
            self.assertEqual(four.lease, 20)
            self.assertGreater(one.fence, four.fence)
            with self.assertRaises(lockd.NotAcquired):
                self.locks.acquire(self.key, limit=5, wait=0)
        with self.locks.semaphore(self.key, 5, permits=5, wait=0) as everything:
            everything.check()

    def test_are_given_back_together(self) -> None:
        job = self.locks.acquire(self.key, limit=5, permits=4)
        granted: list[lockd.HeldLock] = []
        waiter = threading.Thread(
            target=lambda: granted.append(self.locks.acquire(self.key, limit=5, permits=3))
        )
        waiter.start()
        eventually(lambda: self.waiters("semaphores") == 1, "a waiter")
        self.assertEqual(granted, [])
        job.release()
        waiter.join(PATIENCE)
        granted[0].release()

    def test_renew_themselves(self) -> None:
        with self.locks.semaphore(self.key, 5, permits=4, lease=1) as held:
            time.sleep(1.6)
            held.check()
            with self.assertRaises(lockd.NotAcquired):
                self.locks.acquire(self.key, limit=5, permits=2, wait=0)


class Requests(unittest.TestCase):
    def test_that_no_server_takes_are_not_sent(self) -> None:
        with FakeServer(grants()) as server, lockd.Client(server.address) as locks:
            for share in (
                {"limit": 4, "permits": 0},
                {"limit": 4, "permits": -1},
                {"limit": 4, "permits": 5},
                {"limit": 4, "permits": 1.5},
                {"permits": 2},
                {"limit": 4, "shared": True},
            ):
                with self.assertRaises(lockd.InvalidRequest):
                    locks.acquire("k", **share)
                with self.assertRaises(lockd.InvalidRequest):
                    locks.enqueue("k", **share)
        self.assertEqual(server.seen, [])


if __name__ == "__main__":
    unittest.main()
