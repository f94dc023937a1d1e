"""A client in a process of its own, for tests that stop it or kill it.

    holder.py <sync|async> <port> <key> <lease seconds>

Takes the lock, waiting for it, and says `held`; says `lost` when the client has noticed that.
"""

import logging
import sys
import time

from client import AsyncApi, SyncApi


class Losses(logging.Handler):
    """The log is the one place where every version of the client says that a lock is lost."""

    def emit(self, record):
        if "lost (renew failed)" in record.getMessage():
            print("lost", flush=True)


logging.getLogger().addHandler(Losses())
api_name, port, key, lease = sys.argv[1:]
api = {"sync": SyncApi, "async": AsyncApi}[api_name]()
lock = api.make("DistributedLock", key, acquire_timeout_s=50, lease_ttl_s=int(lease),
                servers=[("127.0.0.1", int(port))])
assert lock.acquire()
print("held", flush=True)
while True:
    time.sleep(60)
