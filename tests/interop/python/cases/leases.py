"""Leases that the client renews by itself, and leases that nobody renews.

Renewing goes on at 0.15 of the lease: a busy machine may be late by most of the lease.
"""

import time

from cases import case
from server import DEADLINE_S

RENEWED = {"lease": 8, "renew_ratio": 0.15}
TWO_LEASES_S = 17


@case()
def a_lock_is_renewed_for_as_long_as_it_is_held(scene):
    scene.server()
    stays_held(scene.lock("diamond", **RENEWED), scene.lock("diamond", wait=TWO_LEASES_S))


@case()
def so_is_one_taken_in_two_phases(scene):
    scene.server()
    first, second = scene.lock("diamond"), scene.lock("diamond", **RENEWED)
    assert first.acquire()
    assert second.enqueue() == "queued"
    assert first.release()
    assert second.wait(50)
    stays_held(second, scene.lock("diamond", wait=TWO_LEASES_S))


@case("semaphores")
def so_is_a_slot_of_a_semaphore(scene):
    scene.server()
    stays_held(scene.semaphore("pool", 1, **RENEWED),
               scene.semaphore("pool", 1, wait=TWO_LEASES_S))


@case()
def the_server_names_the_lease_of_those_who_name_none(scene):
    scene.server("--default-lease-ttl", str(RENEWED["lease"]))
    holder = scene.lock("diamond", **{**RENEWED, "lease": None})
    stays_held(holder, scene.lock("diamond", wait=TWO_LEASES_S))


@case()
def a_stopped_holder_loses_its_lease_and_notices(scene):
    server = scene.server()
    began = time.monotonic()
    holder = scene.process("diamond", lease=4)
    holder.await_line("held")
    holder.stop()
    next_one = scene.lock("diamond", wait=50)
    waiting = scene.in_background(next_one.acquire)
    assert waiting.result(DEADLINE_S)
    assert time.monotonic() - began >= 4
    holder.resume()
    holder.await_line("lost")
    assert server.held() == {"diamond"}
    assert next_one.release()


def stays_held(holder, contender):
    """The contender waits for two leases in vain, and gets it once it is released."""
    if holder.token is None:
        assert holder.acquire()
    assert holder.lease == RENEWED["lease"]
    token = holder.token
    assert not contender.acquire()
    assert holder.token == token
    assert holder.release()
    assert contender.acquire()
