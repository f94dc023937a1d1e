"""Holds locks and renews them: the client for Python, to be measured by bench/clients/renewals.

usage: hold_locks.py threads|asyncio HOST:PORT LOCKS LEASE_S

Says ``held`` when it has all, holds them until a line comes in, and says how many it has then.
"""

import asyncio
import os
import sys

import lockd


def hold(address: str, locks: int, lease: int) -> None:
    client = lockd.Client(address)
    held = [client.acquire(f"{os.getpid()}/{i}", wait=60, lease=lease) for i in range(locks)]
    print("held", flush=True)
    sys.stdin.readline()
    print(sum(one.is_held for one in held), flush=True)
    client.close()


async def hold_aio(address: str, locks: int, lease: int) -> None:
    async with lockd.aio.Client(address) as client:
        held = [
            await client.acquire(f"{os.getpid()}/{i}", wait=60, lease=lease) for i in range(locks)
        ]
        print("held", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        print(sum(one.is_held for one in held), flush=True)


def main(style: str, address: str, locks: str, lease: str) -> None:
    if style == "threads":
        hold(address, int(locks), int(lease))
    else:
        asyncio.run(hold_aio(address, int(locks), int(lease)))


if __name__ == "__main__":
    main(*sys.argv[1:])
