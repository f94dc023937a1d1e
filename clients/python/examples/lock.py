"""Does a job that only one process may do at a time."""

import sys

import lockd


def main() -> int:
    locks = lockd.Client(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1")
    try:
        # Wait in the queue for up to ten seconds. From then on the lock renews itself.
        with locks.lock("my-job", wait=10, lease=30) as held:
            for step in range(1, 4):
                # Before everything that cannot be undone: is it still ours?
                held.check()
                # Whatever is written to gets the fence, and refuses one smaller than it has seen.
                print(f"step {step} under fence {held.fence}")
    except lockd.NotAcquired as busy:
        print(f"not now: {busy}")
        return 1
    except lockd.LockLost as lost:
        print(f"lost: {lost}")
        return 1
    print("released")
    return 0


if __name__ == "__main__":
    sys.exit(main())
