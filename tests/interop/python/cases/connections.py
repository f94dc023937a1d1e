"""The functions below the locks of client 2: many keys on one connection, and errors by name."""

import socket

from cases import case, raised_by
from server import await_that


@case("bare connections")
def many_keys_on_one_connection(scene):
    scene.server()
    mine, theirs = scene.connection(), scene.connection()
    tokens = {f"stone-{n}": mine.acquire(f"stone-{n}", 0, 60)[0] for n in range(50)}
    for key, token in tokens.items():
        assert error_name(theirs.acquire, key, 0) == "DflockdTimeoutError"
        assert mine.renew(key, token, 90) == 90
        # The token is what counts, not the connection.
        theirs.release(key, token)
    assert theirs.acquire("stone-7", 0, 60)[1] == 60


@case("bare connections")
def fences_rise(scene):
    from dflockd_client import fence_from_token
    scene.server()
    conn = scene.connection()
    fences = []
    for _ in range(20):
        token, _ = conn.acquire("diamond", 0)
        fences.append(fence_from_token(token))
        conn.release("diamond", token)
    assert fences == sorted(set(fences))


@case("bare connections")
def stats_of_a_thousand_locks(scene):
    scene.server("--max-locks", "2000")
    conn = scene.connection()
    for number in range(1000):
        conn.acquire(f"a-key-that-makes-the-reply-long-{number}", 0, 60)
    stats = conn.stats()
    assert stats["connections"] == 1
    assert len({lock["key"] for lock in stats["locks"]}) == 1000
    assert all(0 < lock["lease_expires_in_s"] <= 60 for lock in stats["locks"])


@case("bare connections")
def errors_by_name(scene):
    server = scene.server("--detailed-errors")
    first, second = scene.connection(), scene.connection()
    assert error_name(first.wait, "diamond", 0) == "NotQueuedError"
    status, token, _ = first.enqueue("diamond", 60)
    assert status == "acquired"
    assert error_name(first.enqueue, "diamond", 60) == "AlreadyQueuedError"
    assert second.enqueue("diamond", 1)[0] == "queued"
    first.release("diamond", token)
    await_that(lambda: not server.held(), "the second lease is over")
    assert error_name(second.wait, "diamond", 0) == "LeaseExpiredError"
    # None of these ended a connection.
    assert first.acquire("diamond", 0) and second.acquire("another", 0)


@case("bare connections")
def errors_that_are_only_errors(scene):
    scene.server()
    conn = scene.connection()
    assert error_name(conn.wait, "diamond", 0) == "DflockdError"
    assert error_name(conn.release, "diamond", "0" * 32) == "DflockdError"
    assert error_name(conn.renew, "diamond", "0" * 32) == "DflockdError"
    assert error_name(conn.sem_release, "diamond", "0" * 32) == "DflockdError"
    assert conn.acquire("diamond", 0)


@case("bare connections")
def a_server_that_stops_says_so(scene):
    server = scene.server()
    conn = scene.connection()
    token, _ = conn.acquire("diamond", 0, 60)
    server.terminate()
    await_that(lambda: is_closed(server), "the server no longer listens")
    assert error_name(conn.acquire, "another", 0) == "DrainingError"
    assert conn.renew("diamond", token) > 0
    conn.release("diamond", token)


def error_name(function, *args):
    return type(raised_by(function, *args)).__name__


def is_closed(server):
    try:
        socket.create_connection(server.address).close()
    except OSError:
        return True
    return False
