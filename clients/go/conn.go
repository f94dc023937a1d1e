package lockd

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	lineSizeMax  = 1 << 20
	statsSizeMax = 256 << 20
	// writeTimeout bounds a write that the system has no room for, which of a peer that reads
	// nothing it has not for long.
	writeTimeout = 10 * time.Second
	// lostMax is how many losses a connection remembers whose grants it has not seen.
	lostMax = 16
)

// conn is one connection to one server. Requests go out in order, and replies come back in that
// order, with pushed lines between them: signals, and what was lost.
//
// Any goroutine may use it. A goroutine of its own reads; it ends with the connection.
type conn struct {
	server *endpoint
	net    net.Conn
	// onSignal is called by the goroutine that reads.
	onSignal func(Signal)
	// isIdentified says that the server knows the command client, and what came with it. It is
	// set before anybody else has the connection.
	isIdentified bool
	ended        chan struct{}

	sendMu sync.Mutex // keeps the order of requests; taken before mu

	mu      sync.Mutex
	awaited []*exchange // sent and not answered, oldest first
	lost    map[string]LossCause
	failure error
	watch   func() // called without mu when anything has come
}

// exchange is a request, and its reply once done is closed.
type exchange struct {
	sentAt  instant
	sizeMax int
	isSent  bool
	done    chan struct{}
	line    string
}

type reply struct {
	line   string
	sentAt instant
}

func newConn(server *endpoint, stream net.Conn, onSignal func(Signal)) *conn {
	c := &conn{
		server:   server,
		net:      stream,
		onSignal: onSignal,
		ended:    make(chan struct{}),
		lost:     map[string]LossCause{},
	}
	go c.read()
	return c
}

// ask sends a request and waits for its reply. Whoever gets none closes the connection: there is no
// other way to leave a queue.
func (c *conn) ask(ctx context.Context, lines string, until instant) (reply, error) {
	return c.await(ctx, c.begin(lines, lineSizeMax), until)
}

// begin sends a request. It does not wait for the reply.
func (c *conn) begin(lines string, sizeMax int) *exchange {
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	asked := &exchange{sizeMax: sizeMax, done: make(chan struct{})}
	c.mu.Lock()
	asked.sentAt = now()
	asked.isSent = c.failure == nil
	if asked.isSent {
		c.awaited = append(c.awaited, asked)
	}
	c.mu.Unlock()
	if asked.isSent {
		c.net.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := io.WriteString(c.net, lines); err != nil {
			c.end(c.broken(err))
		}
	}
	return asked
}

// await waits for a reply. It leaves the connection open.
func (c *conn) await(ctx context.Context, asked *exchange, until instant) (reply, error) {
	alarm := newAlarm(until)
	defer alarm.stop()
	var err error
	select {
	case <-asked.done:
	case <-c.ended:
		err = c.err()
	case <-ctx.Done():
		err = ctx.Err()
	case <-alarm.rings:
		err = c.failed(ErrNoReply, nil)
	}
	// What has come is an answer, whatever else has happened.
	if asked.isDone() {
		return asked.reply(), nil
	}
	return reply{}, err
}

func (x *exchange) isDone() bool {
	select {
	case <-x.done:
		return true
	default:
		return false
	}
}

// reply is for those who know that it is done.
func (x *exchange) reply() reply { return reply{line: x.line, sentAt: x.sentAt} }

// watchBy has notify called whenever a reply or a loss has come, or the end.
func (c *conn) watchBy(notify func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watch = notify
}

// lossOf says how the grant ended, if the server has said that it did.
func (c *conn) lossOf(token string) (LossCause, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cause, isLost := c.lost[token]
	return cause, isLost
}

// err is why it has ended; nil while it has not.
func (c *conn) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}

func (c *conn) isOpen() bool { return c.err() == nil }

func (c *conn) close() { c.end(c.failed(ErrDisconnected, nil)) }

func (c *conn) end(why error) {
	c.mu.Lock()
	if c.failure != nil {
		c.mu.Unlock()
		return
	}
	c.failure = why
	close(c.ended)
	notify := c.watch
	c.mu.Unlock()
	c.net.Close()
	if notify != nil {
		notify()
	}
}

func (c *conn) failed(kind, err error) *Error {
	return &Error{Server: c.server.address, Kind: kind, Err: err}
}

// broken is what an error of the socket means.
func (c *conn) broken(err error) error {
	var op *net.OpError
	// An alert of TLS: the server wants another certificate, or one at all.
	if errors.As(err, &op) && op.Op == "remote error" {
		return c.failed(ErrUnauthorized, err)
	}
	if errors.Is(err, io.EOF) {
		return c.failed(ErrDisconnected, nil)
	}
	return c.failed(ErrDisconnected, err)
}

// --- reading ---

func (c *conn) read() {
	in := bufio.NewReader(c.net)
	for c.isOpen() {
		line, err := c.readLine(in)
		if err != nil {
			c.end(err)
			return
		}
		c.take(line)
	}
}

// readLine reads a line, without its end.
func (c *conn) readLine(in *bufio.Reader) (string, error) {
	var line []byte
	for {
		piece, err := in.ReadSlice('\n')
		line = append(line, piece...)
		if len(line) > c.sizeMax() {
			return "", c.failed(ErrGarbled, errors.New("a line that is too long"))
		}
		if err == nil {
			return strings.TrimRight(string(line), "\r\n"), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return "", c.broken(err)
		}
	}
}

// sizeMax is how long the next line may be.
func (c *conn) sizeMax() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.awaited) > 0 {
		return c.awaited[0].sizeMax
	}
	return lineSizeMax
}

func (c *conn) take(line string) {
	if rest, isPush := strings.CutPrefix(line, pushSignal); isPush {
		if c.onSignal != nil {
			c.onSignal(parseSignal(rest))
		}
		return
	}
	if rest, isPush := strings.CutPrefix(line, pushLost); isPush {
		c.takeLost(rest)
		return
	}
	c.takeReply(line)
}

// takeLost remembers a loss. It may come before the grant's own reply was understood.
func (c *conn) takeLost(rest string) {
	token, cause := parseLost(rest)
	c.mu.Lock()
	if len(c.lost) >= lostMax {
		clear(c.lost)
	}
	c.lost[token] = cause
	notify := c.watch
	c.mu.Unlock()
	if notify != nil {
		notify()
	}
}

func (c *conn) takeReply(line string) {
	c.mu.Lock()
	if len(c.awaited) == 0 {
		c.mu.Unlock()
		c.end(c.unasked(line))
		return
	}
	asked := c.awaited[0]
	c.awaited = c.awaited[1:]
	notify := c.watch
	c.mu.Unlock()
	asked.line = line
	close(asked.done)
	if notify != nil {
		notify()
	}
}

// unasked is what a server says that is about to close: we were silent for too long, or it stops.
func (c *conn) unasked(line string) error {
	if _, err := parseStatus(line); errors.Is(err, ErrGarbled) {
		return c.failed(ErrGarbled, errors.New(shown(line)))
	}
	return c.failed(ErrDisconnected, errors.New("the server said "+shown(line)))
}

// --- waiting ---

// alarm rings at a moment, or never.
type alarm struct {
	rings <-chan time.Time
	timer *time.Timer
}

func newAlarm(at instant) alarm {
	if at == never {
		return alarm{}
	}
	timer := time.NewTimer(at.sub(now()))
	return alarm{rings: timer.C, timer: timer}
}

func (a alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// pause waits until then, or until the context is done.
func pause(ctx context.Context, until instant) error {
	if ctx.Err() != nil || now() >= until {
		return ctx.Err()
	}
	alarm := newAlarm(until)
	defer alarm.stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-alarm.rings:
		return nil
	}
}
