"""Publish and subscribe.

That something is *not* heard is shown by a last signal that is: one speaker's signals arrive in
order.
"""

import time

from cases import case
from server import await_that


@case("signals")
def everyone_who_listens_hears(scene):
    scene.server()
    first, second, speaker = (scene.signals() for _ in range(3))
    assert speaker.emit("orders.42", "nobody hears") == 0
    first.listen("orders.42")
    second.listen("orders.42")
    assert speaker.emit("orders.42", "paid, and in full") == 2
    for listener in (first, second):
        assert scene.api.next_signal(listener) == ("orders.42", "paid, and in full")


@case("signals")
def patterns(scene):
    server = scene.server()
    heard = {"a.b": ["a.b"], "a.*": ["a.b", "a.c"], "a.>": ["a.b", "a.c", "a.b.c"],
             "*.b": ["a.b"], ">": ["a", "a.b", "a.c", "a.b.c"]}
    listeners = {pattern: listening_to(scene, pattern) for pattern in heard}
    speaker = scene.signals()
    for channel, count in {"a": 1, "a.b": 5, "a.c": 3, "a.b.c": 2}.items():
        assert speaker.emit(channel, "x") == count
    assert speaker.emit("end", "x") == len(heard)
    for pattern, channels in heard.items():
        assert heard_until_the_end(scene, listeners[pattern]) == channels, pattern
    assert {entry["pattern"] for entry in server.stats()["signal_channels"]} == {*heard, "end"}


@case("signals")
def one_copy_however_many_patterns_match(scene):
    scene.server()
    listener, speaker = listening_to(scene, "a.>", "a.*", "*.b", "a.b"), scene.signals()
    assert speaker.emit("a.b", "x") == 1
    speaker.emit("end", "x")
    assert heard_until_the_end(scene, listener) == ["a.b"]


@case("signals")
def a_group_takes_turns(scene):
    scene.server()
    members = [listening_to(scene) for _ in range(3)]
    for member in members:
        member.listen("jobs.*", group="workers")
    everything, speaker = listening_to(scene, "jobs.>"), scene.signals()
    for number in range(9):
        assert speaker.emit(f"jobs.{number}", "x") == 2
    speaker.emit("end", "x")
    shares = [heard_until_the_end(scene, member) for member in members]
    assert [len(share) for share in shares] == [3, 3, 3]
    jobs = [f"jobs.{number}" for number in range(9)]
    assert sorted(sum(shares, [])) == jobs
    assert heard_until_the_end(scene, everything) == jobs


@case("signals")
def who_no_longer_listens_hears_nothing(scene):
    scene.server()
    listener, speaker = listening_to(scene, "a.*"), scene.signals()
    listener.listen("b.*", group="g")
    assert speaker.emit("a.1", "x") == 1
    assert speaker.emit("b.1", "x") == 1
    listener.unlisten("a.*")
    listener.unlisten("b.*", group="g")
    listener.unlisten("never.listened.to")
    assert speaker.emit("a.2", "x") == 0
    assert speaker.emit("b.2", "x") == 0
    speaker.emit("end", "x")
    assert heard_until_the_end(scene, listener) == ["a.1", "b.1"]


@case("signals")
def who_closes_hears_nothing(scene):
    server = scene.server()
    listener, speaker = listening_to(scene, "a.*"), scene.signals()
    listener.close()
    await_that(lambda: not server.stats()["signal_channels"], "nobody listens")
    assert speaker.emit("a.1", "x") == 0


@case("signals")
def in_order_amid_heartbeats(scene):
    scene.server()
    listener = scene.signals(heartbeat_interval_s=0.01)
    listener.listen("n")
    speaker = scene.signals(heartbeat_interval_s=0.01)
    for number in range(300):
        assert speaker.emit("n", str(number)) == 1
        assert scene.api.next_signal(listener) == ("n", str(number))


@case("signals")
def payloads_arrive_as_they_were(scene):
    scene.server()
    listener, speaker = scene.signals(), scene.signals()
    listener.listen("n")
    for payload in ("  two  spaces ", "日本", '{"json": "\\"}', "x" * 65_000):
        assert speaker.emit("n", payload) == 1
        assert scene.api.next_signal(listener) == ("n", payload)


@case("signals")
def heartbeats_keep_a_silent_connection(scene):
    scene.server("--read-timeout", "8")
    speaker = scene.signals(heartbeat_interval_s=0.5)
    time.sleep(17)
    assert speaker.emit("n", "still here") == 0


def listening_to(scene, *patterns):
    listener = scene.signals()
    for pattern in (*patterns, "end"):
        listener.listen(pattern)
    return listener


def heard_until_the_end(scene, listener):
    """The channels of all signals that came before the last."""
    channels = iter(lambda: scene.api.next_signal(listener).channel, "end")
    return list(channels)
