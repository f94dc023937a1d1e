"""The installed client's two APIs, sync and async, behind one face.

The three generations of dflockd-client differ in their module names and in what they offer, and
hardly in how a lock is used. The async API is driven from plain threads, so that each case is
written once and runs over both.
"""

import asyncio
import importlib
import importlib.util
import inspect
import threading

from server import DEADLINE_S


class SyncApi:
    name = "sync"
    modules = ("dflockd_client._sync", "dflockd_client.sync_client")

    def __init__(self):
        self.module = importlib.import_module(_first_present(self.modules))

    def offers(self):
        """What this version can do, by the names that cases ask for."""
        options = self.module.DistributedLock.__dataclass_fields__
        offered = {
            "semaphores": hasattr(self.module, "DistributedSemaphore"),
            "signals": hasattr(self.module, "SignalConn"),
            "auth": "auth_token" in options,
            "tls": "ssl_context" in options,
            "bare connections": hasattr(self.module, "open_conn"),
        }
        return {name for name, present in offered.items() if present}

    def make(self, class_name, *args, **options):
        return getattr(self.module, class_name)(*args, **options)

    def call(self, function_name, *args, **options):
        """One of the module's functions: the client's lower level, where it has one."""
        return getattr(self.module, function_name)(*args, **options)

    def next_signal(self, signal_conn):
        return signal_conn.signals.get(timeout=DEADLINE_S)


class AsyncApi(SyncApi):
    name = "async"
    modules = ("dflockd_client._async", "dflockd_client.client")

    def __init__(self):
        super().__init__()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def make(self, class_name, *args, **options):
        return Blocking(super().make(class_name, *args, **options), self._run)

    def call(self, function_name, *args, **options):
        return self._run(super().call(function_name, *args, **options))

    def next_signal(self, signal_conn):
        return self._run(signal_conn.signals.get())

    def _run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(DEADLINE_S)


class Blocking:
    """An async client whose coroutines are called like functions, from any thread."""

    def __init__(self, client, run):
        self._client = client
        self._run = run

    def __getattr__(self, name):
        attribute = getattr(self._client, name)
        if not inspect.iscoroutinefunction(attribute):
            return attribute
        return lambda *args, **options: self._run(attribute(*args, **options))

    def close(self):
        self.aclose()

    def __enter__(self):
        self._run(self._client.__aenter__())
        return self

    def __exit__(self, *raised):
        self._run(self._client.__aexit__(*raised))


def _first_present(modules):
    return next(name for name in modules if importlib.util.find_spec(name))
