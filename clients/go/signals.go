package lockd

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	signalsMax     = 1024
	signalBytesMax = 16 << 20
	// courierIdleMax is shorter than a server's patience with a connection that says nothing.
	courierIdleMax = 10 * time.Second
	// publishAttemptsMax bounds how often a signal is offered to servers that do not take it.
	publishAttemptsMax = 3
)

// Signal is a line that somebody has published.
type Signal struct {
	Channel string
	Payload string
}

// Publish sends a signal to those who listen, and returns how many connections it has reached. It
// goes through the leader of a cluster, and of several [Servers] through that of the channel. What
// may have been sent is never sent again.
func (c *Client) Publish(ctx context.Context, channel, payload string) (int, error) {
	if err := checkSignal(channel, payload); err != nil {
		return 0, named(err, "publish", channel)
	}
	scoped, cancel := c.scope(ctx)
	defer cancel()
	through := c.clusterOf(channel)
	reached, err := through.publish(scoped, lines("signal", channel, payload))
	if err != nil {
		return 0, named(c.ended(ctx, err), "publish", channel)
	}
	return reached, nil
}

func (c *cluster) publish(ctx context.Context, lines string) (int, error) {
	for attempts := 1; ; attempts++ {
		on, err := c.courier.connection(ctx, c)
		if err != nil {
			return 0, err
		}
		asked := on.begin(lines, lineSizeMax)
		answer, err := on.await(ctx, asked, now().add(c.settings.replyTimeout))
		if errors.Is(err, ErrNoReply) {
			on.close()
		}
		reached := 0
		if err == nil {
			reached, err = parseCount(answer)
		}
		isUndone := !asked.isSent || isAny(err, ErrNotLeader, ErrDraining)
		if !isUndone || attempts == publishAttemptsMax {
			return reached, on.at(err)
		}
		on.close()
	}
}

// courier keeps the connection on which signals are published, for a while.
type courier struct {
	turn chan struct{} // holds one: whoever takes it may use what follows
	conn *conn
	idle *time.Timer
}

func newCourier() courier {
	c := courier{turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	return c
}

func (c *courier) connection(ctx context.Context, to *cluster) (*conn, error) {
	select {
	case <-c.turn:
		defer func() { c.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	// A timer that has fired is closing the connection.
	if c.conn != nil && c.conn.isOpen() && c.idle.Stop() {
		c.idle.Reset(courierIdleMax)
		return c.conn, nil
	}
	keep := func(on *conn) error {
		c.conn = on
		c.idle = time.AfterFunc(courierIdleMax, on.close)
		return ctx.Err()
	}
	err := to.atLeader(ctx, errand{ask: keep, giveUpAt: to.searchUntil()})
	return c.conn, err
}

func (c *courier) close() {
	<-c.turn
	defer func() { c.turn <- struct{}{} }()
	if c.conn != nil {
		c.idle.Stop()
		c.conn.close()
	}
}

// ListenOption is a setting of a listener. See [Client.Listen].
type ListenOption func(*Listener) error

// Group makes the listener one of a group, which shares its signals: each goes to one member.
func Group(name string) ListenOption {
	return func(l *Listener) error {
		l.group = name
		return checkGroup(name)
	}
}

// Listener receives the signals of the channels that match a pattern, from the leader of a cluster,
// and from all of several [Servers]. When a connection breaks it listens again, on a new one; signals
// of the time between are lost. Any goroutine may use it.
type Listener struct {
	client  *Client
	pattern string
	group   string
	stop    context.CancelFunc
	ended   chan struct{} // closed when nobody listens any more
	arrived chan struct{} // holds one: look
	err     error         // why it has ended, once it has

	mu       sync.Mutex
	waiting  []Signal // oldest first
	bytes    int
	dropped  int
	reopened int
}

// Listen listens to the channels that match a pattern: dot-separated tokens, where * stands for one
// and > at the end for one or more. It returns when the server has said that it does.
func (c *Client) Listen(
	ctx context.Context, pattern string, options ...ListenOption,
) (*Listener, error) {
	l := &Listener{
		client:  c,
		pattern: pattern,
		ended:   make(chan struct{}),
		arrived: make(chan struct{}, 1),
	}
	failures := []error{checkPattern(pattern)}
	for _, option := range options {
		failures = append(failures, option(l))
	}
	if err := errors.Join(failures...); err != nil {
		return nil, named(err, "listen", pattern)
	}
	scoped, cancel := c.scope(ctx)
	defer cancel()
	var opened []*conn
	for _, through := range c.clusters {
		on, err := l.open(scoped, through, through.searchUntil())
		if err != nil {
			for _, on := range opened {
				on.close()
			}
			return nil, named(c.ended(ctx, err), "listen", pattern)
		}
		opened = append(opened, on)
	}
	running, stop := context.WithCancel(c.closed)
	l.stop = stop
	go l.run(running, opened)
	return l, nil
}

// Next returns the next signal, in the order in which they came. Its error is the context's; or why
// nobody listens any more, after the last signal: [ErrClosed], or a server that refuses.
func (l *Listener) Next(ctx context.Context) (Signal, error) {
	for {
		if signal, isThere := l.take(); isThere {
			return signal, nil
		}
		select {
		case <-l.arrived:
		case <-ctx.Done():
			return Signal{}, named(ctx.Err(), "listen", l.pattern)
		case <-l.ended:
			if signal, isThere := l.take(); isThere {
				return signal, nil
			}
			return Signal{}, named(l.err, "listen", l.pattern)
		}
	}
}

// Dropped is how many signals were dropped because nobody asked for them soon enough: of those that
// wait, the latest 1,024 are kept, and at most 16 MiB.
func (l *Listener) Dropped() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}

// Reopened is how often a connection broke and another was made. Signals may have been missed.
func (l *Listener) Reopened() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reopened
}

// Close ends it, and returns when it has ended.
func (l *Listener) Close() error {
	l.stop()
	<-l.ended
	return nil
}

func (l *Listener) open(ctx context.Context, through *cluster, giveUpAt instant) (*conn, error) {
	var opened *conn
	listen := func(on *conn) error {
		opened = on
		until := now().add(l.client.settings.replyTimeout)
		return on.command(ctx, lines("listen", l.pattern, l.group), until)
	}
	err := through.atLeader(ctx, errand{ask: listen, giveUpAt: giveUpAt, onSignal: l.put})
	return opened, err
}

// run listens, on a connection to each, until it cannot on one of them.
func (l *Listener) run(ctx context.Context, opened []*conn) {
	defer close(l.ended)
	reasons := make(chan error, len(opened))
	for i, on := range opened {
		go func(through *cluster, on *conn) {
			reasons <- l.runOn(ctx, through, on)
			l.stop()
		}(l.client.clusters[i], on)
	}
	l.err = <-reasons
	for range opened[1:] {
		<-reasons
	}
}

// runOn listens, again and again, and returns why not any more.
func (l *Listener) runOn(ctx context.Context, through *cluster, on *conn) error {
	var rest time.Duration
	for {
		openedAt := now()
		l.ping(ctx, on)
		on.close()
		rest = min(max(2*rest, pauseMinAlone), pauseMaxAlone)
		if now().sub(openedAt) > 2*pauseMaxAlone {
			rest = 0
		}
		err := pause(ctx, now().add(rest))
		if err == nil {
			on, err = l.open(ctx, through, never)
		}
		if ctx.Err() != nil {
			return ErrClosed
		}
		if err != nil {
			return err
		}
		l.mu.Lock()
		l.reopened++
		l.mu.Unlock()
	}
}

// ping returns when the connection has ended, or its server does not answer.
func (l *Listener) ping(ctx context.Context, on *conn) {
	ticker := time.NewTicker(l.client.settings.pingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-on.ended:
			return
		case <-ticker.C:
		}
		asked := on.begin(pingLines, lineSizeMax)
		if _, err := on.await(ctx, asked, now().add(l.client.settings.replyTimeout)); err != nil {
			return
		}
	}
}

func (l *Listener) put(signal Signal) {
	l.mu.Lock()
	l.waiting = append(l.waiting, signal)
	l.bytes += signal.size()
	for len(l.waiting) > signalsMax || l.bytes > signalBytesMax {
		l.bytes -= l.waiting[0].size()
		l.waiting = l.waiting[1:]
		l.dropped++
	}
	l.mu.Unlock()
	l.notify()
}

func (l *Listener) take() (Signal, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return Signal{}, false
	}
	first := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.bytes -= first.size()
	if len(l.waiting) > 0 {
		l.notify() // for another who asks
	}
	return first, true
}

func (l *Listener) notify() {
	select {
	case l.arrived <- struct{}{}:
	default:
	}
}

func (s Signal) size() int { return len(s.Channel) + len(s.Payload) }
