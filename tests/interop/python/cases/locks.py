"""One holder at a time, in the order in which they asked."""

import re
import time

from cases import case
from server import DEADLINE_S, await_that


@case()
def taken_and_given_back(scene):
    server = scene.server()
    lock = scene.lock("diamond", lease=30)
    assert lock.acquire()
    assert re.fullmatch("[0-9a-f]{32}", lock.token) and lock.lease == 30
    assert server.held() == {"diamond"}
    assert lock.release()
    assert server.held() == set()


@case()
def tokens_sort_in_the_order_of_grants(scene):
    scene.server()
    tokens = []
    for _ in range(20):
        with scene.lock("diamond") as lock:
            tokens.append(lock.token)
    assert tokens == sorted(set(tokens))


@case()
def one_holder_at_a_time(scene):
    scene.server()
    with scene.lock("diamond"):
        assert not scene.lock("diamond").acquire()
        assert scene.lock("another").acquire()
    assert scene.lock("diamond").acquire()


@case()
def any_text_is_a_key(scene):
    server = scene.server()
    keys = {"clé-日本", "a.b/c:d", "k" * 256, '"\\'}
    for key in keys:
        assert scene.lock(key).acquire()
    assert server.held() == keys


@case()
def a_wait_times_out_and_not_early(scene):
    server = scene.server()
    assert scene.lock("diamond").acquire()
    began = time.monotonic()
    assert not scene.lock("diamond", wait=2).acquire()
    assert time.monotonic() - began >= 2
    assert server.waiters("diamond") == 0


@case()
def a_release_grants_to_who_waits(scene):
    server = scene.server()
    first, second = scene.lock("diamond"), scene.lock("diamond", wait=50)
    assert first.acquire()
    waiting = scene.in_background(second.acquire)
    server.await_waiters("diamond", 1)
    assert not waiting.done()
    assert first.release()
    assert waiting.result(DEADLINE_S)


@case()
def two_phases_on_a_free_lock(scene):
    scene.server()
    lock = scene.lock("diamond", lease=30)
    assert lock.enqueue() == "acquired"
    assert lock.token and lock.lease == 30
    assert lock.wait(0)
    assert lock.release()


@case()
def two_phases_on_a_held_lock(scene):
    server = scene.server()
    first, second = scene.lock("diamond"), scene.lock("diamond", lease=30)
    assert first.acquire()
    assert second.enqueue() == "queued"
    assert second.token is None
    assert first.release()
    # Granted before it asks: nobody else gets it meanwhile.
    assert server.held() == {"diamond"}
    assert not scene.lock("diamond").acquire()
    assert second.wait(50)
    assert second.token and second.lease == 30
    assert second.release()


@case()
def a_second_phase_that_times_out_gives_up_its_place(scene):
    server = scene.server()
    first, second, third = (scene.lock("diamond") for _ in range(3))
    assert first.acquire()
    assert second.enqueue() == "queued"
    assert third.enqueue() == "queued"
    assert not second.wait(1)
    server.await_waiters("diamond", 1)
    assert first.release()
    assert third.wait(50)


@case()
def first_come_first_served(scene):
    server = scene.server()
    first = scene.lock("diamond")
    assert first.acquire()
    served = []

    def take(number, wait_for_it):
        assert wait_for_it()
        served.append(number)  # still holding, so this is the order of the grants
        assert clients[number].release()

    clients = [scene.lock("diamond", wait=50) for _ in range(8)]
    turns = []
    for number, client in enumerate(clients):
        in_two_phases = number % 2 == 1
        if in_two_phases:
            assert client.enqueue() == "queued"
        wait_for_it = client.wait if in_two_phases else client.acquire
        turns.append(scene.in_background(take, number, wait_for_it))
        server.await_waiters("diamond", number + 1)
    assert first.release()
    for turn in turns:
        turn.result(DEADLINE_S)
    assert served == list(range(8))


@case()
def closing_releases(scene):
    server = scene.server()
    first, second = scene.lock("diamond"), scene.lock("diamond", wait=50)
    assert first.acquire()
    waiting = scene.in_background(second.acquire)
    server.await_waiters("diamond", 1)
    first.close()
    assert waiting.result(DEADLINE_S)


@case()
def closing_leaves_the_line(scene):
    server = scene.server()
    first, second = scene.lock("diamond"), scene.lock("diamond")
    assert first.acquire()
    assert second.enqueue() == "queued"
    second.close()
    server.await_waiters("diamond", 0)


@case()
def a_killed_holder_releases(scene):
    scene.server()
    holder = scene.process("diamond", lease=3600)
    holder.await_line("held")
    assert not scene.lock("diamond").acquire()
    holder.kill()
    assert scene.lock("diamond", wait=50).acquire()


@case()
def a_killed_waiter_leaves_the_line(scene):
    server = scene.server()
    first = scene.lock("diamond")
    assert first.acquire()
    waiter = scene.process("diamond", lease=3600)
    server.await_waiters("diamond", 1)
    waiter.kill()
    server.await_waiters("diamond", 0)
    assert first.release()
    assert scene.lock("diamond").acquire()


@case()
def a_killed_holder_keeps_its_lease_where_the_server_says_so(scene):
    server = scene.server("--no-auto-release-on-disconnect")
    holder = scene.process("diamond", lease=3600)
    holder.await_line("held")
    holder.kill()
    await_that(lambda: server.stats()["connections"] == 1, "only the one who asks is connected")
    assert server.held() == {"diamond"}
