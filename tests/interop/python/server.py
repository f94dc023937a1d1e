"""A server of a test's own, on a port that the system chose."""

import json
import os
import re
import socket
import subprocess
import threading
import time

# How long to wait for what must happen. Generous: only a failure takes that long.
DEADLINE_S = 60


def stats_of(address):
    with socket.create_connection(address, timeout=DEADLINE_S) as connection:
        connection.sendall(b"stats\n_\n_\n")
        status, _, body = connection.makefile("rb").readline().partition(b" ")
    assert status == b"ok", status
    return json.loads(body)


class Looks:
    """What is to be seen of a server, by its stats()."""

    def held(self):
        """The keys of the locks that are held."""
        return {lock["key"] for lock in self.stats()["locks"]}

    def waiters(self, key):
        stats = self.stats()
        lines = [entry["waiters"] for entry in stats["locks"] + stats["semaphores"]
                 if entry["key"] == key]
        return sum(lines)

    def await_waiters(self, key, count):
        await_that(lambda: self.waiters(key) == count, f"{count} wait for {key}")


class Server(Looks):
    def __init__(self, binary, *flags):
        settings = {k: v for k, v in os.environ.items() if not k.startswith("DFLOCKD_")}
        self._process = subprocess.Popen(
            [binary, "--port", "0", *flags], stderr=subprocess.PIPE, text=True, env=settings
        )
        self._terminated = False
        self._log = []
        self.address = ("127.0.0.1", self._read_port())
        # Nobody else reads its stderr, and a full pipe would stop it.
        threading.Thread(target=self._log.extend, args=(self._process.stderr,), daemon=True).start()

    def _read_port(self):
        for line in self._process.stderr:
            self._log.append(line)
            if listening := re.search(r'listening .*\bport=(\d+)', line):
                return int(listening[1])
        raise RuntimeError(f"the server did not start: {''.join(self._log)}")

    def stats(self):
        """What it says of itself, asked without any client. For servers without auth and TLS."""
        return stats_of(self.address)

    def terminate(self):
        """Begins to stop it, as an operator would."""
        if not self._terminated:
            self._terminated = True
            self._process.terminate()

    def stop(self):
        """Stops it, and insists that it went well."""
        self.terminate()
        status = self._process.wait(DEADLINE_S)
        assert status == 0, f"the server ended with {status}: {''.join(self._log)}"

    def kill(self):
        self._process.kill()
        self._process.wait(DEADLINE_S)


def await_that(is_true, what):
    """Polls until it is; for what a client causes and cannot itself see."""
    until = time.monotonic() + DEADLINE_S
    while not is_true():
        assert time.monotonic() < until, f"never came true: {what}"
        time.sleep(0.02)
