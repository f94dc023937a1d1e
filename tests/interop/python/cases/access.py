"""Who is let in: the shared secret, and TLS."""

import ssl

from cases import case, raised_by
from cases.leases import RENEWED, TWO_LEASES_S


@case("auth")
def the_right_secret(scene):
    for secret in ("open sesame", "s" * 60_000):
        scene.server("--auth-token", secret)
        assert scene.lock("diamond", auth_token=secret).acquire()
        assert not scene.lock("diamond", auth_token=secret).acquire()


@case("auth")
def a_wrong_secret_none_and_one_that_nobody_asked_for(scene):
    scene.server("--auth-token", "open sesame")
    refused = raised_by(scene.lock("diamond", auth_token="open barley").acquire)
    assert isinstance(refused, PermissionError) and "error_auth" in str(refused)
    assert "error_auth" in str(raised_by(scene.lock("diamond").acquire))
    assert scene.lock("diamond", auth_token="open sesame").acquire()
    scene.server()
    assert isinstance(raised_by(scene.lock("diamond", auth_token="open").acquire), PermissionError)


@case("tls", "openssl")
def over_tls(scene):
    scene.server(*scene.certificates.server_flags())
    tls = scene.certificates.context()
    holder = scene.lock("diamond", ssl_context=tls, **RENEWED)
    assert holder.acquire()
    # It is renewed.
    assert not scene.lock("diamond", wait=TWO_LEASES_S, ssl_context=tls).acquire()
    assert holder.release()
    assert scene.lock("diamond", ssl_context=tls).acquire()


@case("auth", "tls", "semaphores", "openssl")
def a_semaphore_and_a_secret_over_tls(scene):
    scene.server(*scene.certificates.server_flags(), "--auth-token", "open sesame")
    known = {"ssl_context": scene.certificates.context(), "auth_token": "open sesame"}
    assert scene.semaphore("pool", 1, **known).acquire()
    second = scene.semaphore("pool", 1, **known)
    assert second.enqueue() == "queued"
    assert not second.wait(1)
    unknown = {**known, "auth_token": "open barley"}
    assert isinstance(raised_by(scene.semaphore("pool", 1, **unknown).acquire), PermissionError)


@case("tls", "openssl")
def a_server_that_the_client_does_not_trust(scene):
    scene.server(*scene.certificates.server_flags())
    strange = scene.certificates.context(trusting="stranger")
    refused = raised_by(scene.lock("diamond", ssl_context=strange).acquire)
    assert isinstance(refused, ssl.SSLCertVerificationError), refused
    assert scene.lock("diamond", ssl_context=scene.certificates.context()).acquire()


@case("tls", "openssl")
def a_client_without_tls(scene):
    scene.server(*scene.certificates.server_flags())
    raised_by(scene.lock("diamond").acquire)
    assert scene.lock("diamond", ssl_context=scene.certificates.context()).acquire()


@case("tls", "openssl")
def clients_with_and_without_a_certificate(scene):
    scene.server(*scene.certificates.server_flags(ask_for_clients=True))
    # In TLS 1.3 the client learns of it only when it reads: any error will do.
    raised_by(scene.lock("diamond", ssl_context=scene.certificates.context()).acquire)
    known = scene.certificates.context(as_client=True)
    assert scene.lock("diamond", ssl_context=known).acquire()
    assert not scene.lock("diamond", ssl_context=known).acquire()


@case("auth", "tls", "signals", "openssl")
def signals_over_tls(scene):
    scene.server(*scene.certificates.server_flags(), "--auth-token", "open sesame")
    known = {"ssl_context": scene.certificates.context(), "auth_token": "open sesame"}
    listener, speaker = scene.signals(**known), scene.signals(**known)
    listener.listen("orders.>")
    assert speaker.emit("orders.42", "paid") == 1
    assert scene.api.next_signal(listener) == ("orders.42", "paid")
