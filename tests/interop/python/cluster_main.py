"""Runs the cases of the installed client by any server of a cluster, and through its failovers.

    cluster_main.py <lockd-ha> <etcd> <work folder> [subject...]

In each round every case asks the same server; in two of three, at least, it is one that follows.
Between two rounds the leader is killed, while clients of another server hold and wait.
Prints a line a case, and which were left out and why. Exits with 1 if any failed.
"""

import concurrent.futures
import contextlib
import logging
import pathlib
import sys
import time
import traceback

from client import AsyncApi, SyncApi
from cluster import NODES, Cluster
from cluster_scene import ClusterScene, Unsuitable
from main import AT_ONCE, SUBJECTS, cases_of, lacking, report
from server import DEADLINE_S, await_that

# To these a cluster is one server.
OF_STRANGERS = ("keys_land_where_crc_32_says", "semaphores_likewise")
RENEWED = {"lease": 8, "renew_ratio": 0.15}
A_LEASE_AND_MORE_S = 10


def main(binary, etcd, work, *subjects):
    logging.disable()  # the clients log what the cases provoke
    apis = (SyncApi(), AsyncApi())
    cluster = Cluster(binary, etcd, pathlib.Path(work) / "cluster")
    passed, left_out = [], {}
    try:
        cluster.await_service()
        unasked = set(range(NODES))
        for number in range(NODES):
            if number > 0:
                passed.append(report(*hold_through_a_killed_leader(cluster, apis, number)))
            leader = cluster.leader()
            node = min(unasked, key=lambda node: node == leader)
            unasked.remove(node)
            passed += play_round(cluster, apis, node, subjects or SUBJECTS, left_out)
        if not all(passed):
            print(cluster.logs())
    finally:
        cluster.stop()
    for reason, names in sorted(left_out.items()):
        print(f"        left out, because they {reason}: {', '.join(sorted(names))}")
    print(f"{sum(passed)} of {len(passed)} cases passed")
    return 0 if all(passed) else 1


def play_round(cluster, apis, first, subjects, left_out):
    role = "leads" if first == cluster.leader() else "follows"
    print(f"        by server {first + 1}, which {role}", flush=True)
    runs = [(subject, case, api) for api in apis
            for subject in subjects for case in cases_of(subject) if not lacking(case, api)]
    # Signals have no keys, so what one case says the others would hear.
    with (concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads,
          concurrent.futures.ThreadPoolExecutor(1) as one_thread):
        played = [(one_thread if run[0] == "signals" else threads)
                  .submit(play, *run, cluster, first, left_out) for run in runs]
        outcomes = (run.result() for run in concurrent.futures.as_completed(played))
        return [report(*outcome) for outcome in outcomes if outcome]


def play(subject, case, api, cluster, first, left_out):
    """Plays one case, as main.play(); None when it is left out."""
    name = case.__name__.replace("_", " ")
    began = time.monotonic()
    failure = None
    try:
        if case.__name__ in OF_STRANGERS:
            raise Unsuitable("need servers that do not know each other")
        if "openssl" in case.needs:
            raise Unsuitable("start servers with flags of their own")
        if subject == "signals":
            await_that(lambda: not cluster.leaders_stats()["signal_channels"], "nobody listens")
        with ClusterScene(api, cluster, first, f"{first}-{api.name}-{case.__name__}") as scene:
            case(scene)
    except Unsuitable as unsuitable:
        left_out.setdefault(str(unsuitable), set()).add(name)
        return None
    except Exception:
        failure = traceback.format_exc()
    return f"{api.name} {subject}: {name}", time.monotonic() - began, failure


def hold_through_a_killed_leader(cluster, apis, number):
    """Clients of a server that follows hold a lock, by renewing it, and wait for it."""
    began = time.monotonic()
    failure = None
    try:
        victim = cluster.leader()
        by = (victim + 1) % NODES
        with contextlib.ExitStack() as scenes:
            held = [take(scenes.enter_context(
                ClusterScene(api, cluster, by, f"failover-{number}-{api.name}"))) for api in apis]
            cluster.kill_leader()
            time.sleep(A_LEASE_AND_MORE_S)
            for one in held:
                hand_over(*one)
        cluster.start_again(victim)
    except Exception:
        failure = traceback.format_exc()
    return "failed or succeeded cleanly when the leader was killed", time.monotonic() - began, failure


def take(scene):
    node = scene.server()
    holder, waiter = scene.lock("diamond", **RENEWED), scene.lock("diamond", wait=50)
    assert holder.acquire()
    waiting = scene.in_background(waiter.acquire)
    node.await_waiters("diamond", 1)
    return scene, holder, holder.token, waiter, waiting


def hand_over(scene, holder, token, waiter, waiting):
    """The server closed their connections: each call fails or succeeds, and says which. The lock is
    held no longer than its lease, unless a client has renewed it."""
    attempt(holder.release)
    if attempt(lambda: waiting.result(DEADLINE_S)):
        assert waiter.token > token
        attempt(waiter.release)
    after = scene.lock("diamond", wait=50)
    assert after.acquire()
    assert after.token > token
    assert after.release()


def attempt(call):
    try:
        return call()
    except TimeoutError:
        raise
    except Exception as error:
        print(f"   after the leader was killed: {type(error).__name__}: {error}")
        return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
