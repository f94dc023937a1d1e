"""Has the driver of a language do the steps, and judges its reports and what servers were asked."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .scenarios import Scenario
from .scripted_server import Asked, ScriptedServer

__all__ = ["Driver", "judge"]

_ACQUIRES = ("l", "e", "sl", "se")
_REPORT_SECONDS_MAX = 60.0
# What has no answer, or none of a server that grants: clients say which, and may differ in it only
# where a scenario asks for no more than this.
_UNAVAILABLE = ("unreachable", "disconnected", "no_reply", "draining", "not_leader")


class Driver:
    """A process that takes a job in each line of its input, and answers each in a line.

    Its first line names what it cannot do.
    """

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        self._command = command
        self._environment = environment
        self._reports: dict[int, asyncio.Future[list[dict[str, Any]]]] = {}
        self._next_id = 0
        self.lacks: frozenset[str] = frozenset()

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=self._environment,
            limit=1 << 22,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self.lacks = frozenset(json.loads(await self._output.readline())["lacks"])
        self._reading = asyncio.ensure_future(self._read())

    async def stop(self) -> None:
        """Ends its input, and with it the driver."""
        self._input.close()
        try:
            await asyncio.wait_for(self._process.wait(), _REPORT_SECONDS_MAX)
        except asyncio.TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._reading

    async def do(self, job: dict[str, Any]) -> list[dict[str, Any]]:
        """The reports of its steps. Raises ``asyncio.TimeoutError`` for a driver that hangs, and
        ``ConnectionError`` for one that has ended."""
        self._next_id += 1
        reports = asyncio.get_running_loop().create_future()
        self._reports[self._next_id] = reports
        self._input.write(json.dumps({"id": self._next_id, **job}).encode() + b"\n")
        await self._input.drain()
        return await asyncio.wait_for(reports, _REPORT_SECONDS_MAX)

    async def _read(self) -> None:
        while line := await self._output.readline():
            said = json.loads(line)
            reports = self._reports.pop(said["id"])
            if not reports.done():
                reports.set_result(said["reports"])
        for reports in self._reports.values():
            if not reports.done():
                reports.set_exception(ConnectionError("the driver has ended"))


async def judge(scenario: Scenario, driver: Driver) -> list[str]:
    """What is wrong with it; nothing when all is well."""
    servers: list[ScriptedServer] = []
    servers += [ScriptedServer(script, servers) for script in scenario.servers]
    for server in servers:
        await server.start()
    steps = [{k: v for k, v in step.items() if k != "expect"} for step in scenario.steps]
    job = {
        **scenario.client,
        "addresses": [server.address for server in servers[: len(servers) - scenario.strangers]],
        "is_cluster": scenario.is_cluster,
        "steps": steps,
    }
    if "token_file" in scenario.client:
        token_file = Path(tempfile.mkstemp(prefix="token.")[1])
        token_file.write_text(scenario.client["token_file"] + "\n")
        job["token_file"] = str(token_file)
        for server in servers:
            server.token_file = token_file
    try:
        reports = await driver.do(job)
    except asyncio.TimeoutError:
        return [f"no report after {_REPORT_SECONDS_MAX:.0f} s; asked {_told(servers)}"]
    except ConnectionError as error:
        return [str(error)]
    finally:
        for server in servers:
            await server.stop()
            if server.token_file is not None:
                server.token_file.unlink(missing_ok=True)
    wrong = [
        f"step {number}, {step['do']}: expected {step['expect']}, saw {report}"
        for number, (step, report) in enumerate(zip(scenario.steps, reports), 1)
        if "expect" in step and not _meets(report, step["expect"])
    ]
    wrong += [f"not foreseen: {what}" for server in servers for what in server.unforeseen]
    wrong += _misseen(scenario.seen, servers)
    return wrong


def _meets(seen: Any, expected: Any) -> bool:
    """Whether all that is expected is there. ``{"from": 1, "to": 2}`` is a range."""
    if isinstance(expected, str) and isinstance(seen, dict):
        return _meets(seen, {"outcome": expected})
    if isinstance(expected, dict) and ("from" in expected or "to" in expected):
        is_number = isinstance(seen, (int, float))
        return is_number and expected.get("from", seen) <= seen <= expected.get("to", seen)
    if isinstance(expected, dict):
        return isinstance(seen, dict) and all(
            _meets(seen.get(name), one) for name, one in expected.items()
        )
    if expected == "unavailable":
        return seen in _UNAVAILABLE
    return bool(seen == expected)


def _misseen(expected: dict[str, Any], servers: list[ScriptedServer]) -> list[str]:
    asked = [one for server in servers for one in server.asked]
    wrong = []
    for command, count in expected.get("asked", {}).items():
        seen = sum(one.command == command for one in asked)
        if not _meets(seen, count):
            wrong.append(f"{command} was asked {seen} times, and not {count}")
    for number, count in enumerate(expected.get("connections", [])):
        if not _meets(servers[number].connections, count):
            wrong.append(f"server {number} met {servers[number].connections}, and not {count}")
    calls = [_call(one) for one in asked if one.command == "api"]
    waits = [int(one.argument.split(" ")[0]) for one in asked if one.command in ("l", "sl")]
    for words, seen in (("calls", calls), ("waits", waits)):
        wanted = expected.get(words, seen)
        if len(seen) != len(wanted) or not all(map(_meets, seen, wanted)):
            wrong.append(f"the {words} are {seen}, and not {wanted}")
    secrets = [one.secret for one in asked if one.command in _ACQUIRES]
    for words, seen in (("secrets", secrets), ("holders", [call.get("holder") for call in calls])):
        kind = expected.get(words, "any")
        is_kept = {
            "any": True,
            "same": None not in seen and len(set(seen)) == 1,
            "fresh": None not in seen and len(set(seen)) == len(seen),
            "none": set(seen) <= {None},
        }[kind]
        if not is_kept:
            wrong.append(f"the {words} are not {kind}: {seen}")
    return [f"{what}; asked {_told(servers)}" for what in wrong]


def _call(asked: Asked) -> dict[str, Any]:
    """The members of a call of the API, and the call itself."""
    return {"call": asked.key, **json.loads(asked.argument or "{}")}


def _told(servers: list[ScriptedServer]) -> list[str]:
    hidden = ("client", "auth")
    return [
        " ".join([one.command, one.key, one.argument]).strip()
        for server in servers
        for one in server.asked
        if one.command not in hidden
    ]
