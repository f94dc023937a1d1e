// Who is let in: the shared secret, and TLS.

package interop

import (
	"strings"
	"testing"

	"github.com/mtingers/dflockd/client"
)

func TestTheRightSecret(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"open sesame", strings.Repeat("s", 60_000)} {
		s := startServer(t, "--auth-token", secret)
		lock := newLock(t, "diamond", s)
		lock.AuthToken = secret
		acquire(t, lock)
		release(t, lock)
	}
}

func TestAWrongSecret(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--auth-token", "open sesame")
	lock := newLock(t, "diamond", s)
	lock.AuthToken = "open barley"
	_, err := lock.Acquire(patient(t))
	expectError(t, err, client.ErrAuth)
	lock.AuthToken = "open sesame"
	acquire(t, lock)
}

func TestNoSecret(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--auth-token", "open sesame")
	_, err := newLock(t, "diamond", s).Acquire(patient(t))
	expectError(t, err, client.ErrServer)
	expect(t, strings.Contains(err.Error(), "error_auth"), true)
}

func TestASecretThatNobodyAskedFor(t *testing.T) {
	t.Parallel()
	lock := newLock(t, "diamond", startServer(t))
	lock.AuthToken = "open sesame"
	_, err := lock.Acquire(patient(t))
	expectError(t, err, client.ErrAuth)
}

func TestASemaphoreAndASecretOverTls(t *testing.T) {
	t.Parallel()
	authority := newAuthority(t)
	s := startServer(t, append(authority.serverFlags(), "--auth-token", "open sesame")...)
	first, second := newSemaphore(t, "pool", 1, s), newSemaphore(t, "pool", 1, s)
	first.TLSConfig, first.AuthToken = authority.trust(), "open sesame"
	second.TLSConfig, second.AuthToken = authority.trust(), "open barley"
	acquire(t, first)
	_, err := second.Acquire(patient(t))
	expectError(t, err, client.ErrAuth)
	second.AuthToken = "open sesame"
	enqueue(t, second, "queued")
	waitInVain(t, second)
}

func TestClientsWithAndWithoutACertificate(t *testing.T) {
	t.Parallel()
	authority := newAuthority(t)
	s := startServer(t, authority.strictServerFlags()...)
	lock := newLock(t, "diamond", s)
	lock.TLSConfig = authority.trust()
	// In TLS 1.3 the client learns of it only when it reads: any error will do.
	granted, err := lock.Acquire(patient(t))
	expect(t, granted, false)
	expect(t, err != nil, true)
	lock.TLSConfig = authority.mutualTrust()
	acquire(t, lock)
}

func TestSignalsAndASecretOverTls(t *testing.T) {
	t.Parallel()
	authority := newAuthority(t)
	s := startServer(t, append(authority.serverFlags(), "--auth-token", "open sesame")...)
	connect := func() *client.SignalConn {
		conn, err := client.DialTLS(s.address, authority.trust())
		succeed(t, err)
		succeed(t, client.Authenticate(conn, "open sesame"))
		return overConnection(t, conn)
	}
	listener, speaker := connect(), connect()
	succeed(t, listener.Listen("orders.>"))
	expectToReach(t, speaker, "orders.42", "paid", 1)
	expectToHear(t, listener, "orders.42", "paid")
}
