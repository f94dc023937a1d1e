"""Signals: patterns, groups, silence, and servers that go and come back."""

from __future__ import annotations

import unittest
import unittest.mock

import lockd

from .support import PATIENCE, FakeServer, Peer, Server, ServerCase, eventually, now


class Signals(ServerCase):
    def test_reach_those_who_listen(self) -> None:
        with self.locks.listen("orders.>") as orders, self.locks.listen("*.42") as answers:
            self.assertEqual(self.locks.publish("orders.42", "ready, ü"), 2)
            for subscription in (orders, answers):
                signal = subscription.next(PATIENCE)
                assert signal is not None
                self.assertEqual((signal.channel, signal.text), ("orders.42", "ready, ü"))
            self.assertEqual(self.locks.publish("others.1", b"\xff"), 0)
        eventually(lambda: self.locks.publish("orders.42", "x") == 0, "nobody")

    def test_come_in_order_and_by_iteration(self) -> None:
        with self.locks.listen("n") as numbers:
            for n in range(100):
                self.locks.publish("n", str(n))
            for expected, signal in zip(range(100), numbers):
                self.assertEqual(signal.text, str(expected))

    def test_a_wait_for_one_is_never_over_early(self) -> None:
        with self.locks.listen("quiet") as quiet:
            began = now()
            self.assertIsNone(quiet.next(0.3))
            self.assertGreaterEqual(now() - began, 0.3)
            stop = lockd.Stop()
            stop.set()
            with self.assertRaises(lockd.Cancelled):
                quiet.next(stop=stop)

    def test_that_are_not_asked_for_are_dropped_the_oldest_first(self) -> None:
        with self.locks.listen("flood") as flood:
            for n in range(1100):
                self.locks.publish("flood", str(n))
            eventually(lambda: flood.dropped == 76, "drops")
            first = flood.next(0)
            assert first is not None
            self.assertEqual(first.text, "76")

    def test_a_closed_subscription_says_so(self) -> None:
        subscription = self.locks.listen("x")
        subscription.close()
        with self.assertRaises(lockd.Cancelled):
            subscription.next(PATIENCE)


class Interruptions(unittest.TestCase):
    def wait_for_gap(self, subscription: lockd.Subscription, count: int) -> None:
        eventually(lambda: subscription.gaps == count, "listening again")

    def test_a_server_that_came_back_is_listened_to_again(self) -> None:
        with Server() as server, lockd.Client(server.address) as locks:
            with locks.listen("a") as subscription:
                for _ in range(2):
                    gaps = subscription.gaps
                    server.kill()
                    server.start()
                    self.wait_for_gap(subscription, gaps + 1)
                    self.assertEqual(locks.publish("a", "x"), 1)
                    self.assertIsNotNone(subscription.next(PATIENCE))

    def test_silence_is_asked_about(self) -> None:
        def quiet(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("listen", "ok")
            peer.answer("ping", "ok")
            peer.answer("ping", "sig a alive", "ok")
            peer.expect("ping")  # and now it is dead
            peer.wait_closed()

        def again(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("listen", "ok", "sig a back")
            peer.wait_closed()

        with unittest.mock.patch("lockd._subscription._PING_INTERVAL", 0.2):
            with FakeServer(quiet, again) as server:
                with lockd.Client(server.address, reply_timeout=0.3) as locks:
                    with locks.listen("a", group="g") as subscription:
                        texts = []
                        for _ in range(2):
                            signal = subscription.next(PATIENCE)
                            assert signal is not None
                            texts.append(signal.text)
        self.assertEqual(texts, ["alive", "back"])
        self.assertEqual(
            server.commands(), ["client", "listen", "ping", "ping", "ping", "client", "listen"]
        )
        self.assertEqual(server.seen[-1], ("listen", "a", "g"))

    def test_the_interval_is_that_of_all_clients(self) -> None:
        from lockd import _subscription

        self.assertEqual(_subscription._PING_INTERVAL, 15)

    def test_a_server_that_no_longer_lets_us_in_ends_it(self) -> None:
        def once(peer: Peer) -> None:
            peer.answer("client", "ok")
            peer.answer("listen", "ok")

        def never(peer: Peer) -> None:
            peer.answer("client", "error_auth")

        with FakeServer(once, never) as server, lockd.Client(server.address) as locks:
            with locks.listen("a") as subscription, self.assertRaises(lockd.Unauthorized):
                subscription.next(PATIENCE)

    def test_several_servers_are_all_listened_to(self) -> None:
        with Server() as one, Server() as two:
            with lockd.Client([one.address, two.address]) as locks, locks.listen(">") as all_of_it:
                for channel in ("a", "b", "c", "d"):
                    self.assertEqual(locks.publish(channel, "x"), 1)
                channels = set()
                for _ in range(4):
                    signal = all_of_it.next(PATIENCE)
                    assert signal is not None
                    channels.add(signal.channel)
                self.assertEqual(channels, {"a", "b", "c", "d"})


if __name__ == "__main__":
    unittest.main()
