"""As many holders as the limit says."""

import time

from cases import case, raised_by
from server import DEADLINE_S


@case("semaphores")
def as_many_holders_as_the_limit(scene):
    server = scene.server()
    first, second, third = (scene.semaphore("pool", 2) for _ in range(3))
    assert first.acquire() and second.acquire()
    assert first.token != second.token
    assert not third.acquire()
    assert server.stats()["semaphores"] == [
        {"key": "pool", "limit": 2, "holders": 2, "waiters": 0}]
    assert first.release()
    assert third.acquire()


@case("semaphores")
def two_phases(scene):
    scene.server()
    first, second, third = (scene.semaphore("pool", 2, lease=30) for _ in range(3))
    assert first.enqueue() == "acquired" and first.lease == 30
    assert second.enqueue() == "acquired"
    assert third.enqueue() == "queued"
    assert first.release()
    assert third.wait(50) and third.lease == 30


@case("semaphores")
def the_first_sets_the_limit(scene):
    scene.server()
    first = scene.semaphore("pool", 2)
    assert first.acquire()
    assert "error_limit_mismatch" in str(raised_by(scene.semaphore("pool", 3).acquire))
    assert "error_limit_mismatch" in str(raised_by(scene.semaphore("pool", 3).enqueue))


@case("semaphores")
def an_idle_semaphore_keeps_its_limit_until_it_is_forgotten(scene):
    scene.server("--gc-interval", "0.1", "--gc-max-idle", "1")
    first = scene.semaphore("pool", 2)
    assert first.acquire()
    assert first.release()
    assert "error_limit_mismatch" in str(raised_by(scene.semaphore("pool", 3).acquire))
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            assert scene.semaphore("pool", 3).acquire()
            return
        except Exception as error:
            if "error_limit_mismatch" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.1)


@case("semaphores")
def a_lock_of_the_same_name_is_another_thing(scene):
    scene.server()
    assert scene.semaphore("diamond", 1).acquire()
    assert scene.lock("diamond").acquire()
    assert not scene.semaphore("diamond", 1).acquire()
