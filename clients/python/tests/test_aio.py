"""The same for asyncio: what is its own is how it waits, is cancelled and tells."""

from __future__ import annotations

import asyncio
import gc
import unittest
import warnings
from typing import ClassVar

import lockd
from lockd import aio

from .support import PATIENCE, Server, now


class Aio(unittest.IsolatedAsyncioTestCase):
    server: ClassVar[Server]

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.__exit__()

    async def asyncSetUp(self) -> None:
        self.locks = aio.Client(self.server.address)
        self.key = self.id()

    async def asyncTearDown(self) -> None:
        await self.locks.close()

    async def queue(self, length: int) -> None:
        deadline = now() + PATIENCE
        while now() < deadline:
            stats = await self.locks.stats()
            if [lock["waiters"] for lock in stats["locks"] if lock["key"] == self.key] == [length]:
                return
            await asyncio.sleep(0.005)
        self.fail(f"the queue is not of length {length}")

    async def test_is_held_for_the_block(self) -> None:
        async with self.locks.lock(self.key, wait=10, lease=15) as held:
            held.check()
            self.assertEqual(held.lease, 15)
            self.assertGreater(held.fence, 0)
            with self.assertRaises(lockd.NotAcquired) as raised:
                await self.locks.acquire(self.key, wait=0)
            self.assertRegex(raised.exception.holder or "", r"^tcp:\d+$")
            self.assertEqual(raised.exception.waiters, 0)
        self.assertFalse(held.is_held)
        await (await self.locks.acquire(self.key, wait=0)).release()

    async def test_a_task_that_is_cancelled_leaves_the_queue_at_once(self) -> None:
        async with self.locks.lock(self.key):
            waiter = asyncio.create_task(self.locks.acquire(self.key))
            await self.queue(1)
            waiter.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await waiter
            await self.queue(0)

    async def test_a_block_that_is_cancelled_releases(self) -> None:
        async def hold() -> None:
            async with self.locks.lock(self.key):
                await asyncio.sleep(60)

        holder = asyncio.create_task(hold())
        await self.queue(0)
        holder.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await holder
        await (await self.locks.acquire(self.key, wait=PATIENCE)).release()

    async def test_hundreds_wait_and_hold_in_turn(self) -> None:
        inside = 0

        async def worker() -> None:
            nonlocal inside
            async with self.locks.lock(self.key, lease=10):
                inside += 1
                self.assertEqual(inside, 1)
                await asyncio.sleep(0)
                inside -= 1

        await asyncio.gather(*(worker() for _ in range(100)))

    async def test_renews_itself(self) -> None:
        async with self.locks.lock(self.key, lease=1) as held:
            for _ in range(25):
                await asyncio.sleep(0.1)
                held.check()

    async def test_tells_of_the_loss(self) -> None:
        losses: list[lockd.LockLost] = []
        held = await self.locks.acquire(self.key, lease=1, on_lost=losses.append)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        writer.write(f"r\n{held.key}\n{held.token}\n".encode())
        self.assertEqual(await reader.readline(), b"ok\n")
        writer.close()
        self.assertIsNone(await held.wait_lost(0))
        loss = await held.wait_lost()
        assert loss is not None
        self.assertEqual(loss.cause, "refused")
        self.assertEqual([str(one) for one in losses], [str(loss)])
        with self.assertRaises(lockd.LockLost):
            held.check()

    async def test_to_close_gives_up_waits(self) -> None:
        async with self.locks.lock(self.key):
            closing = lockd.aio.Client(self.server.address)
            waiting = asyncio.ensure_future(closing.acquire(self.key, lease=60))
            await self.queue(1)
            await closing.close()
            with self.assertRaises(lockd.Cancelled):
                await waiting
            await self.queue(0)

    async def test_a_loop_that_stood_still_knows_what_it_lost(self) -> None:
        held = await self.locks.acquire(self.key, lease=1)
        deadline = now() + 1.3
        while now() < deadline:
            pass  # as a program does that blocks its loop
        with self.assertRaises(lockd.LockLost):
            held.check()
        loss = await held.wait_lost()
        assert loss is not None
        # Or the server's line is read before the clock is looked at again.
        self.assertIn(loss.cause, ("unsure", "expired"))

    async def test_semaphores_and_places(self) -> None:
        async with self.locks.semaphore(self.key, 1) as held:
            async with await self.locks.enqueue(self.key, limit=1) as place:
                self.assertFalse(place.is_granted)
                await held.release()
                await (await place.wait(PATIENCE)).release()

    async def test_signals(self) -> None:
        async with await self.locks.listen("a.*") as subscription:
            self.assertEqual(await self.locks.publish("a.b", "x"), 1)
            async for signal in subscription:
                self.assertEqual(signal, ("a.b", b"x"))
                break
            self.assertIsNone(await subscription.next(0.1))
            self.assertEqual((subscription.gaps, subscription.dropped), (0, 0))

    async def test_small_calls_share_a_connection(self) -> None:
        await asyncio.gather(*(self.locks.publish("a", str(n)) for n in range(50)))
        before = (await self.locks.stats())["connections"]
        await asyncio.gather(*(self.locks.publish("a", str(n)) for n in range(50)))
        self.assertEqual((await self.locks.stats())["connections"], before)

    async def test_a_lock_that_nobody_refers_to_is_released(self) -> None:
        held = await self.locks.acquire(self.key)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            del held
            gc.collect()
        await (await self.locks.acquire(self.key, wait=PATIENCE)).release()

    async def test_closing_releases(self) -> None:
        async with aio.Client(self.server.address) as other:
            held = await other.acquire(self.key)
        self.assertFalse(held.is_held)
        await (await self.locks.acquire(self.key, wait=0)).release()
        with self.assertRaises(lockd.Cancelled):
            await other.acquire(self.key)

    async def test_no_task_is_left(self) -> None:
        async with aio.Client(self.server.address) as locks:
            async with locks.lock(self.key):
                pass
            subscription = await locks.listen("x")
            await locks.publish("x", "y")
            subscription.close()
        await asyncio.sleep(0.05)
        self.assertEqual(asyncio.all_tasks(), {asyncio.current_task()})


if __name__ == "__main__":
    unittest.main()
