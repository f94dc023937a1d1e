"""A program that holds a lock of a cluster, and says how it goes.

usage: cluster_actor.py KEY LEASE_S HOST:PORT...

``held FENCE QUEUED_AGAIN`` once it has it, after a wait without bound; ``lost CAUSE`` when it is
lost. A line comes in: it releases, and says ``released``.
"""

from __future__ import annotations

import sys

import lockd


def main(key: str, lease: str, *cluster: str) -> None:
    locks = lockd.Client(cluster=cluster)
    held = locks.acquire(
        key, lease=int(lease), on_lost=lambda loss: print("lost", loss.cause, flush=True)
    )
    print("held", held.fence, str(held.queued_again).lower(), flush=True)
    if sys.stdin.readline():
        held.release()
        print("released", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
