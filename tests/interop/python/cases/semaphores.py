"""As many holders as the limit says."""

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
def a_release_grants_to_who_waits(scene):
    server = scene.server()
    holders = [scene.semaphore("pool", 3) for _ in range(3)]
    for holder in holders:
        assert holder.acquire()
    waiting = scene.in_background(scene.semaphore("pool", 3, wait=50).acquire)
    server.await_waiters("pool", 1)
    assert holders[1].release()
    assert waiting.result(DEADLINE_S)


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
def two_phases_time_out(scene):
    server = scene.server()
    first, second = (scene.semaphore("pool", 1) for _ in range(2))
    assert first.acquire()
    assert second.enqueue() == "queued"
    assert not second.wait(1)
    server.await_waiters("pool", 0)


@case("semaphores")
def the_first_sets_the_limit(scene):
    scene.server()
    first = scene.semaphore("pool", 2)
    assert first.acquire()
    assert "error_limit_mismatch" in str(raised_by(scene.semaphore("pool", 3).acquire))
    assert "error_limit_mismatch" in str(raised_by(scene.semaphore("pool", 3).enqueue))
    assert first.release()
    assert scene.semaphore("pool", 3).acquire()


@case("semaphores")
def a_lock_of_the_same_name_is_another_thing(scene):
    scene.server()
    assert scene.semaphore("diamond", 1).acquire()
    assert scene.lock("diamond").acquire()
    assert not scene.semaphore("diamond", 1).acquire()


@case("semaphores")
def closing_releases(scene):
    server = scene.server()
    first = scene.semaphore("pool", 1)
    assert first.acquire()
    waiting = scene.in_background(scene.semaphore("pool", 1, wait=50).acquire)
    server.await_waiters("pool", 1)
    first.close()
    assert waiting.result(DEADLINE_S)
