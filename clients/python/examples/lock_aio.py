"""Three workers, and two permits of a semaphore: the same for asyncio."""

import asyncio
import sys

import lockd.aio


async def main() -> None:
    server = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1"
    busy = most = 0

    async def work(locks: lockd.aio.Client) -> None:
        nonlocal busy, most
        async with locks.semaphore("printers", limit=2, lease=30) as permit:
            busy += 1
            most = max(most, busy)
            await asyncio.sleep(0.1)
            permit.check()
            busy -= 1

    async with lockd.aio.Client(server) as locks:
        await asyncio.gather(*(work(locks) for _ in range(3)))
    print(f"three worked, {most} at a time")


asyncio.run(main())
