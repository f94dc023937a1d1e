"""Auth tokens and TLS at a real server."""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path
from typing import ClassVar

import lockd

from .support import Certificates, Server, eventually, now


class AuthTokens(unittest.TestCase):
    server: ClassVar[Server]

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server("--auth-token", "a secret of some length")

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.__exit__()

    def test_let_in(self) -> None:
        with lockd.Client(self.server.address, token="a secret of some length") as locks:
            locks.acquire("k", wait=0).release()

    def test_of_a_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "token"
            file.write_text("a secret of some length\n")
            with lockd.Client(self.server.address, token_file=file) as locks:
                locks.acquire("k", wait=0).release()
            file.write_text("\n")
            fifo = Path(folder) / "fifo"  # without a writer
            os.mkfifo(fifo)
            for path in (file, Path(folder) / "none", fifo):
                with self.assertRaises(lockd.InvalidRequest):
                    lockd.Client(token_file=path)
            with self.assertRaises(lockd.InvalidRequest):
                lockd.Client(tls=lockd.TLS(ca_file=fifo))
        with self.assertRaises(lockd.InvalidRequest):
            lockd.Client(token="a", token_file="b")

    def test_that_are_wrong_or_missing_end_the_wait_at_once(self) -> None:
        for token in ("wrong", None):
            with lockd.Client(self.server.address, token=token) as locks:
                began = now()
                with self.assertRaises(lockd.Unauthorized):
                    locks.acquire("k", wait=60)
                self.assertLess(now() - began, 30)


class Tls(unittest.TestCase):
    certificates: ClassVar[Certificates]
    server: ClassVar[Server]

    @classmethod
    def setUpClass(cls) -> None:
        files = cls.certificates = Certificates()
        cls.server = Server("--tls-cert", files.server, "--tls-key", files.server_key)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.__exit__()
        cls.certificates.close()

    def acquire(self, host: str, tls: lockd.TLS | bool, port: int | None = None) -> None:
        address = f"{host}:{port or self.server.port}"
        with lockd.Client(address, tls=tls, connect_timeout=5) as locks:
            with locks.lock("k", wait=0, lease=1) as held:
                held.check()

    def test_verifies_the_server(self) -> None:
        self.acquire("127.0.0.1", lockd.TLS(ca_file=self.certificates.ca))
        self.acquire("localhost", lockd.TLS(ca_file=self.certificates.ca))

    def test_believes_no_other_authority(self) -> None:
        for tls in (lockd.TLS(ca_file=self.certificates.other_ca), lockd.TLS(), True):
            with self.assertRaises(lockd.Untrusted):
                self.acquire("127.0.0.1", tls)

    def test_believes_no_other_name(self) -> None:
        tls = lockd.TLS(ca_file=self.certificates.ca, server_name="elsewhere.example")
        with self.assertRaises(lockd.Untrusted):
            self.acquire("127.0.0.1", tls)
        with self.assertRaises(lockd.Untrusted):
            self.acquire("127.0.0.2", lockd.TLS(ca_file=self.certificates.ca))

    def test_believes_anybody_when_told_so(self) -> None:
        self.acquire("127.0.0.1", lockd.TLS(verify=False))

    def test_an_untrusted_server_is_not_waited_for(self) -> None:
        with lockd.Client(self.server.address, tls=True) as locks:
            with self.assertRaises(lockd.Untrusted):
                locks.acquire("k")

    def test_a_server_without_tls_is_unreachable(self) -> None:
        with Server() as plain, self.assertRaises(lockd.ConnectionFailed):
            self.acquire("127.0.0.1", lockd.TLS(verify=False), plain.port)

    def test_files_that_cannot_be_used(self) -> None:
        for tls in (lockd.TLS(ca_file="/none"), lockd.TLS(certificate="/none")):
            with self.assertRaises(lockd.InvalidRequest):
                lockd.Client(tls=tls)

    def test_certificates_of_clients(self) -> None:
        files = self.certificates
        flags = ("--tls-cert", files.server, "--tls-key", files.server_key)
        with Server(*flags, "--tls-client-ca", files.ca) as server:
            known = lockd.TLS(files.ca, certificate=files.client, key=files.client_key)
            self.acquire("127.0.0.1", known, server.port)
            with self.assertRaisesRegex(lockd.Unauthorized, "refused the certificate"):
                self.acquire("127.0.0.1", lockd.TLS(files.ca), server.port)

    def test_a_restart_is_survived_over_tls(self) -> None:
        files = self.certificates
        with tempfile.TemporaryDirectory() as journal:
            flags = ("--tls-cert", files.server, "--tls-key", files.server_key, "--wal", journal)
            with Server(*flags) as server:
                tls = lockd.TLS(ca_file=files.ca)
                with lockd.Client(server.address, tls=tls) as locks, locks.lock("k") as held:
                    server.kill()
                    server.start()
                    eventually(lambda: held.is_held, "a renewal on a new connection")
                    with self.assertRaises(lockd.NotAcquired):
                        locks.acquire("k", wait=1)
                    held.check()


if __name__ == "__main__":
    unittest.main()
