"""Several keys at once: all of them or none, under one fence.

What all clients do at scripted servers is in ``clients/conformance``.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import unittest

import lockd
from lockd import aio

from .support import PATIENCE, FakeServer, Peer, Server, ServerCase, eventually, grants, now


class Case(ServerCase):
    def setUp(self) -> None:
        super().setUp()
        self.a, self.b, self.c = (f"{self.id()}/{letter}" for letter in "abc")

    def waiters(self, key: str) -> int:
        for lock in self.locks.stats()["locks"]:
            if lock["key"] == key:
                return int(lock["waiters"])
        return 0

    def assert_held(self, *keys: str) -> None:
        """By others: a try is refused."""
        for key in keys:
            with self.assertRaises(lockd.NotAcquired):
                self.locks.acquire(key, wait=0)

    def assert_free(self, *keys: str) -> None:
        for key in keys:
            self.locks.acquire(key, wait=0).release()


class Sets(Case):
    def test_are_held_whole_or_not_at_all(self) -> None:
        with self.locks.acquire_all([self.a, self.b], wait=0, lease=15) as held:
            self.assertEqual((held.keys, held.key, held.lease), ((self.a, self.b), self.a, 15))
            held.check()
            self.assert_held(self.a, self.b)
            with self.assertRaises(lockd.NotAcquired) as raised:
                self.locks.acquire_all([self.c, self.b], wait=0)
            self.assertIn(self.c, str(raised.exception))
            holder = raised.exception.holder or ""
            self.assertRegex(holder, r"^.+@.+:\d+#[0-9a-f]{16}$")
            self.assertEqual(raised.exception.waiters, 0)
            self.assert_free(self.c)
        self.assertFalse(held.is_held)
        self.assert_free(self.a, self.b)

    def test_two_of_one_client_exclude_each_other(self) -> None:
        with self.locks.acquire_all([self.a, self.b], wait=0):
            with self.assertRaises(lockd.NotAcquired):
                self.locks.acquire_all([self.a, self.b], wait=0)

    def test_max_hold_ends_with_the_lease_and_not_before(self) -> None:
        began = now()
        held = self.locks.acquire_all([self.a, self.b], lease=1, max_hold=1.5)
        loss = held.wait_lost(PATIENCE)
        assert loss is not None
        self.assertGreaterEqual(now() - began, 1.5)
        self.assertEqual(loss.cause, "max_hold")

    def test_one_that_is_taken_away_is_a_loss(self) -> None:
        losses: list[lockd.LockLost] = []
        held = self.locks.acquire_all([self.a, self.b], lease=2, on_lost=losses.append)
        self.revoke(self.b)
        loss = held.wait_lost(PATIENCE)
        assert loss is not None
        self.assertEqual(loss.cause, "refused")
        self.assertIn(self.b, str(loss))
        eventually(lambda: bool(losses), "the callback")
        eventually(lambda: self.is_free(self.a), "the rest is given back")

    def test_leaving_the_block_is_the_last_check(self) -> None:
        with self.assertRaises(lockd.LockLost), self.locks.acquire_all([self.a, self.b]):
            self.revoke(self.b)
        self.assert_free(self.a, self.b)

    def revoke(self, key: str) -> None:
        call = {"key": key, "all": True, "reason": "a test"}
        with socket.create_connection(("127.0.0.1", self.server.port)) as admin:
            admin.sendall(f"api\nPOST /v1/admin/release\n{json.dumps(call)}\n".encode())
            self.assertTrue(admin.recv(10).startswith(b"ok 200 "))

    def is_free(self, key: str) -> bool:
        try:
            self.locks.acquire(key, wait=0).release()
        except lockd.NotAcquired:
            return False
        return True

    def test_of_any_items_wait_for_room_in_each(self) -> None:
        items = [lockd.SetItem(self.a, shared=True), lockd.SetItem(self.b, limit=2, permits=2)]
        granted: list[lockd.HeldLock] = []
        with self.locks.lock(self.a):
            slot = self.locks.acquire(self.b, limit=2)
            waiter = threading.Thread(
                target=lambda: granted.append(self.locks.acquire_all(items, wait=PATIENCE))
            )
            waiter.start()
            eventually(lambda: self.waiters(self.a) == 1, "a waiter")
        self.assertEqual(granted, [])
        slot.release()
        waiter.join(PATIENCE)
        self.assertGreater(granted[0].fence, slot.fence)
        granted[0].release()

    def test_of_any_items_renew_themselves(self) -> None:
        items = [lockd.SetItem(self.a, shared=True), lockd.SetItem(self.b, limit=2, permits=2)]
        with self.locks.acquire_all(items, lease=1) as held:
            deadline = now() + 2.5
            while now() < deadline:
                held.check()
                time.sleep(0.01)
            self.assert_held(self.a)

    def test_a_lock_and_a_semaphore_of_one_key_are_two(self) -> None:
        with self.locks.acquire_all([self.a, lockd.SetItem(self.a, limit=1)], wait=0):
            self.assert_held(self.a)
            with self.assertRaises(lockd.NotAcquired):
                self.locks.acquire(self.a, limit=1, wait=0)

    def test_another_limit_is_refused(self) -> None:
        with self.locks.semaphore(self.a, limit=2):
            with self.assertRaises(lockd.LimitMismatch):
                self.locks.acquire_all([lockd.SetItem(self.a, limit=3)], wait=0)

    def test_closing_the_client_releases(self) -> None:
        other = lockd.Client(self.server.address)
        held = other.acquire_all([self.a, self.b], lease=60)
        other.close()
        self.assertFalse(held.is_held)
        self.assert_free(self.a, self.b)

    def test_of_asyncio(self) -> None:
        async def work() -> None:
            async with aio.Client(self.server.address) as locks:
                async with await locks.acquire_all([self.a, self.b], wait=0) as held:
                    held.check()
                    with self.assertRaises(lockd.NotAcquired):
                        await locks.acquire_all([self.b, self.c], wait=0)
            self.assertFalse(held.is_held)

        asyncio.run(work())
        self.assert_free(self.a, self.b)


class Restarts(unittest.TestCase):
    def test_a_server_that_cuts_waits_is_asked_again(self) -> None:
        with Server("--max-set-wait", "1") as server, lockd.Client(server.address) as locks:
            with locks.lock("a"):
                began = now()
                with self.assertRaises(lockd.NotAcquired) as raised:
                    locks.acquire_all(["a", "b"], wait=2.5)
                self.assertGreaterEqual(now() - began, 2.5)
                self.assertTrue(raised.exception.queued_again)


class Requests(unittest.TestCase):
    def test_that_no_server_takes_are_not_sent(self) -> None:
        with FakeServer(grants()) as server, FakeServer(grants()) as other:
            with lockd.Client([server.address, other.address]) as locks:
                self.assertNotEqual(locks.server_of("a"), locks.server_of("d"))
                for keys in ([], ["a", "a"], ["a", ""], [str(n) for n in range(65)], ["a", "d"]):
                    with self.assertRaises(lockd.InvalidRequest):
                        locks.acquire_all(keys)
                with self.assertRaises(lockd.InvalidRequest):
                    locks.acquire_all(["a"], lease=0)
                for item in (
                    lockd.SetItem(""),
                    lockd.SetItem("a", permits=2),
                    lockd.SetItem("a", limit=0),
                    lockd.SetItem("a", limit=2, permits=3),
                    lockd.SetItem("a", limit=2, shared=True),
                ):
                    with self.assertRaises(lockd.InvalidRequest):
                        locks.acquire_all([item])
                with self.assertRaises(lockd.InvalidRequest):
                    locks.acquire_all([lockd.SetItem("a", limit=2), lockd.SetItem("a", limit=3)])
        self.assertEqual(server.seen + other.seen, [])

    def test_name_one_holder(self) -> None:
        def script(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("api", 'ok 200 {"token":7,"ttl_ms":9000}')
            peer.answer("api", 'ok 200 {"released":["é","b"],"not_held":[]}')

        with FakeServer(script) as server:
            with lockd.Client(server.address, name="é" * 128) as locks:
                held = locks.acquire_all(["é", "b"], wait=1.5, lease=9)
                self.assertEqual((held.fence, held.lease), (7, 9))
                held.release()
        acquire, release = ((call, json.loads(members)) for _, call, members in server.seen[1:])
        holder = acquire[1].pop("holder")
        self.assertRegex(holder, r"^é{119}#[0-9a-f]{16}$")
        self.assertEqual(acquire[0], "POST /v1/acquire")
        self.assertLessEqual(acquire[1].pop("wait_ms"), 1500)
        self.assertEqual(acquire[1], {"keys": ["é", "b"], "ttl_ms": 9000})
        self.assertEqual(
            release, ("POST /v1/release", {"keys": ["é", "b"], "holder": holder, "token": 7})
        )

    def test_of_any_items_name_what_they_take(self) -> None:
        def script(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("api", 'ok 200 {"token":7,"ttl_ms":9000}')
            peer.answer("api", 'ok 200 {"released":[],"not_held":[{"key":"b","kind":"lock"}]}')

        reads = lockd.SetItem("b", shared=True)
        takes = lockd.SetItem("c", limit=4, permits=2)
        with FakeServer(script) as server, lockd.Client(server.address) as locks:
            held = locks.acquire_all(["a", reads, takes], wait=0)
            with self.assertRaises(lockd.LockLost) as raised:
                held.release()
        self.assertIn("'b'", str(raised.exception.__cause__ or raised.exception))
        for _, _, members in server.seen[1:]:
            self.assertEqual(
                json.loads(members)["items"],
                [
                    {"key": "a"},
                    {"key": "b", "mode": "shared"},
                    {"key": "c", "kind": "semaphore", "limit": 4, "permits": 2},
                ],
            )


if __name__ == "__main__":
    unittest.main()
