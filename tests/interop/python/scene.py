"""What a case has at hand: servers, clients, threads and processes, all ended with the case."""

import concurrent.futures
import os
import queue
import signal
import subprocess
import sys
import threading

from server import DEADLINE_S, Server

HOLDER = os.path.join(os.path.dirname(__file__), "holder.py")


class Scene:
    def __init__(self, api, binary, certificates):
        self.api = api
        self.certificates = certificates
        self._binary = binary
        self._servers = []
        self._clients = []
        self._processes = []
        self._threads = concurrent.futures.ThreadPoolExecutor(max_workers=16)

    def __enter__(self):
        return self

    def __exit__(self, raised, *_):
        if raised:
            # A client may be waiting for an answer that never comes: this ends it.
            for server in self._servers:
                server.kill()
        for process in self._processes:
            process.kill()
        for client in self._clients:
            _close(client, quietly=raised is not None)
        self._threads.shutdown(wait=raised is None)
        if not raised:
            for server in self._servers:
                server.stop()

    def server(self, *flags):
        """Starts one. Clients made without saying where use the latest."""
        self._servers.append(Server(self._binary, *flags))
        return self._servers[-1]

    def lock(self, key, **options):
        return self._client("DistributedLock", key, **options)

    def semaphore(self, key, limit, **options):
        return self._client("DistributedSemaphore", key, limit=limit, **options)

    def signals(self, **options):
        """A connection that publishes and subscribes."""
        conn = self.api.make("SignalConn", server=self._servers[-1].address, **options)
        self._clients.append(conn)
        conn.connect()
        return conn

    def connection(self):
        """A bare connection, for the functions of Api.call."""
        conn = self.api.call("open_conn", *self._servers[-1].address, ssl_context=None,
                             connect_timeout_s=DEADLINE_S)
        self._clients.append(Connection(self.api, conn))
        return self._clients[-1]

    def in_background(self, function, *args):
        return self._threads.submit(function, *args)

    def process(self, key, lease):
        """A client in a process of its own, which may be stopped and killed."""
        self._processes.append(HolderProcess(self.api, self._servers[-1], key, lease))
        return self._processes[-1]

    def _client(self, class_name, key, at=None, wait=0, lease=60, **options):
        servers = [server.address for server in at or self._servers[-1:]]
        client = self.api.make(class_name, key, acquire_timeout_s=wait, lease_ttl_s=lease,
                               servers=servers, **options)
        self._clients.append(client)
        return client


class Connection:
    """A bare connection of the client's, and the client's functions that take one."""

    def __init__(self, api, conn):
        self._api = api
        self._conn = conn

    def __getattr__(self, function_name):
        return lambda *args, **options: self._api.call(function_name, self._conn, *args, **options)

    def close(self):
        # Closing is a coroutine in the async API only, and never needs to be waited for.
        getattr(self._conn, "close_nowait", self._conn.close)()


class HolderProcess:
    def __init__(self, api, server, key, lease):
        port = str(server.address[1])
        self._process = subprocess.Popen(
            [sys.executable, HOLDER, api.name, port, key, str(lease)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        self._said = queue.Queue()
        threading.Thread(target=self._hear, daemon=True).start()

    def _hear(self):
        for line in self._process.stdout:
            self._said.put(line.strip())

    def await_line(self, line):
        """What it says next: `held`, or `lost` once it has noticed."""
        said = self._said.get(timeout=DEADLINE_S)
        assert said == line, f"the holder said {said!r}, not {line!r}"

    def stop(self):
        self._process.send_signal(signal.SIGSTOP)

    def resume(self):
        self._process.send_signal(signal.SIGCONT)

    def kill(self):
        self._process.kill()
        self._process.wait(DEADLINE_S)


def _close(client, quietly):
    try:
        client.close()
    except Exception:
        if not quietly:
            raise
