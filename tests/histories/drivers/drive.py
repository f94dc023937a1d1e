"""Drives the client for Python. README.md says what is asked of a driver."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import sys
import time

import lockd.aio

WORKERS = 32


def now() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Worker:
    def __init__(self, client: lockd.aio.Client, proc: int, seed: int) -> None:
        self._client = client
        self._proc = proc
        self._chance = random.Random(seed)

    async def run(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            await self._hold_one(self._request())
            await asyncio.sleep(self._chance.uniform(0.005, 0.025))

    def _request(self) -> dict[str, object]:
        is_lock = self._chance.random() < 0.8
        number = self._chance.randrange(160 if is_lock else 20)
        return {
            "proc": self._proc,
            "key": f"{'lock' if is_lock else 'sem'}-{number}",
            "kind": "lock" if is_lock else "sem",
            "limit": 1 if is_lock else 2,
            "ttl": self._chance.randint(1, 3),
            "timeout": self._chance.choice((0, 2)),
            "via": "lib",
            "srv": "w",
            "life": 1,
        }

    async def _hold_one(self, request: dict[str, object]) -> None:
        call = now()
        try:
            held = await self._client.acquire(
                request["key"],
                wait=request["timeout"],
                lease=request["ttl"],
                limit=None if request["kind"] == "lock" else request["limit"],
            )
        except lockd.NotAcquired:
            return note(request, f="acquire", call=call, ret=now(), res="error:refused")
        except lockd.LockdError:
            return note(request, f="acquire", call=call, gave_up=now(), res="info")
        granted = now()
        request["fence"] = held.fence
        note(request, f="acquire", call=call, ret=granted, res="ok")
        await self._keep(request, held, granted)

    async def _keep(
        self, request: dict[str, object], held: lockd.aio.HeldLock, granted: int
    ) -> None:
        until = granted + int(self._chance.uniform(0.5, 4) * 1e9)
        is_long = self._chance.random() < 0.02
        believed = 0  # not even once, if the lease was over when the answer came
        while True:
            at = now()
            if not held.is_held:
                break
            believed = at
            if not is_long or at >= until:
                break
            await asyncio.sleep(0.02)
        if believed:
            note(request, f="believe", call=granted, ret=believed, res="ok")
        await self._release(request, held, believed or granted)

    # A client that loses a hold releases it by itself: at any time since it last believed in it.
    async def _release(
        self, request: dict[str, object], held: lockd.aio.HeldLock, believed: int
    ) -> None:
        call = now()
        try:
            await held.release()
        except lockd.LockdError:
            note(request, f="release", call=believed, gave_up=now(), res="info")
        else:
            note(request, f="release", call=call, ret=now(), res="ok")


def note(request: dict[str, object], **more: object) -> None:
    sys.stdout.write(json.dumps({**request, **more}, separators=(",", ":")) + "\n")


async def main(port: int, proc: int, seed: int) -> None:
    logging.disable()  # that connections break is no news
    stopping = asyncio.Event()
    async with lockd.aio.Client(f"127.0.0.1:{port}") as client:
        workers = [
            asyncio.create_task(Worker(client, proc + i, seed + i).run(stopping))
            for i in range(WORKERS)
        ]
        await asyncio.to_thread(sys.stdin.read)
        stopping.set()
        await asyncio.gather(*workers)


asyncio.run(main(*map(int, sys.argv[1:])))
