"""A server that says what a script says, when it says so, and remembers what it was asked.

A script is a list of acts for each connection, in the order in which they come. An act that waits
for a request (``on``) lets all others be answered as a plain server would; what no plain server
could answer is remembered as unforeseen. After its acts, a connection goes on as a plain one.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import struct
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Asked", "ScriptedServer"]

_SECRET = re.compile(r" ?\bas=([0-9a-f]{16})$")
_TOKEN = re.compile(r"\{token:(\d+)\}")
_SERVER = re.compile(r"\{server:(\d+)\}")
_PLAIN_ANSWERS: dict[str, Any] = {
    "client": "ok",
    "auth": "ok",
    "ping": "ok",
    "barrier": "ok",
    "r": "ok",
    "sr": "ok",
    "n": "ok {lease}",
    "sn": "ok {lease}",
    "listen": "ok",
    "unlisten": "ok",
    "signal": "ok 1",
    "api": 'ok 200 {"locks":[]}',
    "stats": 'ok {"connections":1,"locks":[],"semaphores":[],"idle_locks":[],"idle_semaphores":[]}',
}
_NO_SECRET = "00000000000000aa"


class Asked(NamedTuple):
    """A request, and the secret that its argument ended with."""

    command: str
    key: str
    argument: str
    secret: str | None


class ScriptedServer:
    """Used by one event loop. ``start``, then ``stop``."""

    def __init__(self, script: dict[str, Any], all_servers: list[ScriptedServer]) -> None:
        """``all_servers``: whom a server of a cluster may name."""
        self.all_servers = all_servers
        self.token_file: Path | None = None
        self.asked: list[Asked] = []
        self.unforeseen: list[str] = []
        self.connections = 0
        self._script = script
        self._answers = {**_PLAIN_ANSWERS, **script.get("answers", {})}
        self._listener: asyncio.base_events.Server | None = None
        # Keeps the port while nobody listens: no other scenario's clients may come here.
        self._holder = socket.socket()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def _port(self) -> int:
        return int(self._holder.getsockname()[1])

    async def start(self) -> None:
        self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._holder.bind(("127.0.0.1", 0))
        await self._listen()
        if "down_ms" in self._script:
            self.go_down(self._script["down_ms"])

    async def _listen(self) -> None:
        self._listener = await asyncio.start_server(
            self._accept, "127.0.0.1", self._port, reuse_port=True
        )

    async def stop(self) -> None:
        self._close_listener()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._holder.close()

    def go_down(self, ms: float | None) -> None:
        """Takes no more connections: for a while, or for good."""
        self._close_listener()
        if ms is not None:
            self._begin(self._come_back(ms))

    def answer_of(self, command: str) -> Any:
        return self._answers.get(command)

    async def _come_back(self, ms: float) -> None:
        await asyncio.sleep(ms / 1000)
        await self._listen()

    def _close_listener(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        scripts = self._script.get("connections", [])
        number, self.connections = self.connections, self.connections + 1
        acts = scripts[number] if number < len(scripts) else self._script.get("then", [])
        self._begin(_Conversation(self, reader, writer).play(acts))

    def _begin(self, doing: Any) -> None:
        task = asyncio.ensure_future(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Over(Exception):
    """The connection has ended, or is left as it is."""


class _Conversation:
    """One connection."""

    def __init__(
        self, server: ScriptedServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer
        self._lease = "30"
        self._secret = _NO_SECRET

    async def play(self, acts: list[dict[str, Any]]) -> None:
        try:
            for act in acts:
                await self._play(act)
            while True:
                await self._answer_plainly(await self._read())
        except (_Over, ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writer.close()

    async def _play(self, act: dict[str, Any]) -> None:
        while "on" in act:
            asked = await self._read()
            if asked.command == act["on"]:
                self._check(asked, act)
                break
            await self._answer_plainly(asked)
        await asyncio.sleep(act.get("after_ms", 0) / 1000)
        await self._say(act)
        if "write_token" in act and self._server.token_file is not None:
            self._server.token_file.write_text(act["write_token"] + "\n")
        if "down" in act or "down_ms" in act:
            self._server.go_down(act.get("down_ms"))
        if act.get("stall"):
            await self._read_silently()
        if act.get("reset"):
            self._reset()
        if act.get("close") or act.get("reset") or "down" in act or "down_ms" in act:
            raise _Over

    def _check(self, asked: Asked, act: dict[str, Any]) -> None:
        argument = self._fill(act.get("argument", asked.argument))
        if asked.argument != argument:
            self._server.unforeseen.append(
                f"{asked.command} had {asked.argument!r}, and not {argument!r}"
            )

    async def _answer_plainly(self, asked: Asked) -> None:
        answer = self._server.answer_of(asked.command)
        if answer is None:
            self._server.unforeseen.append(f"{asked.command} {asked.key} {asked.argument}")
            raise _Over
        await self._play(answer if isinstance(answer, dict) else {"say": answer})

    # --- reading

    async def _read(self) -> Asked:
        lines = [await self._reader.readuntil(b"\n") for _ in range(3)]
        command, key, argument = (line.decode(errors="replace").rstrip("\r\n") for line in lines)
        found = _SECRET.search(argument)
        if found is not None:
            argument = argument[: found.start()]
            self._secret = found[1]
        asked = Asked(command, key, argument, found[1] if found else None)
        self._server.asked.append(asked)
        if argument:
            self._lease = argument.split(" ")[-1]
        return asked

    async def _read_silently(self) -> None:
        with contextlib.suppress(ConnectionError):
            while await self._reader.read(4096):
                pass
        raise _Over

    # --- saying

    async def _say(self, act: dict[str, Any]) -> None:
        said = act.get("bytes", "")
        if "repeat" in act:
            said += act["repeat"]["text"] * act["repeat"]["times"]
        if "say" in act:
            said += act["say"] + "\n"
        data = self._fill(said).encode("latin-1")[: act.get("cut")]
        pause = act.get("drip_ms")
        for piece in [data] if pause is None else [bytes([byte]) for byte in data]:
            self._writer.write(piece)
            await self._writer.drain()
            if pause is not None:
                await asyncio.sleep(pause / 1000)

    def _fill(self, text: str) -> str:
        text = text.replace("{lease}", self._lease).replace("{secret}", self._secret)
        servers = self._server.all_servers
        text = _SERVER.sub(lambda match: servers[int(match[1])].address, text)
        return _TOKEN.sub(lambda match: f"{int(match[1]):016x}{self._secret}", text)

    def _reset(self) -> None:
        peer = self._writer.get_extra_info("socket")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()
