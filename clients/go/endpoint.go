package lockd

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
)

// endpoint is one server: how to get there, and what was learned of it.
type endpoint struct {
	address  string // host:port
	host     string
	settings *settings

	// lacksIdentity says that the server does not know the command client: it answers with an
	// error, and closes.
	lacksIdentity atomic.Bool
}

var errLacksIdentity = errors.New("the server does not know the command client")

// open connects, verifies the server, authenticates, and says who we are.
func (e *endpoint) open(ctx context.Context, until instant, onSignal func(Signal)) (*conn, error) {
	opened, err := e.openOnce(ctx, until, onSignal)
	if errors.Is(err, errLacksIdentity) {
		e.lacksIdentity.Store(true)
		opened, err = e.openOnce(ctx, until, onSignal)
	}
	// The caller's own end is no failure of the server.
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return opened, err
}

func (e *endpoint) openOnce(
	ctx context.Context, until instant, onSignal func(Signal),
) (*conn, error) {
	stream, err := e.connect(ctx, until)
	if err != nil {
		return nil, err
	}
	opened := newConn(e, stream, onSignal)
	if err := opened.greet(ctx, until); err != nil {
		opened.close()
		return nil, err
	}
	return opened, nil
}

func (e *endpoint) connect(ctx context.Context, until instant) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, until.sub(now()))
	defer cancel()
	var dialer net.Dialer
	stream, err := dialer.DialContext(ctx, "tcp", e.address)
	if err != nil {
		return nil, e.unreachable(ctx, err)
	}
	if e.settings.tls == nil {
		return stream, nil
	}
	config := e.settings.tls.Clone()
	if config.ServerName == "" {
		config.ServerName = e.host
	}
	secured := tls.Client(stream, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		stream.Close()
		return nil, e.untrusted(ctx, err)
	}
	return secured, nil
}

// unreachable keeps the end of our own time apart from that of the caller's context.
func (e *endpoint) unreachable(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return e.failed(ErrUnreachable, err)
	}
	failed := e.failed(ErrUnreachable, nil)
	failed.Detail = "not in time"
	return failed
}

func (e *endpoint) untrusted(ctx context.Context, err error) error {
	var verification *tls.CertificateVerificationError
	if errors.As(err, &verification) {
		return e.failed(ErrUntrusted, err)
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		return e.failed(ErrUnauthorized, err)
	}
	return e.unreachable(ctx, err)
}

func (e *endpoint) failed(kind, err error) *Error {
	return &Error{Server: e.address, Kind: kind, Err: err}
}

// greet authenticates, and says who we are to a server that may want to know.
func (c *conn) greet(ctx context.Context, until instant) error {
	token, err := c.server.settings.authToken()
	if err != nil {
		return err
	}
	if token != "" {
		if err := c.authenticate(ctx, token, until); err != nil {
			return err
		}
	}
	if c.server.lacksIdentity.Load() {
		return nil
	}
	identity := c.server.settings.identity
	err = c.command(ctx, lines("client", identity.name, identity.note), until)
	if errors.Is(err, ErrRefused) {
		return errLacksIdentity
	}
	c.isIdentified = err == nil
	return err
}

func (c *conn) authenticate(ctx context.Context, token string, until instant) error {
	err := c.command(ctx, lines("auth", "", token), until)
	if errors.Is(err, ErrRefused) {
		// A server that asks for no auth token knows no such command.
		failed := c.failed(ErrUnauthorized, nil)
		failed.Detail = "it refused the auth token; it may ask for none"
		return failed
	}
	return err
}

// command asks for what is answered with ok alone.
func (c *conn) command(ctx context.Context, lines string, until instant) error {
	answer, err := c.ask(ctx, lines, until)
	if err != nil {
		return err
	}
	_, err = parseStatus(answer.line)
	return c.at(err)
}

// at adds the server's address to its answer.
func (c *conn) at(err error) error {
	var known *Error
	if errors.As(err, &known) && known.Server == "" {
		known.Server = c.server.address
	}
	return err
}
