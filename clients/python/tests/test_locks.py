"""Locks, semaphores and places in queues at a real server."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import warnings

import lockd

from .support import PATIENCE, Server, ServerCase, eventually, now


class Locks(ServerCase):
    flags = ("--default-lease-ttl", "33")

    def waiters(self) -> int:
        for lock in self.locks.stats()["locks"]:
            if lock["key"] == self.key:
                return int(lock["waiters"])
        return 0

    def wait_for_threads(self, count: int) -> None:
        """Of clients: those of earlier tests may be about to end."""

        def are_so_many() -> bool:
            gc.collect()
            return sum(thread.name == "lockd" for thread in threading.enumerate()) == count

        eventually(are_so_many, f"{count} threads of clients")

    def test_is_held_for_the_block(self) -> None:
        with self.locks.lock(self.key, wait=10, lease=15) as held:
            self.assertTrue(held.is_held)
            self.assertIsNone(held.loss)
            held.check()
            self.assertEqual((held.key, held.lease, held.queued_again), (self.key, 15, False))
            self.assertEqual(held.fence, int(held.token[:16], 16))
            self.assertLessEqual(held.remaining, 15)
            with self.assertRaises(lockd.NotAcquired) as raised:
                self.locks.acquire(self.key, wait=0)
            self.assertEqual(raised.exception.key, self.key)
            self.assertIsInstance(raised.exception, TimeoutError)
        self.assertFalse(held.is_held)
        with self.assertRaises(lockd.LockLost) as lost:
            held.check()
        self.assertEqual(lost.exception.cause, "released")
        self.locks.acquire(self.key, wait=0).release()

    def test_who_is_in_the_way_is_told(self) -> None:
        with lockd.Client(self.server.address, name="ann") as other:
            held = {None: other.acquire(self.key), 1: other.acquire(self.key, limit=1)}
            for limit in held:
                with self.assertRaises(lockd.NotAcquired) as raised:
                    self.locks.acquire(self.key, wait=0, limit=limit)
                busy = raised.exception
                self.assertRegex(busy.holder or "", r"^tcp:\d+$")
                self.assertEqual((busy.client, busy.waiters), ("ann", 0))
            with self.locks.enqueue(self.key), self.assertRaises(lockd.NotAcquired) as raised:
                self.locks.acquire(self.key, wait=0)
            self.assertEqual((raised.exception.client, raised.exception.waiters), ("ann", 1))
            with self.assertRaises(lockd.NotAcquired) as raised:
                self.locks.enqueue(self.key).wait(1)
            self.assertEqual(raised.exception.client, "ann")

    def test_the_default_lease_is_the_servers(self) -> None:
        with self.locks.lock(self.key) as held:
            self.assertEqual(held.lease, 33)

    def test_a_bounded_wait_is_never_over_early(self) -> None:
        with self.locks.lock(self.key):
            for wait in (0.3, 1.0, 1.3):
                began = now()
                with self.assertRaises(lockd.NotAcquired):
                    self.locks.acquire(self.key, wait=wait)
                self.assertGreaterEqual(now() - began, wait)
                self.assertLess(now() - began, wait + PATIENCE)

    def test_an_unbounded_wait_ends_with_the_turn(self) -> None:
        held = self.locks.acquire(self.key)
        got: list[lockd.HeldLock] = []
        waiter = threading.Thread(target=lambda: got.append(self.locks.acquire(self.key)))
        waiter.start()
        eventually(lambda: self.waiters() == 1, "a waiter")
        held.release()
        waiter.join(PATIENCE)
        self.assertGreater(got[0].fence, held.fence)
        self.assertFalse(got[0].queued_again)
        got[0].release()

    def test_a_wait_is_given_up_at_once(self) -> None:
        stop = lockd.Stop()
        failures: list[BaseException] = []

        def wait() -> None:
            try:
                self.locks.acquire(self.key, stop=stop)
            except lockd.LockdError as failure:
                failures.append(failure)

        with self.locks.lock(self.key):
            waiter = threading.Thread(target=wait)
            waiter.start()
            eventually(lambda: self.waiters() == 1, "a waiter")
            stop.set()
            waiter.join(PATIENCE)
            self.assertIsInstance(failures[0], lockd.Cancelled)
            eventually(lambda: self.waiters() == 0, "an empty queue")
        with self.assertRaises(lockd.Cancelled):
            self.locks.acquire(self.key, stop=stop)

    def test_ctrl_c_gives_up_a_wait(self) -> None:
        program = (
            "import lockd, signal, sys\n"
            # Whoever runs this may ignore it, and that is inherited.
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            f"locks = lockd.Client({self.server.address!r})\n"
            "try:\n"
            f"    locks.acquire({self.key!r})\n"
            "except KeyboardInterrupt:\n"
            f"    locks.acquire('free', wait=0).release()\n"
            "    sys.exit(7)\n"
        )
        with self.locks.lock(self.key):
            child = subprocess.Popen([sys.executable, "-c", program])
            eventually(lambda: self.waiters() == 1, "a waiter")
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.wait(PATIENCE), 7)
            eventually(lambda: self.waiters() == 0, "an empty queue")

    def test_closing_the_client_ends_its_waits_and_releases(self) -> None:
        other = lockd.Client(self.server.address)
        held = other.acquire(self.key)
        failures: list[BaseException] = []

        def wait() -> None:
            try:
                other.acquire(self.key)
            except lockd.LockdError as failure:
                failures.append(failure)

        waiter = threading.Thread(target=wait)
        waiter.start()
        eventually(lambda: self.waiters() == 1, "a waiter")
        other.close()
        waiter.join(PATIENCE)
        self.assertIsInstance(failures[0], lockd.Cancelled)
        self.assertFalse(held.is_held)
        self.locks.acquire(self.key, wait=0).release()
        with self.assertRaises(lockd.Cancelled):
            other.acquire(self.key, wait=0)

    def test_closing_the_client_ends_its_thread(self) -> None:
        self.wait_for_threads(1)
        other = lockd.Client(self.server.address)
        with other.lock(self.key):
            self.wait_for_threads(2)
            other.close()  # the block finds that it was released
        other.close()
        self.wait_for_threads(1)

    def test_a_client_that_nobody_refers_to_ends_its_thread(self) -> None:
        lockd.Client(self.server.address).acquire(self.key).release()
        self.wait_for_threads(1)

    def test_a_lock_outlives_its_client(self) -> None:
        held = lockd.Client(self.server.address).acquire(self.key, lease=1)
        gc.collect()
        time.sleep(1.5)
        held.check()
        held.release()

    def test_many_are_renewed_by_one_thread(self) -> None:
        held = [self.locks.acquire(f"{self.key}/{n}", lease=2) for n in range(40)]
        self.wait_for_threads(1)
        time.sleep(3)
        for one in held:
            one.check()
            one.release()

    def test_max_hold_ends_with_the_lease_and_not_before(self) -> None:
        losses: list[lockd.LockLost] = []
        began = now()
        held = self.locks.acquire(self.key, lease=1, max_hold=1.5, on_lost=losses.append)
        while held.is_held:
            time.sleep(0.002)
        self.assertGreaterEqual(now() - began, 1.5)
        self.assertLess(now() - began, 1.5 + PATIENCE)
        eventually(lambda: bool(losses), "the callback")
        self.assertEqual(losses[0].cause, "max_hold")
        self.locks.acquire(self.key, wait=5).release()
        with self.assertRaises(lockd.InvalidRequest):
            self.locks.acquire(self.key, max_hold=0)

    def test_a_release_by_somebody_else_is_noticed(self) -> None:
        losses: list[lockd.LockLost] = []
        held = self.locks.acquire(self.key, lease=2, on_lost=losses.append)
        self.release_by_token(held)
        lost = held.wait_lost(PATIENCE)
        assert lost is not None
        self.assertEqual((lost.cause, lost.key), ("refused", self.key))
        eventually(lambda: bool(losses), "the callback")
        with self.assertRaises(lockd.LockLost):
            held.check()
        with self.assertRaises(lockd.LockLost):
            held.release()

    def test_leaving_the_block_is_the_last_check(self) -> None:
        with self.assertRaises(lockd.LockLost), self.locks.lock(self.key, lease=30) as held:
            self.release_by_token(held)
        with self.assertRaises(KeyError), self.locks.lock(self.key, lease=30) as held:
            self.release_by_token(held)
            raise KeyError  # what the program raised is not hidden

    def release_by_token(self, held: lockd.HeldLock) -> None:
        with socket.create_connection(("127.0.0.1", self.server.port)) as stranger:
            stranger.sendall(f"r\n{held.key}\n{held.token}\n".encode())
            self.assertEqual(stranger.recv(10), b"ok\n")

    def test_the_callback_may_use_the_client(self) -> None:
        done = threading.Event()

        def on_lost(_: lockd.LockLost) -> None:
            self.locks.acquire("another", wait=5).release()
            done.set()

        held = self.locks.acquire(self.key, lease=1, on_lost=on_lost)
        self.release_by_token(held)
        self.assertTrue(done.wait(PATIENCE))

    def test_a_lock_that_nobody_refers_to_is_released(self) -> None:
        held = self.locks.acquire(self.key)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del held
            gc.collect()
        self.assertIn("was never released", str(caught[0].message))
        self.locks.acquire(self.key, wait=PATIENCE).release()

    def test_a_process_that_stood_still_holds_nothing_and_knows_it(self) -> None:
        program = (
            "import lockd, sys\n"
            f"locks = lockd.Client({self.server.address!r})\n"
            f"held = locks.acquire({self.key!r}, lease=1)\n"
            "print('held', flush=True)\n"
            "sys.stdin.readline()\n"
            "print(held.is_held, held.loss.cause, flush=True)\n"
        )
        child = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        self.assertEqual(child.stdout.readline(), "held\n")
        child.send_signal(signal.SIGSTOP)
        self.locks.acquire(self.key, wait=PATIENCE).release()
        child.send_signal(signal.SIGCONT)
        answer = child.communicate("\n", PATIENCE)[0]
        self.assertIn(answer, ("False unsure\n", "False refused\n", "False expired\n"))

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_the_child_of_a_fork_is_told(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                self.locks.acquire(self.key, wait=0)
            except RuntimeError:
                os._exit(7)
            finally:
                os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_what_is_held_and_waited_for_is_not_the_childs(self) -> None:
        held = self.locks.acquire(self.key, lease=60)
        stop = lockd.Stop()
        waiter = threading.Thread(target=lambda: self.gives_up(stop))
        waiter.start()
        eventually(lambda: self.waiters() == 1, "a waiter")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                held.check()
            except lockd.LockLost:
                time.sleep(60)  # with whatever it has inherited
            finally:
                os._exit(1)
        try:
            stop.set()
            waiter.join()
            eventually(lambda: self.waiters() == 0, "nobody to wait")
            held.check()
            held.release()
            self.locks.acquire(self.key, wait=PATIENCE).release()
            self.assertEqual(os.waitpid(child, os.WNOHANG), (0, 0))
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    def gives_up(self, stop: lockd.Stop) -> None:
        with self.assertRaises(lockd.Cancelled):
            self.locks.acquire(self.key, stop=stop)

    def test_one_that_is_collected_on_the_clients_thread_is_released(self) -> None:
        held = self.locks.acquire(self.key, lease=60)
        self.locks._background.call_soon(held.release)
        self.locks.acquire(self.key, wait=PATIENCE).release()

    def test_one_that_is_forgotten_is_released_though_warnings_are_errors(self) -> None:
        program = (
            "import gc, lockd, sys\n"
            f"locks = lockd.Client({self.server.address!r})\n"
            f"locks.acquire({self.key!r}, lease=60)\n"
            f"locks.acquire({self.key!r}, wait={PATIENCE}).release()\n"
            "print('released')\n"
        )
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True
        )
        self.assertEqual(ran.stdout, "released\n", ran.stderr)

    def test_one_that_is_forgotten_with_its_client_is_released(self) -> None:
        def forget() -> None:
            lockd.Client(self.server.address).acquire(self.key, lease=60)

        with self.assertWarns(ResourceWarning):
            forget()
            gc.collect()
        self.locks.acquire(self.key, wait=PATIENCE).release()

    def test_a_host_that_can_be_none_is_unreachable(self) -> None:
        with self.assertRaises(lockd.Unreachable):
            lockd.Client("a..b").acquire(self.key, wait=0)

    def test_semaphores(self) -> None:
        with self.locks.semaphore(self.key, 2), self.locks.semaphore(self.key, 2, lease=9) as two:
            self.assertEqual(two.lease, 9)
            with self.assertRaises(lockd.NotAcquired):
                self.locks.acquire(self.key, limit=2, wait=0)
            with self.assertRaises(lockd.LimitMismatch):
                self.locks.acquire(self.key, limit=3, wait=0)
            with self.locks.lock(self.key, wait=0):
                pass  # a lock of that name is something else
        self.locks.acquire(self.key, limit=3, wait=0).release()

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

    def test_permits_renew_themselves(self) -> None:
        with (
            self.locks.semaphore(self.key, 5, lease=1) as one,
            self.locks.semaphore(self.key, 5, permits=3, lease=1) as three,
        ):
            time.sleep(1.6)
            one.check()
            three.check()
            with self.assertRaises(lockd.NotAcquired):
                self.locks.acquire(self.key, limit=5, permits=2, wait=0)

    def test_two_phases(self) -> None:
        first = self.locks.enqueue(self.key)
        self.assertTrue(first.is_granted)
        held = first.wait(0)
        second = self.locks.enqueue(self.key, lease=7)
        self.assertFalse(second.is_granted)
        held.release()
        with second.wait(PATIENCE) as turn:
            self.assertEqual(turn.lease, 7)
            self.assertGreater(turn.fence, held.fence)
            self.assertFalse(turn.queued_again)
        with self.assertRaises(lockd.InvalidRequest):
            second.wait(0)

    def test_a_place_waits_for_no_longer_than_it_was_told(self) -> None:
        with self.locks.lock(self.key):
            place = self.locks.enqueue(self.key)
            began = now()
            with self.assertRaises(lockd.NotAcquired):
                place.wait(0.4)
            self.assertGreaterEqual(now() - began, 0.4)
            eventually(lambda: self.waiters() == 0, "an empty queue")

    def test_a_place_is_given_up(self) -> None:
        with self.locks.lock(self.key):
            with self.locks.enqueue(self.key):
                self.assertEqual(self.waiters(), 1)
            eventually(lambda: self.waiters() == 0, "an empty queue")
        with self.locks.lock(self.key):
            self.locks.enqueue(self.key)  # and nobody refers to it
            gc.collect()
            eventually(lambda: self.waiters() == 0, "an empty queue")
        with self.locks.enqueue(self.key) as granted:
            self.assertTrue(granted.is_granted)
        self.locks.acquire(self.key, wait=PATIENCE).release()

    def test_requests_that_no_server_takes(self) -> None:
        for key, wait, lease in (("", 0, 1), ("k", -1, 1), ("k", 0, 0), ("k", float("nan"), 1)):
            with self.assertRaises(lockd.InvalidRequest):
                self.locks.acquire(key, wait=wait, lease=lease)

    def test_stats(self) -> None:
        with self.locks.lock(self.key):
            keys = [lock["key"] for lock in self.locks.stats()["locks"]]
            self.assertIn(self.key, keys)
        self.assertEqual(self.locks.stats(self.server.address)["locks"], [])
        with self.assertRaises(lockd.InvalidRequest):
            self.locks.stats("elsewhere:1")


class SeveralServers(unittest.TestCase):
    def test_share_the_keys(self) -> None:
        with Server() as one, Server() as two, Server() as three:
            servers = [one.address, two.address, three.address]
            with lockd.Client(servers) as locks:
                self.assertEqual(locks.server_of("my-key"), three.address)
                for key in ("my-key", "orders/42", "my-job"):
                    with locks.lock(key):
                        server = servers[lockd.shard_of(key, 3)]
                        self.assertEqual(locks.server_of(key), server)
                        self.assertEqual(locks.stats(server)["locks"][0]["key"], key)
                with self.assertRaises(lockd.InvalidRequest):
                    locks.stats()

    def test_are_no_cluster(self) -> None:
        with self.assertRaises(lockd.InvalidRequest):
            lockd.Client("a", cluster=["b"])
        with self.assertRaises(lockd.InvalidRequest):
            lockd.Client([])


if __name__ == "__main__":
    unittest.main()
