"""All there is to ask of a client, once."""

import sys

import lockd


def hold(locks: lockd.Client) -> None:
    held = locks.acquire("my-job", wait=5, lease=30, max_hold=600, on_lost=print)
    print(held.key, held.fence, held.lease, held.remaining, held.is_held, held.queued_again)
    held.release()

    try:
        locks.acquire("my-job", wait=0).release()
    except lockd.NotAcquired as busy:
        print(busy.key, busy.holder, busy.client, busy.waiters)  # None where the server is silent


def share(locks: lockd.Client) -> None:
    first = locks.acquire("printers", limit=2, wait=10)
    with locks.semaphore("printers", limit=2):
        place = locks.enqueue("printers", limit=2)  # joins the queue now, and waits later
        print("granted" if place.is_granted else "queued")
        first.release()
        place.wait(10).release()


def read_and_write(locks: lockd.Client) -> None:
    with locks.lock("report", shared=True, wait=10), locks.lock("report", shared=True, wait=10):
        print("two read")
    with locks.lock("report", wait=10):
        print("one writes")

    with locks.semaphore("gpus", limit=8, permits=4, wait=10, lease=30):
        print("a job of four")


def hold_several(locks: lockd.Client) -> None:
    with locks.acquire_all(["seat-12", "seat-13"], wait=10, lease=30) as seats:
        print(*seats.keys, "under one fence" if seats.fence else "")

    prices = lockd.SetItem("prices", shared=True)
    cores = lockd.SetItem("cores", limit=8, permits=4)
    with locks.acquire_all(["report", prices, cores], wait=10, lease=30) as job:
        print("a report alone, prices shared, four cores:", job.is_held)


def signal(locks: lockd.Client) -> None:
    with locks.listen("orders.>") as orders:  # group="..." shares them among its members
        print("reached", locks.publish("orders.42", "ready"))
        received = orders.next(10)
        if received is not None:
            print(f"{received.channel}: {received.text}")
    print(locks.stats()["connections"], "connections")


if __name__ == "__main__":
    with lockd.Client(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1") as locks:
        hold(locks)
        share(locks)
        read_and_write(locks)
        hold_several(locks)
        signal(locks)
