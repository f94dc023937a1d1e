"""A network of our own: members of etcd, servers and clients, each in a namespace, and a switch
between them that loses, delays and reorders what they send.

Clients take locks, renew them and give them back, through whichever server grants them. What they
were told is a history, and judged by check_history as that of any cluster is.
"""

import argparse
import datetime
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

SKIPPED = 77
ETCD = os.environ.get("LOCKD_ETCD", "/usr/bin/etcd")
KEYS = [f"seat-{i}" for i in range(4)]
SWITCH = "switch"  # the namespace that has the other end of each link, and no address
LEADS = re.compile(r"^(\S+Z) .*cluster: this node leads, epoch (\d+)", re.MULTILINE)
RESET = struct.pack("ii", 1, 0)  # closing throws away what was not sent, as nobody waits for it


def ip(*words, namespace=None):
    where = ["ip", "-n", namespace] if namespace else ["ip"]
    return subprocess.run([*where, *words], check=True, capture_output=True, text=True)


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def link(name, address, namespace=None):
    """From there to the switch."""
    where = ["netns", namespace] if namespace else []
    ip("link", "add", f"v-{name}", "netns", SWITCH, "type", "veth", "peer", "name", "eth0", *where)
    ip("link", "set", f"v-{name}", "up", namespace=SWITCH)
    ip("addr", "add", f"{address}/24", "dev", "eth0", namespace=namespace)
    ip("link", "set", "lo", "up", namespace=namespace)
    ip("link", "set", "eth0", "up", namespace=namespace)


class Machine:
    """A namespace with an address of its own, and a link to the switch."""

    def __init__(self, name, number):
        self.name = name
        self.address = f"10.99.0.{number}"
        ip("netns", "add", name)
        link(name, self.address, name)
        self.process = None

    def start(self, words, log):
        with open(log, "ab") as out:
            self.process = subprocess.Popen(["ip", "netns", "exec", self.name, *words],
                                            stdout=out, stderr=out)

    def unplug(self, is_out=True):
        ip("link", "set", f"v-{self.name}", "down" if is_out else "up", namespace=SWITCH)


class Switch:
    """lossy_switch. Who sends and who receives is said by the beginnings of their names."""

    def __init__(self, program, seed, names):
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", SWITCH, program, str(seed), *(f"v-{name}" for name in names)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.await_ok()

    def await_ok(self):
        if self.process.stdout.readline() != "ok\n":
            sys.exit("lossy_switch has failed")

    def rule(self, sender, receiver, loss=0, least_ms=0, most_ms=0):
        """Of what goes that way so many percent are lost; the rest takes so long."""
        ends = [end if end == "*" else f"v-{end}" for end in (sender, receiver)]
        self.process.stdin.write(f"{ends[0]} {ends[1]} {loss} {least_ms} {most_ms}\n")
        self.process.stdin.flush()
        self.await_ok()

    def both_ways(self, one, other, **weather):
        self.rule(one, other, **weather)
        self.rule(other, one, **weather)

    def heal(self):
        self.rule("*", "*")


class Cluster:
    """Three members e0 to e2, three servers s0 to s2, and clients at c."""

    def __init__(self, programs, folder, seed, detect_s, secret=None):
        ip("netns", "add", SWITCH)
        link("c", "10.99.0.254")
        self.folder = folder
        self.members = [Machine(f"e{i}", 10 + i) for i in range(3)]
        self.servers = [Machine(f"s{i}", 20 + i) for i in range(3)]
        self.switch = Switch(programs.switch, seed,
                             ["c", *(machine.name for machine in self.members + self.servers)])
        peers = ",".join(f"{m.name}=http://{m.address}:2380" for m in self.members)
        for member in self.members:
            clients, mesh = f"http://{member.address}:2379", f"http://{member.address}:2380"
            member.start([ETCD, "--name", member.name, "--data-dir", f"{folder}/{member.name}",
                          "--log-level", "error", "--snapshot-count", "5000",
                          "--listen-client-urls", clients, "--advertise-client-urls", clients,
                          "--listen-peer-urls", mesh, "--initial-advertise-peer-urls", mesh,
                          "--initial-cluster", peers], f"{folder}/{member.name}.log")
        endpoints = ",".join(f"{m.address}:2379" for m in self.members)
        settings = ["--no-auto-release-on-disconnect"]
        if secret is not None:  # else nothing is forwarded
            (folder / "secret").write_text(secret)
            settings += ["--cluster-secret-file", f"{folder}/secret"]
        for node in self.servers:
            node.start([programs.server, "--host", node.address, "--port", "6388",
                        "--advertise-addr", f"{node.address}:6388", "--etcd", endpoints,
                        "--etcd-detect", str(detect_s), *settings], f"{folder}/{node.name}.log")

    def leader(self):
        """The server that grants, or None."""
        for node in self.servers:
            try:
                with Connection(node, timeout=1) as connection:
                    if connection.ask("barrier", "", "") == "ok":
                        return node
            except OSError:
                pass
        return None

    def await_leader(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if (node := self.leader()) is not None:
                return node
            time.sleep(0.05)
        self.fail("nobody leads, a minute after the network was healed")

    def reigns(self):
        """When each began, by now()'s clock, with the server and the epoch; in order."""
        ahead = time.time_ns() - now()
        found = []
        for node in self.servers:
            for stamp, epoch in LEADS.findall((self.folder / f"{node.name}.log").read_text()):
                began = datetime.datetime.fromisoformat(stamp).timestamp() * 1e9
                found.append((int(began) - ahead, node.name, int(epoch)))
        return sorted(found)

    def fail(self, words):
        for log in sorted(self.folder.glob("*.log")):
            print(f"--- {log.name}\n{log.read_text(errors='replace')[-4000:]}")
        sys.exit(f"{Path(sys.argv[0]).name}: {words}")

    def stop(self):
        for machine in self.servers + self.members:
            machine.process.kill()


class Connection:
    def __init__(self, node, timeout):
        self.node = node
        self.socket = socket.create_connection((node.address, 6388), timeout)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.lines = self.socket.makefile("r", encoding="utf-8", newline="\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lines.close()
        self.socket.close()

    def ask(self, command, key, argument):
        self.socket.sendall(f"{command}\n{key}\n{argument}\n".encode())
        line = self.lines.readline()
        if not line.endswith("\n"):
            raise ConnectionError("closed")
        return line.rstrip("\n")


def result_of(function, line):
    """As a history calls it."""
    if line.startswith("ok"):
        return "ok"
    if line == "timeout":
        return "timeout"
    if line.startswith("error_not_leader"):
        return "error:not_leader"
    return "error:not_held" if line == "error" and function != "acquire" else "error:refused"


class Client(threading.Thread):
    """Whatever has no answer it asks for again, elsewhere: so it hears what became of it."""

    def __init__(self, cluster, number, seed, lease_s):
        super().__init__(daemon=True)
        self.cluster = cluster
        self.number = number
        self.random = random.Random(seed + number)
        self.lease_s = lease_s
        self.over = threading.Event()
        self.told = []  # lines of the history
        self.key = None  # which it asks for, or holds
        self.secret = 0
        self.token = None
        self.renewals = 0

    def run(self):
        while not self.over.is_set():
            node = self.random.choice(self.cluster.servers)
            try:
                with Connection(node, timeout=self.lease_s) as connection:
                    while not self.over.is_set():
                        self.step(connection)
            except OSError:
                time.sleep(self.random.uniform(0, 0.1))

    def step(self, connection):
        if self.token is None:
            return self.acquire(connection)
        if self.renewals > 0:
            if self.ask(connection, "renew", "n", f"{self.token} {self.lease_s}") is None:
                self.token = None
            self.renewals -= 1
        else:
            self.ask(connection, "release", "r", self.token)
            self.token = None
        time.sleep(self.random.uniform(0, 0.1))

    def acquire(self, connection):
        if self.secret == 0:
            self.key, self.secret = self.random.choice(KEYS), self.random.getrandbits(62) + 1
        granted = self.ask(connection, "acquire", "l", f"1 {self.lease_s} as={self.secret:016x}")
        self.secret = 0
        if granted is not None:
            self.token, self.renewals = granted.split()[1], self.random.choice((0, 0, 1, 2))
            time.sleep(self.random.uniform(0, 0.1))

    def ask(self, connection, function, command, argument):
        """What it is answered, if that is `ok`. Raises OSError where nobody can know."""
        asked = {"proc": self.number, "f": function, "key": self.key, "kind": "lock", "limit": 1,
                 "ttl": self.lease_s, "timeout": 1, "via": "tcp", "srv": "c",
                 "node": connection.node.name, "call": now()}
        if function == "acquire":
            asked["rid"] = f"r{self.secret}"
        else:
            asked["fence"] = int(self.token[:16], 16)
        try:
            line = connection.ask(command, self.key, argument)
        except OSError:
            self.told.append({**asked, "gave_up": now(), "res": "info"})
            raise
        result = result_of(function, line)
        if function == "acquire" and result == "ok":
            asked["fence"] = int(line.split()[1][:16], 16)
        self.told.append({**asked, "ret": now(), "res": result})
        if result in ("error:not_leader", "error:refused"):
            raise ConnectionError(line)
        return line if result == "ok" else None


class Clients:
    def __init__(self, cluster, count, seed, lease_s):
        self.cluster = cluster
        self.seed = seed
        self.all = [Client(cluster, i + 1, seed, lease_s) for i in range(count)]
        for client in self.all:
            client.start()

    def granted_since(self, instant):
        """How many grants were asked for, and told, since then."""
        return sum(line["f"] == "acquire" and line["res"] == "ok" and line["call"] >= instant
                   for client in self.all for line in list(client.told))

    def finish(self):
        for client in self.all:
            client.over.set()
        for client in self.all:
            client.join(30)

    def write_history(self, path):
        """An answer's life is the last epoch that its server had begun; a failover lasts from when
        the leader before began, as nobody here knows how far that came."""
        reigns = self.cluster.reigns()
        lines = [line for client in self.all for line in client.told]
        for line in lines:
            begun = [epoch for began, node, epoch in reigns
                     if node == line["node"] and began <= line.get("ret", 0)]
            line["life"] = max(begun, default=0)
        for before, reign in zip(reigns, reigns[1:]):
            lines.append({"f": "failover", "srv": "c", "life": reign[2], "call": before[0],
                          "ret": reign[0]})
        lines.sort(key=lambda line: line["call"])
        head = [{"f": "run", "seed": self.seed}, {"f": "server", "srv": "c", "auto_release": False}]
        path.write_text("".join(json.dumps(line) + "\n" for line in head + lines))
        return len(reigns) - 1

    def judge(self, checker):
        """Ends with what is wrong, if anything is. How many failovers there were."""
        path = self.cluster.folder / "history.jsonl"
        failovers = self.write_history(path)
        judged = subprocess.run([checker, path], capture_output=True, text=True, check=False)
        if judged.returncode != 0:
            kept = shutil.copy(path, tempfile.mkdtemp())
            self.cluster.fail(f"{judged.stdout}{judged.stderr}\nthe history is {kept}")
        return failovers


class Programs:
    def __init__(self, server, folder):
        self.server = server
        self.switch = str(Path(folder) / "lossy_switch")
        self.checker = str(Path(folder) / "check_history")


def run_alone(play, **options):
    """Calls play(order) where everything is in namespaces that go with this process, whatever
    becomes of it. Where there can be none, or no switch, that is said, and it ends as skipped."""
    parser = argparse.ArgumentParser()
    parser.add_argument("server", help="lockd-ha")
    parser.add_argument("folder", help="which has lossy_switch and check_history")
    for name, default in options.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    order = parser.parse_args()
    order.programs = Programs(order.server, order.folder)
    if order.inside:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        subprocess.run(["mount", "-t", "tmpfs", "none", "/run/netns"], check=True)
        return play(order)
    if os.access("/run", os.W_OK):
        os.makedirs("/run/netns", exist_ok=True)
    alone = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    attempt = f"""mount -t tmpfs none /run/netns && ip netns add x &&
        ip link add v-a type veth peer name v-b && {order.programs.switch} 1 v-a v-b </dev/null"""
    tried = subprocess.run([*alone, "sh", "-c", attempt], capture_output=True, text=True,
                           check=False)
    if tried.returncode != 0:
        print(f"skipped: no networks of our own: {tried.stderr.strip().splitlines()[-1:]}")
        sys.exit(SKIPPED)
    sys.exit(subprocess.run([*alone, sys.executable, *sys.argv, "--inside"], check=False).returncode)
