"""Certificates for one run: an authority, a server and a client of its, and a strange authority."""

import shutil
import ssl
import subprocess

AUTHORITY = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n"
MEMBER = ("subjectAltName=IP:127.0.0.1,DNS:localhost\n"
          "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n")


class Certificates:
    def __init__(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._folder = folder
        self._make("authority")
        self._make("stranger")
        self._make("server", signed_by="authority")
        self._make("client", signed_by="authority")

    def server_flags(self, ask_for_clients=False):
        flags = ["--tls-cert", self._file("server.pem"), "--tls-key", self._file("server.key")]
        if ask_for_clients:
            flags += ["--tls-client-ca", self._file("authority.pem")]
        return flags

    def context(self, trusting="authority", as_client=False):
        """What a client is given to trust the server by, and to be trusted."""
        context = ssl.create_default_context(cafile=self._file(f"{trusting}.pem"))
        if as_client:
            context.load_cert_chain(self._file("client.pem"), self._file("client.key"))
        return context

    def _file(self, name):
        return str(self._folder / name)

    def _make(self, name, signed_by=None):
        key, request, pem = (self._file(f"{name}.{kind}") for kind in ("key", "csr", "pem"))
        _openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-keyout", key, "-out", request, "-subj", f"/CN=interop {name}")
        extensions = self._folder / f"{name}.extensions"
        extensions.write_text(MEMBER if signed_by else AUTHORITY)
        signer = (["-CA", self._file(f"{signed_by}.pem"), "-CAkey", self._file(f"{signed_by}.key"),
                   "-CAcreateserial"] if signed_by else ["-signkey", key])
        _openssl("x509", "-req", "-in", request, "-out", pem, "-days", "2",
                 "-extfile", str(extensions), *signer)


def _openssl(*words):
    made = subprocess.run(["openssl", *words], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
