"""What a client is told when it may not have something, or the server is going."""

from cases import case, raised_by
from server import DEADLINE_S


@case()
def no_more_keys(scene):
    scene.server("--max-locks", "2")
    first = scene.lock("one")
    assert first.acquire() and scene.lock("two").acquire()
    assert "error_max_locks" in str(raised_by(scene.lock("three").acquire))
    assert "error_max_locks" in str(raised_by(scene.lock("three").enqueue))
    assert first.release()
    assert scene.lock("three").acquire()


@case()
def no_more_waiters(scene):
    scene.server("--max-waiters", "1")
    assert scene.lock("diamond").acquire()
    assert scene.lock("diamond").enqueue() == "queued"
    assert "error_max_waiters" in str(raised_by(scene.lock("diamond").enqueue))
    assert "error_max_waiters" in str(raised_by(scene.lock("diamond", wait=50).acquire))


@case("semaphores")
def the_same_for_semaphores(scene):
    scene.server("--max-waiters", "1", "--max-locks", "1")
    assert scene.semaphore("pool", 1).acquire()
    assert scene.semaphore("pool", 1).enqueue() == "queued"
    assert "error_max_waiters" in str(raised_by(scene.semaphore("pool", 1).enqueue))
    assert "error_max_locks" in str(raised_by(scene.semaphore("another", 1).acquire))


@case()
def who_waits_is_told_that_the_server_stops(scene):
    server = scene.server()
    assert scene.lock("diamond").acquire()
    waiting = scene.in_background(scene.lock("diamond", wait=50).acquire)
    server.await_waiters("diamond", 1)
    server.terminate()
    assert "error" in str(raised_by(waiting.result, DEADLINE_S))
