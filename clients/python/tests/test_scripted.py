"""What a client makes of servers that are newer, older, slow, wrong or gone."""

from __future__ import annotations

import json
import socket
import threading
import time
import unittest
import unittest.mock

import lockd

from .support import PATIENCE, TOKEN, FakeServer, Peer, eventually, free_port, grants, now


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

    def test_a_server_that_knows_it_knows_secrets_of_acquisitions(self) -> None:
        with FakeServer(grants()) as server, client(server) as locks:
            for _ in range(2):
                locks.acquire("k", wait=3, lease=9).release()
        first, second = (seen[2] for seen in server.seen if seen[0] == "l")
        self.assertRegex(first, r"^3 9 as=[0-9a-f]{16}$")
        self.assertNotEqual(first, second)

    def test_an_older_server_is_asked_again_without_it_and_remembered(self) -> None:
        def older(peer: Peer) -> None:
            self.assertEqual(peer.answer("l", f"ok {TOKEN} 30")[2], "0")
            peer.answer("r", "ok")

        with FakeServer(Peer.refuse_client, older) as server, client(server) as locks:
            locks.acquire("k", wait=0).release()
            locks.acquire("k", wait=0).release()
        self.assertEqual(server.commands(), ["client", "l", "r", "l", "r"])

    def test_an_older_server_may_leave_the_connection_open(self) -> None:
        def open_minded(peer: Peer) -> None:
            peer.answer("client", "error")
            peer.wait_closed()

        with FakeServer(open_minded, grants()) as server, client(server) as locks:
            locks.acquire("k", wait=0).release()
        self.assertEqual(server.connections, 2)


class Losses(unittest.TestCase):
    def told(
        self, *lines: str, wait: float = PATIENCE
    ) -> tuple[lockd.HeldLock, list[lockd.LockLost]]:
        """Of a lease so long that nothing but a line of the server's can end it."""

        def script(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("l", f"ok {TOKEN} 3000")
            time.sleep(0.1)
            peer.send("".join(line + "\n" for line in lines))
            peer.wait_closed()

        losses: list[lockd.LockLost] = []
        with FakeServer(script) as server, client(server) as locks:
            held = locks.acquire("a key", on_lost=losses.append)
            if held.wait_lost(wait) is not None:
                eventually(lambda: bool(losses), "the callback")
        return held, losses

    def test_are_told_by_the_server(self) -> None:
        for cause in ("expired", "revoked", "by-some-cause-of-tomorrow"):
            held, losses = self.told(f"lost {TOKEN} {cause} a key")
            self.assertEqual(losses[0].cause, cause)
            with self.assertRaises(lockd.LockLost) as raised:
                held.check()
            self.assertEqual(raised.exception.cause, cause)
            with self.assertRaises(lockd.LockLost):
                held.release()

    def test_of_others_are_none_of_ours(self) -> None:
        _, losses = self.told("lost x revoked a key", "sig a.b lost", wait=0.5)
        self.assertEqual(losses, [])

    def test_are_told_among_signals(self) -> None:
        _, losses = self.told("sig a.b x", f"lost {TOKEN} revoked a key", "sig a.b x")
        self.assertEqual(losses[0].cause, "revoked")

    def test_that_come_before_the_grant_keep_it_back(self) -> None:
        """The lock was over before its owner heard of it: what expired is asked for again."""

        def early(peer: Peer, cause: str = "expired") -> None:
            peer.answer("client", "ok")
            peer.answer("l", f"lost {TOKEN} {cause} k", f"ok {TOKEN} 3000")
            peer.wait_closed()

        with FakeServer(lambda peer: early(peer, "revoked")) as server, client(server) as locks:
            with self.assertRaises(lockd.LockLost) as raised:
                locks.acquire("k", wait=10)
            self.assertEqual(raised.exception.cause, "revoked")
        with FakeServer(early, grants()) as server, client(server) as locks:
            with locks.lock("k", wait=10) as held:
                self.assertTrue(held.is_held)
                self.assertTrue(held.queued_again)
        with FakeServer(early) as server, client(server) as locks:
            with self.assertRaises(lockd.LeaseExpired):
                locks.acquire("k", wait=0)

    def test_that_come_after_the_release_are_nothing(self) -> None:
        def late(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("l", f"ok {TOKEN} 3000")
            peer.answer("r", f"lost {TOKEN} expired k", "ok")
            peer.wait_closed()

        losses: list[lockd.LockLost] = []
        with FakeServer(late) as server, client(server) as locks:
            locks.acquire("k", on_lost=losses.append).release()
            time.sleep(0.1)
        self.assertEqual(losses, [])


class Certainty(unittest.TestCase):
    def test_counts_from_the_request_not_from_the_reply(self) -> None:
        """A grant that was half a lease under way is renewed before anybody gets it."""

        def slow(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.expect("l")
            time.sleep(1.0)
            peer.send(f"ok {TOKEN} 2\n")
            peer.answer("n", "ok 2")
            peer.wait_closed()

        with FakeServer(slow) as server, client(server) as locks:
            held = locks.acquire("k", wait=5, lease=2)
            self.assertGreater(held.remaining, 1.0)
            self.assertLessEqual(held.remaining, 2.0)
            self.assertEqual(server.commands(), ["client", "l", "n"])
            held.wait_lost(PATIENCE)

    def test_ends_with_the_lease_when_the_server_is_silent(self) -> None:
        def silent(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("l", f"ok {TOKEN} 2")
            peer.expect("n")
            peer.request()

        with FakeServer(silent) as server, client(server) as locks:
            began = now()
            held = locks.acquire("k", lease=2)
            granted = asked = now()
            while held.is_held:
                self.assertLess(asked - granted, 2.0)
                time.sleep(0.002)
                asked = now()
            self.assertGreaterEqual(now() - began, 2.0)
            loss = held.wait_lost(PATIENCE)
            assert loss is not None
            self.assertEqual(loss.cause, "unsure")
            with self.assertRaises(lockd.LockLost):
                held.check()
            # Nobody needs it any more, and the server is told.
            eventually(lambda: server.commands()[-2:] == ["n", "r"], "a release")

    def test_a_renewal_that_is_confirmed_late_revives_nothing(self) -> None:
        def late(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("l", f"ok {TOKEN} 1")
            peer.expect("n")
            time.sleep(1.2)
            peer.send("ok 1\n" * 5)
            peer.wait_closed()

        with FakeServer(late) as server, client(server) as locks:
            held = locks.acquire("k", lease=1)
            loss = held.wait_lost(PATIENCE)
            assert loss is not None
            self.assertEqual(loss.cause, "unsure")
            for _ in range(50):
                self.assertFalse(held.is_held)
                time.sleep(0.01)

    def test_a_renewal_at_a_third_of_the_lease_names_it(self) -> None:
        with FakeServer(grants(3)) as server, client(server) as locks:
            began = now()
            with locks.lock("k", lease=3) as held:
                eventually(lambda: "n" in server.commands(), "a renewal")
                self.assertGreaterEqual(now() - began, 0.9)
                self.assertLess(now() - began, 3.0)
                self.assertEqual(server.seen[-1], ("n", "k", f"{TOKEN} 3"))
                held.check()

    def test_a_server_that_cannot_tell_now_is_asked_again(self) -> None:
        def full(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("l", f"ok {TOKEN} 2")
            peer.answer("n", "error_storage")
            peer.answer("n", "error_storage")
            peer.answer("n", "ok 2")
            peer.answer("r", "ok")

        with FakeServer(full) as server, client(server) as locks, locks.lock("k", lease=2):
            eventually(lambda: server.commands().count("n") == 3, "three renewals")
            time.sleep(0.1)

    def test_is_kept_on_a_new_connection(self) -> None:
        def broken(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("l", f"ok {TOKEN} 30")
            time.sleep(0.1)

        with FakeServer(broken, grants(30)) as server, client(server) as locks:
            with locks.lock("k", lease=30) as held:
                eventually(lambda: "n" in server.commands(), "a renewal")
                time.sleep(0.1)
                held.check()
        self.assertEqual(server.commands(), ["client", "l", "client", "n", "r"])

    def test_is_over_at_once_when_the_server_released_with_the_connection(self) -> None:
        def broken(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("l", f"ok {TOKEN} 3000")

        def released(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("n", "error")

        with FakeServer(broken, released) as server, client(server) as locks:
            loss = locks.acquire("k").wait_lost(PATIENCE)
            assert loss is not None
            self.assertEqual(loss.cause, "refused")


class Answers(unittest.TestCase):
    def failure(self, *lines: str, wait: float = 0) -> lockd.LockdError:
        def script(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("l", *lines)
            peer.wait_closed()

        with FakeServer(script) as server, client(server, reply_timeout=0.5) as locks:
            with self.assertRaises(lockd.LockdError) as raised:
                locks.acquire("k", wait=wait)
        return raised.exception

    def test_that_make_no_sense(self) -> None:
        for line in ("", "hello", "ok", "ok x", f"ok {TOKEN} 0", "ok " + "x" * 300 + " 30"):
            self.assertIsInstance(self.failure(line), lockd.Garbled, line)

    def test_that_are_far_too_long(self) -> None:
        self.assertIsInstance(self.failure("x" * 2_000_000), lockd.Garbled)

    def test_that_do_not_come(self) -> None:
        self.assertIsInstance(self.failure(), lockd.NoReply)

    def test_that_say_why(self) -> None:
        self.assertIsInstance(self.failure("error_max_locks", wait=9), lockd.TooManyKeys)
        self.assertIsInstance(self.failure("error_storage", wait=9), lockd.StorageFull)
        self.assertIsInstance(self.failure("error_denied", wait=9), lockd.Denied)
        self.assertIsInstance(self.failure("error_auth", wait=9), lockd.Unauthorized)
        self.assertIsInstance(self.failure("error"), lockd.Refused)

    def test_a_server_that_means_it_is_not_asked_for_ever(self) -> None:
        with self.assertRaises(lockd.Refused):
            raise self.failure("error", wait=30)

    def test_at_every_byte_the_connection_may_end(self) -> None:
        whole = f"ok\nok {TOKEN} 30\n"
        for length in range(len(whole)):

            def cut(peer: Peer, text: str = whole[:length]) -> None:
                peer.expect("client")
                peer.send(text[:3])
                if len(text) >= 3:
                    peer.expect("l")
                    peer.send(text[3:])

            with FakeServer(cut) as server, client(server) as locks:
                with self.assertRaises(lockd.Disconnected):
                    locks.acquire("k", wait=0)

    def test_may_come_byte_by_byte_and_with_carriage_returns(self) -> None:
        def slowly(peer: Peer) -> None:
            peer.expect("client")
            for byte in "ok\r\n":
                peer.send(byte)
                time.sleep(0.002)
            peer.expect("l")
            for byte in f"sig a b\r\nok {TOKEN} 30\r\n":
                peer.send(byte)
                time.sleep(0.002)
            peer.answer("r", "ok")

        with FakeServer(slowly) as server, client(server) as locks:
            locks.acquire("k", wait=0).release()


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

    def test_are_not_made_up(self) -> None:
        for line in (
            "error",
            "error_denied",
            "error_not_leader -",
            "timeout",
            "hello",
            "ok 200",
            "ok 200 {",
            "ok 200 " + "[" * 100_000,
            'ok 200 {"locks":7}',
            'ok 200 {"locks":[7,{"kind":"lock","holds":[]},{"kind":"lock","holds":{"a":1}}]}',
            'ok 200 {"locks":[{"kind":"lock","holds":[{"holder":7},{"holder":""}]}]}',
            'ok 403 {"error":"denied"}',
            "x" * 2_000_000,
        ):
            busy = self.told(line)
            nobody = (busy.holder, busy.client, busy.waiters)
            self.assertEqual(nobody, (None, None, None), line[:80])
        busy = self.told(
            'ok 200 {"locks":[{"kind":"lock","waiters":-1,"holds":[{"holder":"a","client":7}]}]}'
        )
        self.assertEqual((busy.holder, busy.client, busy.waiters), ("a", None, None))

    def test_that_are_not_told_delay_the_answer_by_a_second_at_most(self) -> None:
        def silent(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("l", "timeout")
            peer.expect("api")
            peer.wait_closed()

        with FakeServer(silent) as server, client(server, reply_timeout=60) as locks:
            began = now()
            with self.assertRaises(lockd.NotAcquired) as raised:
                locks.acquire("k", wait=0)
            self.assertLess(now() - began, PATIENCE)
        self.assertIsNone(raised.exception.holder)
        self.assertIsNone(self.told().holder, "of a server that ends the connection instead")

    def test_are_asked_for_once_the_wait_is_over(self) -> None:
        def cuts(peer: Peer) -> None:
            while True:
                command, _, _ = peer.request()
                peer.send("ok\n" if command == "client" else "timeout\n")

        with FakeServer(cuts) as server, client(server) as locks:
            with self.assertRaises(lockd.NotAcquired):
                locks.acquire("k", wait=3)
        self.assertGreater(server.commands().count("l"), 1)
        self.assertNotIn("api", server.commands()[:-1])

    def test_a_caller_who_gives_up_waits_for_none(self) -> None:
        stop = lockd.Stop()

        def silent(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("l", "timeout")
            peer.expect("api")
            stop.set()
            peer.wait_closed()

        with FakeServer(silent) as server, client(server) as locks:
            with self.assertRaises(lockd.Cancelled):
                locks.acquire("k", wait=0, stop=stop)

    def test_are_not_asked_of_a_server_that_would_not_know(self) -> None:
        def older(peer: Peer) -> None:
            peer.answer("l", "timeout")
            peer.wait_closed()

        with FakeServer(Peer.refuse_client, older) as server, client(server) as locks:
            with self.assertRaises(lockd.NotAcquired) as raised:
                locks.acquire("k", wait=0)
        self.assertIsNone(raised.exception.holder)
        self.assertEqual(server.commands(), ["client", "l"])


class Waits(unittest.TestCase):
    def test_go_on_through_a_server_that_ends_them(self) -> None:
        """By a plain `error`, by `error_draining`, by closing: and say so."""

        def stops(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("l", "error")

        def drains(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("l", "error_draining")

        def closes(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.expect("l")

        with FakeServer(stops, drains, closes, grants()) as server, client(server) as locks:
            with locks.lock("k", wait=20) as held:
                self.assertTrue(held.queued_again)
        secrets = {seen[2].split(" ")[-1] for seen in server.seen if seen[0] == "l"}
        self.assertEqual(len(secrets), 1, "it is one acquisition")

    def test_that_the_server_cuts_are_asked_for_again(self) -> None:
        def cuts(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("l", "timeout")
            peer.answer("l", f"ok {TOKEN} 30")
            peer.wait_closed()

        with FakeServer(cuts) as server, client(server) as locks:
            with locks.lock("k", wait=20) as held:
                self.assertTrue(held.queued_again)

    def test_ask_for_what_is_left(self) -> None:
        def closes(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.expect("l")
            time.sleep(2.1)

        with FakeServer(closes, grants()) as server, client(server) as locks:
            locks.acquire("k", wait=9).release()
        named = [int(seen[2].split(" ")[0]) for seen in server.seen if seen[0] == "l"]
        self.assertEqual(named[0], 9)
        self.assertLessEqual(named[1], 7)

    def test_end_at_their_own_deadline(self) -> None:
        def closes(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.expect("l")

        with FakeServer(closes) as server, client(server) as locks:
            began = now()
            with self.assertRaises(lockd.Disconnected):
                locks.acquire("k", wait=1.2)
            self.assertLess(now() - began, 1.2 + PATIENCE)

    def test_for_a_server_that_is_down_go_on_until_the_deadline(self) -> None:
        with lockd.Client(f"127.0.0.1:{free_port()}") as locks:
            began = now()
            with self.assertRaises(lockd.Unreachable):
                locks.acquire("k", wait=1.0)
            self.assertLess(now() - began, 1.0 + PATIENCE)
            with self.assertRaises(lockd.Unreachable):
                locks.acquire("k", wait=0)
            with self.assertRaises(lockd.Unreachable):
                locks.stats()

    def test_for_a_server_that_does_not_let_us_in_end_at_once(self) -> None:
        def shut(peer: Peer) -> None:
            peer.answer("auth", "error_auth")

        def asks_for_none(peer: Peer) -> None:
            peer.answer("auth", "error")

        for script in (shut, asks_for_none):
            with FakeServer(script) as server:
                with lockd.Client(server.address, token="wrong") as locks:
                    with self.assertRaises(lockd.Unauthorized):
                        locks.acquire("k")

    def test_a_place_that_is_lost_is_asked_for_again(self) -> None:
        def forgets(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("e", "queued")

        with FakeServer(forgets, grants()) as server, client(server) as locks:
            with locks.enqueue("k").wait(10) as held:
                self.assertTrue(held.queued_again)
        self.assertEqual(server.commands(), ["client", "e", "client", "l", "r"])

    def test_a_place_whose_turn_passed_says_so(self) -> None:
        def lapsed(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("e", "queued")
            peer.answer("w", "error_lease_expired")
            peer.wait_closed()

        with FakeServer(lapsed) as server, client(server) as locks:
            with self.assertRaises(lockd.LeaseExpired):
                locks.enqueue("k").wait(10)


class Releases(unittest.TestCase):
    def test_are_repeated_on_a_new_connection(self) -> None:
        def breaks(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("l", f"ok {TOKEN} 30")
            peer.expect("r")

        def gone(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("r", "error")

        # Whether the first one did it nobody can tell: it was held until then.
        with FakeServer(breaks, gone) as server, client(server) as locks:
            locks.acquire("k").release()
        self.assertEqual(server.commands().count("r"), 2)

    def test_of_what_was_lost_say_so(self) -> None:
        def refuses(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("l", f"ok {TOKEN} 30")
            peer.answer("r", "error")
            peer.wait_closed()

        with FakeServer(refuses) as server, client(server) as locks:
            with self.assertRaises(lockd.LockLost) as raised:
                locks.acquire("k").release()
        self.assertEqual(raised.exception.cause, "refused")

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
    """Servers that are asked `barrier` whether they lead."""

    @staticmethod
    def follower(named: str) -> FakeServer:
        def script(peer: Peer) -> None:
            while True:
                command, _, _ = peer.request()
                peer.send("ok\n" if command == "client" else f"error_not_leader {named}\n")

        return FakeServer(script)

    @staticmethod
    def client(*addresses: str, connect_timeout: float = 5.0) -> lockd.Client:
        return lockd.Client(cluster=addresses, connect_timeout=connect_timeout)

    def test_the_leader_is_found_by_its_name(self) -> None:
        with FakeServer(grants()) as leader, self.follower(leader.address) as one:
            with self.follower(leader.address) as two:
                with self.client(one.address, two.address, leader.address) as locks:
                    with locks.lock("k"):
                        self.assertEqual(locks.server_of("k"), leader.address)
                    locks.acquire("k").release()
            self.assertEqual((one.connections, two.connections, leader.connections), (1, 0, 2))

    def test_an_address_that_was_not_given_is_never_asked(self) -> None:
        with FakeServer(grants()) as stranger, self.follower(stranger.address) as one:
            with self.follower("-") as two:
                with self.client(one.address, two.address, connect_timeout=0.5) as locks:
                    with self.assertRaises(lockd.NotLeader) as raised:
                        locks.acquire("k", wait=0)
        self.assertEqual(stranger.connections, 0)
        self.assertIn("was not given", str(raised.exception))

    def test_members_that_are_down_are_passed_by(self) -> None:
        with FakeServer(grants()) as leader:
            down = f"127.0.0.1:{free_port()}"
            with self.client(down, leader.address) as locks, locks.lock("k", wait=0):
                pass

    def test_an_election_is_waited_for(self) -> None:
        def elected(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("barrier", "error_not_leader -")

        with FakeServer(elected, elected, grants()) as one, self.follower("-") as two:
            with self.client(one.address, two.address) as locks:
                locks.acquire("k", wait=0).release()

    def test_what_is_held_is_held_on_at_the_next_leader(self) -> None:
        down = threading.Event()

        def leads(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("barrier", "ok")
            peer.answer("l", f"ok {TOKEN} 30")
            down.wait(PATIENCE)

        with FakeServer(leads, Peer.close) as one, FakeServer(grants()) as two:
            with self.client(one.address, two.address) as locks:
                with locks.lock("k", lease=30) as held:
                    down.set()
                    eventually(lambda: "n" in two.commands(), "a renewal")
                    time.sleep(0.1)
                    held.check()
                    self.assertEqual(locks.server_of("k"), two.address)
            self.assertEqual(two.commands()[-1], "r")

    def test_a_leader_that_hangs_is_kept_while_others_are_asked(self) -> None:
        first_gone = threading.Event()

        def hangs(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("barrier", "ok")
            peer.answer("l", f"ok {TOKEN} 4")
            peer.wait_closed()
            first_gone.set()

        with FakeServer(hangs) as one, FakeServer(grants(4)) as two:
            with self.client(one.address, two.address) as locks:
                with locks.lock("k", lease=4) as held:
                    eventually(lambda: two.commands().count("n") >= 2, "two renewals")
                    held.check()
                    self.assertFalse(first_gone.is_set(), "to leave would be to release")
                self.assertTrue(first_gone.wait(PATIENCE))

    def test_a_follower_cannot_say_that_it_is_lost(self) -> None:
        def steps_down(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("barrier", "ok")
            peer.answer("l", f"ok {TOKEN} 3")
            peer.answer("n", "error_not_leader -")
            peer.wait_closed()

        with FakeServer(steps_down) as one, FakeServer(grants(3)) as two:
            with self.client(one.address, two.address) as locks:
                with locks.lock("k", lease=3) as held:
                    eventually(lambda: "n" in two.commands(), "a renewal")
                    time.sleep(0.1)
                    held.check()

    def test_a_wait_goes_on_at_the_next_leader(self) -> None:
        def steps_down(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("barrier", "ok")
            peer.answer("l", "error_not_leader -")
            peer.wait_closed()

        with FakeServer(steps_down, Peer.close) as one, FakeServer(grants()) as two:
            with self.client(one.address, two.address) as locks, locks.lock("k", wait=9):
                self.assertEqual(locks.server_of("k"), two.address)


class Stats(unittest.TestCase):
    def test_may_be_long(self) -> None:
        def script(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("stats", 'ok {"locks":["' + "x" * 3_000_000 + '"]}')

        with FakeServer(script) as server, client(server) as locks:
            self.assertEqual(len(locks.stats()["locks"][0]), 3_000_000)


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
