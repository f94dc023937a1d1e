"""Servers for tests: the real one as a process, and one that plays scripts."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import IO, Callable, ClassVar

import lockd

ROOT = Path(__file__).resolve().parents[3]
SERVER = os.environ.get("LOCKD_TEST_SERVER", str(ROOT / "build" / "lockd"))
PATIENCE = 20.0  # how late a busy machine may be


def now() -> float:
    return time.monotonic()


def eventually(is_so: Callable[[], bool], what: str = "it") -> None:
    """Waits until it is so."""
    deadline = now() + PATIENCE
    while not is_so():
        if now() > deadline:
            raise AssertionError(f"{what} did not come about")
        time.sleep(0.005)


class Server:
    """A lockd of its own. It keeps its port when it is started again."""

    def __init__(self, *flags: str) -> None:
        self._flags = flags
        self._process: subprocess.Popen[str] | None = None
        self.port = 0
        self.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        in_memory = [] if "--wal" in self._flags else ["--memory"]
        self._process = subprocess.Popen(
            [SERVER, *in_memory, "--http-addr", "off", "--port", str(self.port), *self._flags],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        log = []
        for line in self._process.stderr:
            log.append(line)
            found = re.search(r"listening .*port=(\d+)", line)
            if found:
                self.port = int(found.group(1))
                self._reader = threading.Thread(target=_drain, args=(self._process.stderr,))
                self._reader.start()
                return
        self._process.wait(PATIENCE)
        raise AssertionError("the server did not start: " + "".join(log))

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> None:
        """As an operator does."""
        self.signal(signal.SIGTERM)
        self._end()

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self._end()

    def _end(self) -> None:
        assert self._process is not None
        self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        self._process = None

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.kill()


def _drain(pipe: IO[str]) -> None:
    with pipe:
        for _ in pipe:
            pass


class ServerCase(unittest.TestCase):
    """Tests that share one server, each with a client of its own."""

    flags: ClassVar[tuple[str, ...]] = ()
    server: ClassVar[Server]

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server(*cls.flags)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.__exit__()

    def setUp(self) -> None:
        self.locks = lockd.Client(self.server.address)
        self.addCleanup(self.locks.close)
        self.key = self.id()


class Peer:
    """One connection, as a script of a server sees it."""

    def __init__(self, server: FakeServer, connection: socket.socket) -> None:
        self._server = server
        self._socket = connection
        self._file = connection.makefile("rb")

    def request(self) -> tuple[str, str, str]:
        """The next request. ``EOFError`` when the client has gone."""
        lines = []
        for _ in range(3):
            line = self._file.readline()
            if not line.endswith(b"\n"):
                raise EOFError
            lines.append(line[:-1].decode())
        request = (lines[0], lines[1], lines[2])
        self._server.seen.append(request)
        return request

    def expect(self, command: str) -> tuple[str, str, str]:
        request = self.request()
        assert request[0] == command, f"{request} came, and not {command}"
        return request

    def send(self, text: str) -> None:
        self._socket.sendall(text.encode())

    def answer(self, command: str, *lines: str) -> tuple[str, str, str]:
        request = self.expect(command)
        self.send("".join(line + "\n" for line in lines))
        return request

    def wait_closed(self) -> None:
        with contextlib.suppress(OSError):
            while self._file.read(65536):
                pass

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)


Script = Callable[[Peer], None]


class FakeServer:
    """Plays a script for each connection: the first for the first, the last for all that follow."""

    def __init__(self, *scripts: Script) -> None:
        self.seen: list[tuple[str, str, str]] = []
        self.connections = 0
        self._scripts = scripts
        self._failures: list[BaseException] = []
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._start(self._accept)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def commands(self) -> list[str]:
        return [command for command, _, _ in self.seen]

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            script = self._scripts[min(self.connections, len(self._scripts) - 1)]
            self.connections += 1
            self._sockets.append(connection)
            self._start(lambda s=script, c=connection: self._play(s, c))  # type: ignore[misc]

    def _play(self, script: Script, connection: socket.socket) -> None:
        try:
            with connection:
                script(Peer(self, connection))
        except (EOFError, OSError):
            pass  # the client left
        except BaseException as failure:
            self._failures.append(failure)

    def _start(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, daemon=True)
        self._threads.append(thread)
        thread.start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE)

    def __enter__(self) -> FakeServer:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close()
        if self._failures and kind is None:
            raise self._failures[0]


TOKEN = "00000000000000070123456789abcdef"


def grants(lease: int = 30) -> Script:
    """A server of this project's next version, which grants everything."""

    def script(peer: Peer) -> None:
        while True:
            command, _, _ = peer.request()
            if command in ("l", "sl", "w", "sw"):
                peer.send(f"ok {TOKEN} {lease}\n")
            elif command in ("e", "se"):
                peer.send("queued\n")
            elif command in ("n", "sn"):
                peer.send(f"ok {lease}\n")
            else:
                peer.send("ok\n")

    return script


class Certificates:
    """An authority, a server's certificate for 127.0.0.1 and localhost, and a client's."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory()
        folder = Path(self._directory.name)
        self.ca, self.other_ca = str(folder / "ca.pem"), str(folder / "other.pem")
        self.server, self.server_key = str(folder / "server.pem"), str(folder / "server.key")
        self.client, self.client_key = str(folder / "client.pem"), str(folder / "client.key")
        for name in ("ca", "other"):
            _openssl(
                folder,
                f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
                f"-keyout {name}.key -out {name}.pem -subj /CN=test-{name}",
            )
        self._sign(folder, "server", "subjectAltName=IP:127.0.0.1,DNS:localhost")
        self._sign(folder, "client", "extendedKeyUsage=clientAuth")

    def _sign(self, folder: Path, name: str, extension: str) -> None:
        (folder / "extension").write_text(extension)
        _openssl(
            folder,
            f"req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
            f"-keyout {name}.key -out {name}.csr -subj /CN=test-{name}",
        )
        _openssl(
            folder,
            f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial "
            f"-days 2 -out {name}.pem -extfile extension",
        )

    def close(self) -> None:
        self._directory.cleanup()


def _openssl(folder: Path, arguments: str) -> None:
    subprocess.run(["openssl", *arguments.split()], cwd=folder, check=True, capture_output=True)
