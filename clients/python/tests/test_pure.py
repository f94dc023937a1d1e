"""What needs no server: lines, addresses, shards, certainty, the search for a leader."""

from __future__ import annotations

import unittest

from lockd import errors, shard_of
from lockd._certainty import Certainty
from lockd._cluster import Address, Cluster, LeaderSearch
from lockd._options import Options
from lockd._replies import check, fence_of, grant_of, loss_of, remaining_of, signal_of, stats_of
from lockd._requests import (
    Wanted,
    auth_lines,
    client_lines,
    listen_lines,
    publish_lines,
)


def options(**changes: object) -> Options:
    given: dict[str, object] = {
        "token": None,
        "token_file": None,
        "tls": None,
        "name": None,
        "note": None,
        "connect_timeout": 1.0,
        "reply_timeout": 1.0,
        "release_timeout": 1.0,
    }
    given.update(changes)
    return Options(**given)  # type: ignore[arg-type]


class Requests(unittest.TestCase):
    def test_are_three_lines(self) -> None:
        lock = Wanted("a key", 30)
        self.assertEqual(lock.acquire(10), b"l\na key\n10 30\n")
        self.assertEqual(
            lock.acquire(0, "0123456789abcdef"), b"l\na key\n0 30 as=0123456789abcdef\n"
        )
        self.assertEqual(lock.enqueue(), b"e\na key\n30\n")
        self.assertEqual(lock.await_turn(5), b"w\na key\n5\n")
        self.assertEqual(lock.renew("t", 30), b"n\na key\nt 30\n")
        self.assertEqual(lock.release("t"), b"r\na key\nt\n")
        self.assertEqual(Wanted("k").enqueue(), b"e\nk\n\n")
        slot = Wanted("pool", None, 3)
        self.assertEqual(slot.acquire(1), b"sl\npool\n1 3\n")
        self.assertEqual(slot.enqueue("0123456789abcdef"), b"se\npool\n3 as=0123456789abcdef\n")
        self.assertEqual(slot.release("t"), b"sr\npool\nt\n")

    def test_say_what_they_share(self) -> None:
        reader = Wanted("k", 30, shared=True)
        self.assertEqual(
            reader.acquire(1, "0123456789abcdef"), b"l\nk\n1 30 shared as=0123456789abcdef\n"
        )
        self.assertEqual(reader.enqueue(), b"e\nk\n30 shared\n")
        self.assertEqual(reader.renew("t", 30), b"n\nk\nt 30\n")
        job = Wanted("pool", 30, 5, permits=4)
        self.assertEqual(job.acquire(1), b"sl\npool\n1 5 30 4\n")
        self.assertEqual(job.enqueue("0123456789abcdef"), b"se\npool\n5 30 4 as=0123456789abcdef\n")
        self.assertEqual(job.release("t"), b"sr\npool\nt\n")
        self.assertEqual(
            [w.is_plain for w in (reader, job, Wanted("k", 1, 5, permits=1))], [False, False, True]
        )

    def test_name_never_less_than_the_wait(self) -> None:
        named = Wanted("k").wait_to_name
        self.assertEqual([named(wait) for wait in (0, 0.1, 1, 1.5)], [0, 1, 1, 2])
        self.assertEqual(named(float("inf")), 9_223_372_036)

    def test_that_no_server_takes_are_not_sent(self) -> None:
        for make in (
            lambda: Wanted(""),
            lambda: Wanted("a\nb"),
            lambda: Wanted("é" * 129),
            lambda: Wanted("\udc80"),
            lambda: Wanted("k", 0),
            lambda: Wanted("k", 1.5),  # type: ignore[arg-type]
            lambda: Wanted("k", None, 0),
            lambda: Wanted("k", None, 4, permits=0),
            lambda: Wanted("k", None, 4, permits=-1),
            lambda: Wanted("k", None, 4, permits=5),
            lambda: Wanted("k", None, 4, permits=1.5),  # type: ignore[arg-type]
            lambda: Wanted("k", permits=2),
            lambda: Wanted("k", None, 4, shared=True),
            lambda: auth_lines(" "),
            lambda: client_lines("", ""),
            lambda: listen_lines("a.>.b", None),
            lambda: listen_lines("a*", None),
            lambda: listen_lines("a", " g"),
            lambda: publish_lines("a.*", "x"),
            lambda: publish_lines("a", " "),
            lambda: publish_lines("a", b"x" * 65_536),
        ):
            with self.assertRaises(errors.InvalidRequest):
                make()

    def test_of_signals(self) -> None:
        self.assertEqual(listen_lines("a.*.>", "g h"), b"listen\na.*.>\ng h\n")
        self.assertEqual(publish_lines("a.b", "ü x"), "signal\na.b\nü x\n".encode())
        self.assertEqual(publish_lines("a", b"\xff"), b"signal\na\n\xff\n")


class Replies(unittest.TestCase):
    def test_grants(self) -> None:
        token = "00000000000000ff0123456789abcdef"
        grant = grant_of(f"ok {token} 33", 5.0, None)
        assert grant is not None
        self.assertEqual((grant.token, grant.lease, grant.sent_at), (token, 33, 5.0))
        self.assertEqual(fence_of(token), 255)
        self.assertIsNone(grant_of("timeout", 0, None))
        self.assertIsNone(grant_of("queued", 0, None))

    def test_no_lease_is_longer_than_what_was_asked(self) -> None:
        grant = grant_of("acquired t 99", 0, 10)
        assert grant is not None
        self.assertEqual(grant.lease, 10)
        self.assertEqual(remaining_of("ok 99", 10), 10)
        self.assertEqual(remaining_of("ok 0", 10), 1)

    def test_tokens_of_others_have_no_fence(self) -> None:
        self.assertEqual(fence_of("short"), 0)
        self.assertEqual(fence_of("+_00000000000000ff"), 0)

    def test_who_leads(self) -> None:
        for reply, leader in {"error_not_leader a:1": "a:1", "error_not_leader -": None}.items():
            with self.assertRaises(errors.NotLeader) as raised:
                check(reply)
            self.assertEqual(raised.exception.leader, leader)

    def test_garbled(self) -> None:
        for reply in ("ok", "ok t", "ok t x", "ok t -1", "ok t 0", "ok  30", "ok t ٣"):
            with self.assertRaises(errors.Garbled):
                grant_of(reply, 0, None)
        for reply in ("ok {", "ok []", "ok"):
            with self.assertRaises(errors.Garbled):
                stats_of(reply)

    def test_pushes(self) -> None:
        signal = signal_of(b"sig a.b some \xff text")
        assert signal is not None
        self.assertEqual(signal, ("a.b", b"some \xff text"))
        self.assertEqual(signal.text, "some � text")
        self.assertEqual(loss_of(b"lost t revoked a key"), ("t", "revoked"))
        self.assertIsNone(loss_of(b"ok"))


class Addresses(unittest.TestCase):
    def test_forms(self) -> None:
        for text, address in {
            "a": ("a", 6388),
            "a:1": ("a", 1),
            "::1": ("::1", 6388),
            "[::1]": ("::1", 6388),
            "[::1]:7": ("::1", 7),
        }.items():
            self.assertEqual(Address.parse(text), address)
        self.assertEqual(str(Address("::1", 7)), "[::1]:7")

    def test_no_addresses(self) -> None:
        for text in (
            "",
            ":1",
            "a:",
            "a:0",
            "a:65536",
            "a:x",
            "[::1",
            "[]:1",
            "[::1]x",
            "a b",
            "a:-1",
        ):
            with self.assertRaises(errors.InvalidRequest, msg=text):
                Address.parse(text)

    def test_shards_are_those_of_all_clients(self) -> None:
        self.assertEqual(shard_of("my-key", 3), 2)
        self.assertEqual(shard_of("orders/42", 5), 1)
        self.assertEqual(shard_of("my-job", 4), 0)
        self.assertEqual(shard_of("clé-日本", 3), 2)


class CertaintyTest(unittest.TestCase):
    def test_ends_by_itself_and_for_good(self) -> None:
        certainty = Certainty(10.0)
        self.assertTrue(certainty.lasts(9.999))
        self.assertFalse(certainty.lasts(10.0))
        self.assertFalse(certainty.lasts(9.0))
        self.assertFalse(certainty.extend(9.0, 20.0))
        self.assertFalse(certainty.end(9.0))

    def test_is_extended_while_it_lasts(self) -> None:
        certainty = Certainty(10.0)
        self.assertTrue(certainty.extend(9.0, 20.0))
        self.assertTrue(certainty.lasts(19.0))
        self.assertTrue(certainty.extend(19.0, 19.5))
        self.assertFalse(certainty.lasts(19.5))

    def test_a_confirmation_that_comes_late_revives_nothing(self) -> None:
        certainty = Certainty(10.0)
        self.assertFalse(certainty.extend(10.0, 20.0))
        self.assertFalse(certainty.lasts(10.0))

    def test_is_ended(self) -> None:
        certainty = Certainty(10.0)
        self.assertTrue(certainty.end(5.0))
        self.assertEqual(certainty.until, 5.0)
        self.assertFalse(certainty.lasts(5.0))


class Search(unittest.TestCase):
    def search(self, *names: str) -> LeaderSearch:
        return LeaderSearch(Cluster([Address.parse(name) for name in names], options()))

    def test_goes_to_each_once_a_round(self) -> None:
        search = self.search("a", "b", "c")
        gone = errors.Unreachable("gone")
        visited = []
        for _ in range(6):
            visited.append(search.here)
            search.move_on(gone, 1.0)
        self.assertEqual(sorted(visited[:3]), [0, 1, 2])
        self.assertEqual(sorted(visited[3:]), [0, 1, 2])

    def test_follows_a_name_that_was_given_and_no_other(self) -> None:
        search = self.search("a", "b", "c")
        search.move_on(errors.NotLeader("", leader="c:6388"), 0)
        self.assertEqual(search.here, 2)
        search.move_on(errors.NotLeader("", leader="evil:6388"), 0)
        self.assertEqual(search.here, 1)
        self.assertIn('"evil:6388" was named, and was not given', str(search.verdict()))
        self.assertIsInstance(search.verdict(), errors.NotLeader)

    def test_two_who_name_each_other_keep_nobody_from_the_third(self) -> None:
        search = self.search("a", "b", "c")
        search.move_on(errors.NotLeader("", leader="b"), 0)
        self.assertEqual(search.here, 1)
        search.move_on(errors.NotLeader("", leader="a"), 0)
        self.assertEqual(search.here, 2)

    def test_pauses_grow_up_to_a_bound(self) -> None:
        search = self.search("a")
        pauses = []
        for _ in range(8):
            search.move_on(errors.Unreachable("gone"), 100.0)
            pauses.append(round(search.not_before - 100.0, 3))
        self.assertEqual(pauses, [0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0])

    def test_is_hopeless_when_waiting_cures_nobody(self) -> None:
        search = self.search("a", "b")
        search.move_on(errors.Untrusted("forged"), 0)
        search.move_on(errors.Unreachable("gone"), 0)
        self.assertFalse(search.is_hopeless)
        self.assertIsInstance(search.verdict(), errors.Untrusted)
        search.move_on(errors.Untrusted("forged"), 0)
        search.move_on(errors.Untrusted("forged"), 0)
        self.assertTrue(search.is_hopeless)

    def test_a_cluster_has_bounds(self) -> None:
        for names in ([], ["a"] * 2, [f"a{n}" for n in range(17)]):
            with self.assertRaises(errors.InvalidRequest):
                Cluster([Address.parse(name) for name in names], options())


if __name__ == "__main__":
    unittest.main()
