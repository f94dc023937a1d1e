"""Has the Python client do the steps of scenarios: the blocking one, or with --asyncio the other.

Each line of the input is a job, and is answered by a line of reports; jobs run side by side. The
README of the suite says what is in them.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import json
import logging
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python" / "src"))

import lockd
from lockd import aio, errors

logging.getLogger("lockd").addHandler(logging.NullHandler())
LACKS: list[str] = []
THREADS = concurrent.futures.ThreadPoolExecutor(128)
KINDS = {
    "TooManyKeys": "max_locks",
    "TooManyWaiters": "max_waiters",
    "TooManyHolds": "max_holds",
    "LimitMismatch": "limit_mismatch",
    "ModeMismatch": "mode_mismatch",
    "PermitsMismatch": "permits_mismatch",
    "StorageFull": "storage",
    "AlreadyEnqueued": "already_enqueued",
    "NotEnqueued": "not_enqueued",
    "LeaseExpired": "lease_expired",
    "InvalidRequest": "invalid",
    "NoReply": "no_reply",
    "NotLeader": "not_leader",
}
Report = dict[str, Any]
Job = dict[str, Any]


def of_failure(failure: errors.LockdError) -> Report:
    if isinstance(failure, errors.NotAcquired):
        return {
            "outcome": "not_acquired",
            "queued_again": failure.queued_again,
            "holder": failure.holder or "",
            "holder_name": failure.client or "",
            "waiters": failure.waiters or 0,
        }
    if isinstance(failure, errors.LockLost):
        return {"outcome": "lost", "cause": failure.cause}
    if isinstance(failure, errors.LockSuspect):
        return {"outcome": "suspect"}
    name = type(failure).__name__
    return {"outcome": KINDS.get(name, name.lower())}


def of_held(held: Any) -> Report:
    return {
        "outcome": "acquired",
        "fence": str(held.fence),
        "lease_s": held.lease,
        "queued_again": held.queued_again,
    }


def client_options(job: Job) -> dict[str, Any]:
    options: dict[str, Any] = {"cluster" if job["is_cluster"] else "servers": job["addresses"]}
    for name in ("connect_timeout", "reply_timeout", "release_timeout"):
        if f"{name}_ms" in job:
            options[name] = job[f"{name}_ms"] / 1000
    for name in ("token", "token_file"):
        if name in job:
            options[name] = job[name]
    return options


def hold_options(step: Job) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name, given in (("lease", "lease_s"), ("shared", "shared"), ("limit", "limit")):
        if given in step:
            options[name] = step[given]
    if "permits" in step:
        options["permits"] = step["permits"]
    if "max_hold_ms" in step:
        options["max_hold"] = step["max_hold_ms"] / 1000
    return options


class Steps:
    """The steps of one job."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._made: dict[str, Any] = {}

    async def run(self, steps: list[Job]) -> list[Report]:
        reports = []
        for step in steps:
            began = time.monotonic()
            report = await self._report(step)
            reports.append({**report, "took_ms": int((time.monotonic() - began) * 1000)})
        await self._call(self._client.close)
        return reports

    async def _report(self, step: Job) -> Report:
        try:
            report: Report = await getattr(self, step["do"])(step)
        except errors.LockdError as failure:
            return of_failure(failure)
        except KeyError:
            return {"outcome": "nothing"}  # an earlier step was to make it, and has not
        return report

    async def _call(self, do: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Calls the client. ``cancel_after_ms`` cancels it then."""
        cancel_after_ms = named.pop("cancel_after_ms", None)
        calling = do(*given, **named)
        if cancel_after_ms is None:
            return await calling
        try:
            return await asyncio.wait_for(calling, cancel_after_ms / 1000)
        except asyncio.TimeoutError:
            raise errors.Cancelled("by the scenario") from None

    async def acquire(self, step: Job) -> Report:
        return await self._hold(step, self._client.acquire, step["key"], **hold_options(step))

    async def acquire_all(self, step: Job) -> Report:
        return await self._hold(step, self._client.acquire_all, step["keys"], **hold_options(step))

    async def wait(self, step: Job) -> Report:
        return await self._hold(step, self._of(step, "place").wait)

    async def _hold(self, step: Job, do: Callable[..., Any], *given: Any, **named: Any) -> Report:
        if "wait_ms" in step:
            named["wait"] = step["wait_ms"] / 1000
        held = await self._call(do, *given, **named, **cancelling(step))
        self._made[step.get("hold", "hold")] = held
        return of_held(held)

    async def enqueue(self, step: Job) -> Report:
        options = {**hold_options(step), **cancelling(step)}
        place = await self._call(self._client.enqueue, step["key"], **options)
        self._made[step.get("place", "place")] = place
        return {"outcome": "granted" if place.is_granted else "queued"}

    async def give_up(self, step: Job) -> Report:
        self._of(step, "place").give_up()
        return {"outcome": "done"}

    async def check(self, step: Job) -> Report:
        self._of(step, "hold").check()
        return {"outcome": "held"}

    async def await_loss(self, step: Job) -> Report:
        loss = await self._call(self._of(step, "hold").wait_lost, step["wait_ms"] / 1000)
        return await self.check(step) if loss is None else of_failure(loss)

    async def release(self, step: Job) -> Report:
        await self._call(self._of(step, "hold").release)
        return {"outcome": "released"}

    async def publish(self, step: Job) -> Report:
        count = await self._call(self._client.publish, step["channel"], step["payload"])
        return {"outcome": "count", "count": count}

    async def listen(self, step: Job) -> Report:
        group = step.get("group")
        listening = await self._call(self._client.listen, step["pattern"], group=group)
        self._made["listening"] = listening
        return {"outcome": "done"}

    async def next(self, step: Job) -> Report:
        signal = await self._call(self._made["listening"].next, step["wait_ms"] / 1000)
        if signal is None:
            return {"outcome": "none"}
        return {"outcome": "signal", "channel": signal.channel, "payload": signal.text}

    async def stats(self, _: Job) -> Report:
        stats = await self._call(self._client.stats)
        return {"outcome": "stats", "connections": stats.get("connections")}

    async def sleep(self, step: Job) -> Report:
        await asyncio.sleep(step["ms"] / 1000)
        return {"outcome": "done"}

    def _of(self, step: Job, kind: str) -> Any:
        return self._made[step.get(kind, kind)]


class BlockingSteps(Steps):
    """The same with the client whose calls block: each on a thread."""

    async def _call(self, do: Callable[..., Any], *given: Any, **named: Any) -> Any:
        cancel_after_ms = named.pop("cancel_after_ms", None)
        if cancel_after_ms is not None:
            named["stop"] = lockd.Stop()
            threading.Timer(cancel_after_ms / 1000, named["stop"].set).start()
        doing = functools.partial(do, *given, **named)
        return await asyncio.get_running_loop().run_in_executor(THREADS, doing)


def cancelling(step: Job) -> Job:
    return {name: step[name] for name in ("cancel_after_ms",) if name in step}


async def serve(is_async: bool) -> None:
    async def run(job: Job) -> None:
        options = client_options(job)
        steps = Steps(aio.Client(**options)) if is_async else BlockingSteps(lockd.Client(**options))
        reports = await steps.run(job["steps"])
        print(json.dumps({"id": job["id"], "reports": reports}), flush=True)

    print(json.dumps({"lacks": LACKS}), flush=True)
    loop = asyncio.get_running_loop()
    running = set()
    while line := await loop.run_in_executor(THREADS, sys.stdin.readline):
        task = loop.create_task(run(json.loads(line)))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)


if __name__ == "__main__":
    asyncio.run(serve("--asyncio" in sys.argv))
