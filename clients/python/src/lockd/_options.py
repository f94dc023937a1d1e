"""How a client reaches servers, and who it says it is."""

from __future__ import annotations

import getpass
import os
import socket
import ssl
import stat
import sys
from dataclasses import dataclass
from typing import Union

from ._requests import auth_lines, client_lines
from .errors import InvalidRequest

__all__ = ["TLS", "Options"]

_Path = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class TLS:
    """TLS 1.2 or later. The server's certificate must name the host that was asked for."""

    ca_file: _Path | None = None
    """PEM: whom to believe. Without it, the system's store."""
    certificate: _Path | None = None
    """PEM, with its chain: for servers that ask who the client is."""
    key: _Path | None = None
    """PEM, of the certificate; without it, the key is in the same file."""
    server_name: str | None = None
    """Whom the server's certificate must name, when it is not the host of the address."""
    verify: bool = True
    """False believes anybody who answers."""

    def context(self) -> ssl.SSLContext:
        """Raises ``InvalidRequest`` for files that cannot be used."""
        try:
            for path in (self.ca_file, self.certificate, self.key):
                if path is not None:
                    os.close(_open_regular(path, os.O_RDONLY))
            context = ssl.create_default_context(
                cafile=None if self.ca_file is None else os.fspath(self.ca_file)
            )
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise InvalidRequest(f"the files for TLS cannot be used: {error}") from error
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # As before Python 3.13: authorities of one's own often say less than that flag wants.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


class Options:
    """The checked options of a client. Constant."""

    def __init__(
        self,
        *,
        token: str | None,
        token_file: _Path | None,
        tls: TLS | bool | None,
        name: str | None,
        note: str | None,
        connect_timeout: float,
        reply_timeout: float,
        release_timeout: float,
    ) -> None:
        if token is not None and token_file is not None:
            raise InvalidRequest("give the auth token or its file, not both")
        if min(connect_timeout, reply_timeout, release_timeout) < 0:
            raise InvalidRequest("a timeout is not negative")
        self._token = token
        self._token_file = token_file
        self.auth()  # so that a token that cannot be used is refused now
        self.tls = TLS() if tls is True else (tls or None)
        self.tls_context = self.tls.context() if self.tls else None
        self.name = _default_name() if name is None else name
        self.identity = client_lines(self.name, _default_note() if note is None else note)
        self.connect_timeout = connect_timeout
        self.reply_timeout = reply_timeout
        self.release_timeout = release_timeout

    def auth(self) -> bytes | None:
        """The lines that say the auth token. The file is read each time: tokens are rotated."""
        token = self._token if self._token_file is None else _read_token(self._token_file)
        return None if token is None else auth_lines(token)


def _read_token(path: _Path) -> str:
    """The first line of the file that is not blank: a server's file may hold two."""
    try:
        with open(path, encoding="utf-8", opener=_open_regular) as file:
            for line in file:
                if line.strip():
                    return line
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"the file of the auth token cannot be read: {error}") from error
    raise InvalidRequest(f"the file of the auth token is empty: {os.fspath(path)}")


def _open_regular(path: _Path, flags: int) -> int:
    """To open a FIFO would wait for its writer."""
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(f"not a regular file: {os.fspath(path)}")


def _default_name() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, ImportError, OSError):  # a user without a name
        user = str(os.getuid()) if hasattr(os, "getuid") else "unknown"
    return _plain(f"{user}@{socket.gethostname()}:{os.getpid()}")


def _default_note() -> str:
    """The program's base name, and never its arguments: they may hold secrets."""
    program = os.path.basename(sys.argv[0]) if sys.argv else ""
    return "python" if program in ("", "-c", "-m") else _plain(program)


def _plain(text: str) -> str:
    """Text of the system's, fit for a line."""
    return "".join(c for c in text if c.isprintable())[:64]
