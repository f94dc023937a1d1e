"""What callers in Python see of a server that plays a script.

What all clients do at such servers is in ``clients/conformance``.
"""

from __future__ import annotations

import json
import socket
import time
import unittest
import unittest.mock

import lockd

from .support import PATIENCE, TOKEN, FakeServer, Peer, eventually, grants


def client(*servers: FakeServer, **options: float) -> lockd.Client:
    given = {"connect_timeout": 5.0, "reply_timeout": 5.0, "release_timeout": 1.0, **options}
    return lockd.Client([server.address for server in servers], **given)  # type: ignore[arg-type]


class Identity(unittest.TestCase):
    def test_is_told_first(self) -> None:
        with FakeServer(grants()) as server:
            with lockd.Client(server.address, name="billing", note="n") as locks, locks.lock("k"):
                pass
        self.assertEqual(server.seen[0], ("client", "billing", "n"))
        self.assertEqual([seen[0] for seen in server.seen], ["client", "l", "r"])

    def test_is_user_host_and_process_by_default(self) -> None:
        with FakeServer(grants()) as server, client(server) as locks, locks.lock("k"):
            self.assertRegex(server.seen[0][1], r"^[^@]+@[^:]+:\d+$")
            self.assertNotIn("/", server.seen[0][2])

    def test_is_fit_for_a_line_whatever_the_program_is_called(self) -> None:
        for program, note in (("/a/b\nc\udc80", "bc"), ("x" * 500, "x" * 64), ("-c", "python")):
            with unittest.mock.patch("sys.argv", [program, "--password=1"]):
                with FakeServer(grants()) as server, client(server) as locks, locks.lock("k"):
                    self.assertEqual(server.seen[0][2], note)

    def test_comes_behind_the_auth_token(self) -> None:
        with FakeServer(grants()) as server:
            with lockd.Client(server.address, token=" secret\n") as locks, locks.lock("k"):
                pass
        self.assertEqual(server.seen[0], ("auth", "_", "secret"))
        self.assertEqual(server.commands(), ["auth", "client", "l", "r"])


class Losses(unittest.TestCase):
    def told(self, cause: str) -> tuple[lockd.HeldLock, list[lockd.LockLost]]:
        """Of a lease so long that nothing but a line of the server's can end it."""

        def script(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("l", f"ok {TOKEN} 3000")
            time.sleep(0.1)
            peer.send(f"lost {TOKEN} {cause} a key\n")
            peer.wait_closed()

        losses: list[lockd.LockLost] = []
        with FakeServer(script) as server, client(server) as locks:
            held = locks.acquire("a key", on_lost=losses.append)
            held.wait_lost(PATIENCE)
            eventually(lambda: bool(losses), "the callback")
        return held, losses

    def test_are_told_by_the_server(self) -> None:
        for cause in ("expired", "revoked", "by-some-cause-of-tomorrow"):
            held, losses = self.told(cause)
            self.assertEqual(losses[0].cause, cause)
            with self.assertRaises(lockd.LockLost) as raised:
                held.check()
            self.assertEqual(raised.exception.cause, cause)
            with self.assertRaises(lockd.LockLost):
                held.release()


class Conflicts(unittest.TestCase):
    def told(self, *answers: str, limit: int | None = None) -> lockd.NotAcquired:
        """Of a try that is refused by a server that says this of who is in the way."""

        def script(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("l" if limit is None else "sl", "timeout")
            _, call, query = peer.answer("api", *answers)
            self.assertEqual((call, json.loads(query)), ("GET /v1/locks", {"key": "a key é"}))
            if answers:
                peer.wait_closed()

        with FakeServer(script) as server, client(server) as locks:
            with self.assertRaises(lockd.NotAcquired) as raised:
                locks.acquire("a key é", wait=0, limit=limit)
        self.assertEqual((server.connections, server.commands().count("api")), (1, 1))
        return raised.exception

    def test_are_told_of_the_kind_that_is_wanted(self) -> None:
        line = (
            'ok 200 {"locks":[{"kind":"semaphore","waiters":9,"holds":[{"holder":"x"}]},'
            '{"kind":"lock","waiters":2,"holds":[{"holder":"tcp:17","client":"ann@build-7:4711"}]}]}'
        )
        busy = self.told(line)
        self.assertEqual(
            (busy.holder, busy.client, busy.waiters), ("tcp:17", "ann@build-7:4711", 2)
        )
        self.assertIn('held by "ann@build-7:4711"', str(busy))
        busy = self.told(line, limit=3)
        self.assertEqual((busy.holder, busy.client, busy.waiters), ("x", None, 9))
        self.assertIn('held by "x"', str(busy))


class Releases(unittest.TestCase):
    def test_do_not_wait_for_ever(self) -> None:
        def hangs(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("l", f"ok {TOKEN} 30")
            peer.wait_closed()

        with FakeServer(hangs) as server, client(server, release_timeout=0.3) as locks:
            held = locks.acquire("k")
            with self.assertRaises(lockd.ConnectionFailed):
                held.release()
            self.assertFalse(held.is_held)
            held.release()  # once is enough
            with locks.lock("k"):
                pass  # the end of a block leaves it to the lease


class Clusters(unittest.TestCase):
    def test_say_which_server_leads(self) -> None:
        def follows(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("barrier", f"error_not_leader {leader.address}")

        with FakeServer(grants()) as leader, FakeServer(follows) as one:
            with lockd.Client(cluster=[one.address, leader.address]) as locks, locks.lock("k"):
                self.assertEqual(locks.server_of("k"), leader.address)


class Names(unittest.TestCase):
    def test_that_lead_nowhere(self) -> None:
        with lockd.Client("no-such-host.invalid", connect_timeout=3) as locks:
            with self.assertRaises(lockd.Unreachable):
                locks.acquire("k", wait=0)

    def test_a_name_server_that_is_gone_takes_nobody_with_it(self) -> None:
        lookups: list[str] = []
        real = socket.getaddrinfo

        def flaky(host: object, *arguments: object, **more: object) -> object:
            if host == "locks.test":
                lookups.append("locks.test")
                if len(lookups) > 1:
                    raise socket.gaierror(socket.EAI_AGAIN, "gone")
                host = "127.0.0.1"
            return real(host, *arguments, **more)  # type: ignore[arg-type]

        with FakeServer(grants()) as server, unittest.mock.patch("socket.getaddrinfo", flaky):
            with lockd.Client(f"locks.test:{server.port}") as locks:
                locks.acquire("k", wait=0).release()
                locks.acquire("k", wait=0).release()
        self.assertEqual(server.connections, 2)


if __name__ == "__main__":
    unittest.main()
