"""One connection to one server: requests go out, replies come back in order, pushes in between."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import weakref
from collections import deque
from typing import Callable, NamedTuple, cast

from ._clock import now, wait_until, within
from ._cluster import Endpoint
from ._replies import Signal, check, loss_of, shown, signal_of
from .errors import (
    Cancelled,
    Disconnected,
    Garbled,
    LockdError,
    NoReply,
    Refused,
    Unauthorized,
    Unreachable,
    Untrusted,
)

__all__ = ["STATS_SIZE_MAX", "Link", "Reply"]

LINE_SIZE_MAX = 1024 * 1024
STATS_SIZE_MAX = 256 * 1024 * 1024
_LOSSES_MAX = 64
_KEEPALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}


class Reply(NamedTuple):
    line: str
    sent_at: float  # just before the first byte of the request left


class Link(asyncio.Protocol):
    """Made by ``open``. A call that ends without an answer closes it, unless told otherwise:
    nobody could tell its late reply from that to the next request."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.heard_at = now()
        self.knows_client = False
        self.on_signal: Callable[[Signal], None] | None = None
        self.on_loss: Callable[[str, str], None] | None = None
        """Called with the token and the cause of what the server says is lost."""
        self.losses: dict[str, str] = {}
        """The same, of what was lost before anybody asked to be told."""
        self._transport: asyncio.Transport | None = None
        self._socket: socket.socket | None = None
        self._failure: LockdError = Disconnected(f"{endpoint.address} ended the connection")
        self._awaited: deque[tuple[asyncio.Future[str], int]] = deque()
        self._input = bytearray()
        self._searched = 0
        _links.add(self)

    @classmethod
    async def open(cls, endpoint: Endpoint, until: float) -> Link:
        """Connects, verifies the server, authenticates, and says who this is."""
        link = cls(endpoint)
        try:
            await link._dial(until)
            await link._authenticate(until)
            if not endpoint.knows_client or await link._introduce(until):
                return link
        except BaseException:
            link.abort()
            raise
        # A server that does not know the command closes the connection: once more, without it.
        link.abort()
        return await cls.open(endpoint, until)

    @property
    def is_closed(self) -> bool:
        return self.closed.done()

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for a reply."""
        return not self._awaited

    @property
    def failure(self) -> LockdError:
        """Why it is closed."""
        return self._failure

    def send(self, lines: bytes, reply_size_max: int = LINE_SIZE_MAX) -> asyncio.Future[str]:
        """The future is the reply; it fails when the connection ends before."""
        reply: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        if self.is_closed or self._transport is None:
            _fail(reply, self._failure)
            return reply
        self._awaited.append((reply, reply_size_max))
        self._transport.write(lines)
        return reply

    async def ask(
        self,
        lines: bytes,
        until: float,
        *,
        reply_size_max: int = LINE_SIZE_MAX,
        stays_open: bool = False,
    ) -> Reply:
        """The reply, whatever it says, if it comes in time.

        ``stays_open``: for a caller that gives up while others use the connection.
        """
        sent_at = now()
        reply = self.send(lines, reply_size_max)
        try:
            await wait_until(until, reply)
        except asyncio.CancelledError:
            if not stays_open:
                self.abort(Cancelled("the call was cancelled"))
            raise
        if not reply.done():
            self.abort(NoReply(f"{self.endpoint.address} did not answer in time"))
        return Reply(reply.result(), sent_at)

    def abort(self, why: LockdError | None = None) -> None:
        """Closes at once: the server gives up what the connection had."""
        self._end(why)
        if self._transport is not None:
            # A program that was started meanwhile may have the socket, too.
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)
            self._transport.abort()

    def let_go_in_child(self, nothing: int) -> None:
        """In the child of a fork: the server is to see the connection end with its own process."""
        descriptor = -1 if self._socket is None else self._socket.fileno()
        if descriptor >= 0:
            os.dup2(nothing, descriptor, inheritable=False)

    def close(self) -> None:
        """Closes as soon as what was sent has left."""
        self._end(None)
        if self._transport is not None:
            self._transport.close()

    def give_up_unacknowledged_after(self, seconds: float) -> None:
        """So that a host that is gone is noticed before most of a lease is over."""
        self._set_option("TCP_USER_TIMEOUT", int(seconds * 1000))

    # --- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._socket = transport.get_extra_info("socket")
        if self.is_closed:
            self._transport.abort()
            return
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE.items():
            self._set_option(option, value)
        peer = transport.get_extra_info("peername")
        self.endpoint.last_peer = peer[0] if peer else None

    def data_received(self, data: bytes) -> None:
        self._input += data
        self.heard_at = now()
        start = 0
        while not self.is_closed:
            end = self._input.find(b"\n", max(start, self._searched))
            if end < 0:
                break
            line = bytes(self._input[start:end]).rstrip(b"\r")
            start = end + 1
            self._take(line)
        del self._input[:start]
        self._searched = len(self._input)
        if not self.is_closed and len(self._input) > self._line_size_max():
            self._take(bytes(self._input))

    def connection_lost(self, error: Exception | None) -> None:
        if isinstance(error, ssl.SSLError) and "CERTIFICATE" in (error.reason or "").upper():
            # With TLS 1.3 a server refuses a client's certificate after the handshake.
            self._end(Unauthorized(f"{self.endpoint.address} refused the certificate: {error}"))
        elif error is not None:
            self._end(Disconnected(f"the connection with {self.endpoint.address} broke: {error}"))
        else:
            self._end(None)

    # --- lines

    def _take(self, line: bytes) -> None:
        if len(line) > self._line_size_max():
            self.abort(Garbled(f"{self.endpoint.address} sent a line of {len(line)} bytes"))
            return
        signal = signal_of(line)
        loss = loss_of(line)
        if signal is not None:
            if self.on_signal is not None:
                self.on_signal(signal)
        elif loss is not None:
            self._take_loss(*loss)
        elif self._awaited:
            reply, _ = self._awaited.popleft()
            if not reply.done():
                reply.set_result(line.decode(errors="replace"))
        else:
            self._take_unasked(line.decode(errors="replace"))

    def _take_loss(self, token: str, cause: str) -> None:
        if self.on_loss is not None:
            self.on_loss(token, cause)
        elif len(self.losses) < _LOSSES_MAX:
            self.losses[token] = cause

    def _take_unasked(self, line: str) -> None:
        """As a server says that is about to close: it was silent for too long here, or it stops."""
        if line.startswith("error"):
            self.abort(Disconnected(f"{self.endpoint.address} ended the connection: {shown(line)}"))
        else:
            self.abort(
                Garbled(f"{self.endpoint.address} answered what nobody asked: {shown(line)}")
            )

    def _line_size_max(self) -> int:
        return self._awaited[0][1] if self._awaited else LINE_SIZE_MAX

    # --- opening

    async def _dial(self, until: float) -> None:
        address = self.endpoint.address
        try:
            await within(until, self._connect(address.host))
        except asyncio.TimeoutError:
            raise Unreachable(f"{address} did not answer in time") from None
        except ssl.SSLCertVerificationError as error:
            raise Untrusted(
                f"the certificate of {address} cannot be verified: {error.verify_message}"
            ) from error
        except ssl.SSLError as error:
            raise Unreachable(f"no TLS with {address}: {error.reason or error}") from error
        except (OSError, UnicodeError) as error:  # the latter: no name of a host
            raise Unreachable(f"{address} cannot be reached: {error}") from error

    async def _connect(self, host: str) -> None:
        tls, context = self.endpoint.options.tls, self.endpoint.options.tls_context
        name = None
        if tls is not None:
            name = tls.server_name or self.endpoint.address.host
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(
                lambda: self,
                host,
                self.endpoint.address.port,
                ssl=context,
                server_hostname=name,
                happy_eyeballs_delay=0.25,
            )
        except socket.gaierror:
            known = self.endpoint.last_peer
            if known is None or known == host:
                raise
            await self._connect(known)

    async def _authenticate(self, until: float) -> None:
        auth = self.endpoint.options.auth()
        if auth is None:
            return
        reply = await self.ask(auth, until)
        try:
            check(reply.line)
        except Unauthorized:
            raise Unauthorized(f"{self.endpoint.address} did not accept the auth token") from None
        except Refused:
            # A server that asks for no auth token knows no `auth`.
            raise Unauthorized(
                f"{self.endpoint.address} refused the auth token; it may ask for none"
            ) from None

    async def _introduce(self, until: float) -> bool:
        """False when the server knows no ``client``."""
        reply = await self.ask(self.endpoint.options.identity, until)
        try:
            check(reply.line)
        except Refused as refusal:
            self.endpoint.knows_client = refusal.reply != "error"
            self.knows_client = self.endpoint.knows_client
            return self.knows_client
        except Unauthorized:
            address = self.endpoint.address
            raise Unauthorized(
                f"{address} asks for an auth token, or serves its own machine only"
            ) from None
        self.knows_client = True
        return True

    # --- ending

    def _end(self, why: LockdError | None) -> None:
        if self.is_closed:
            return
        self._failure = why or self._failure
        self.closed.set_result(None)
        for reply, _ in self._awaited:
            _fail(reply, self._failure)
        self._awaited.clear()

    def _set_option(self, name: str, value: int) -> None:
        """Where the platform has it."""
        option = getattr(socket, name, None)
        if option is None or self._transport is None or self.is_closed:
            return
        # A connection that has ended says so by itself.
        with contextlib.suppress(OSError):
            self._transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, option, value)


def _fail(reply: asyncio.Future[str], failure: LockdError) -> None:
    if not reply.done():
        reply.set_exception(failure)
        reply.exception()  # whether anybody still waits for it or not


_links: weakref.WeakSet[Link] = weakref.WeakSet()


def _let_go_in_child() -> None:
    if not _links:
        return
    nothing = os.open(os.devnull, os.O_RDWR)
    for link in _links:
        link.let_go_in_child(nothing)
    os.close(nothing)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_child)
