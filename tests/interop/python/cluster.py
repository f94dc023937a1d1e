"""Three servers on three members of etcd, on loopback, each of which passes on what it is asked."""

import os
import pathlib
import secrets
import shutil
import socket
import subprocess

from server import DEADLINE_S, await_that, stats_of

DETECT_S = 0.5
NODES = 3


class Cluster:
    def __init__(self, binary, etcd, folder):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._binary = binary
        self._folder = folder
        ports = iter(free_ports(3 * NODES))
        self.addresses = [("127.0.0.1", next(ports)) for _ in range(NODES)]
        self._members = self._start_members(etcd, ports)
        self._secret = folder / "secret"
        self._secret.write_text(secrets.token_hex(32) + "\n")
        self._secret.chmod(0o600)
        self._servers = [self._start_server(node) for node in range(NODES)]

    def _start_members(self, etcd, ports):
        clients, peers = ([f"http://127.0.0.1:{next(ports)}" for _ in range(NODES)] for _ in "ab")
        self._endpoints = ",".join(url.removeprefix("http://") for url in clients)
        mesh = ",".join(f"m{i}={url}" for i, url in enumerate(peers))
        return [self._start(f"m{i}", [
            etcd, "--name", f"m{i}", "--data-dir", str(self._folder / f"m{i}"),
            "--log-level", "error", "--initial-cluster", mesh,
            "--listen-client-urls", clients[i], "--advertise-client-urls", clients[i],
            "--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i],
        ]) for i in range(NODES)]

    def _start_server(self, node):
        host, port = self.addresses[node]
        return self._start(f"n{node}", [
            self._binary, "--port", str(port), "--http-addr", "off", "--advertise-addr", f"{host}:{port}",
            "--node-id", f"n{node}", "--etcd", self._endpoints, "--etcd-detect", str(DETECT_S),
            "--cluster-secret-file", str(self._secret),
        ])

    def _start(self, name, words):
        settings = {k: v for k, v in os.environ.items() if not k.startswith("LOCKD_SERVER_")}
        with open(self._folder / f"{name}.log", "ab") as log:
            return subprocess.Popen(words, stdout=log, stderr=log, env=settings)

    def leader(self):
        """Waits until one of them says that it leads, and returns which."""
        leaders = []
        await_that(lambda: leaders.extend(filter(self._leads, range(NODES))) or leaders,
                   "one of the servers leads")
        return leaders[0]

    def _leads(self, node):
        try:
            return self.stats(node)["cluster"]["role"] == "leader"
        except OSError:
            return False

    def stats(self, node):
        return stats_of(self.addresses[node])

    def leaders_stats(self):
        return self.stats(self.leader())

    def await_service(self):
        """Until each of them has something granted, by itself or by the leader."""
        for address in self.addresses:
            await_that(lambda at=address: serves(at), f"{address} serves")

    def kill_leader(self):
        """With SIGKILL, and waits until another leads."""
        victim = self.leader()
        self._servers[victim].kill()
        self._servers[victim].wait(DEADLINE_S)
        self.leader()

    def start_again(self, node):
        self._servers[node] = self._start_server(node)
        self.await_service()

    def stop(self):
        for process in self._servers + self._members:
            process.kill()
            process.wait(DEADLINE_S)

    def logs(self):
        files = sorted(pathlib.Path(self._folder).glob("*.log"))
        return "\n".join(f"--- {file.name}\n{file.read_text(errors='replace')[-4000:]}"
                         for file in files)


def serves(address):
    try:
        with socket.create_connection(address, timeout=DEADLINE_S) as connection:
            connection.sendall(b"l\nserves\n0 60\n")
            return connection.makefile("rb").readline().startswith(b"ok ")
    except OSError:
        return False


def free_ports(count):
    """Ports that nobody listens on, and nobody is given meanwhile."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
