package lockd

import (
	"context"
	"errors"
	"sync"
)

// Place is a place in a queue: the first phase of an acquisition in two. Whoever has one calls
// [Place.Wait] once, or [Place.Close]. Any goroutine may do so.
type Place struct {
	acquisition *acquisition
	conn        *conn
	given       grant
	isGranted   bool
	stop        func() bool // ends the watch for the client's end

	mu     sync.Mutex
	isUsed bool
}

// Enqueue joins the queue, and returns at once. The options are those of [Client.Acquire]; the
// time of [Wait] begins with [Place.Wait].
func (c *Client) Enqueue(
	ctx context.Context, key string, options ...AcquireOption,
) (*Place, error) {
	request, err := newRequest(key, options)
	if err != nil {
		return nil, named(err, "enqueue", key)
	}
	a, err := c.newAcquisition(ctx, request, request)
	if err != nil {
		return nil, named(err, "enqueue", key)
	}
	a.deadline = a.startedAt
	scoped, cancel := c.scope(ctx)
	defer cancel()
	place := &Place{acquisition: a}
	join := func(on *conn) error { return place.join(scoped, on) }
	err = a.cluster.atLeader(scoped, errand{ask: join, giveUpAt: a.giveUpAt()})
	if err != nil {
		return nil, named(c.ended(ctx, err), "enqueue", key)
	}
	return place, nil
}

func (p *Place) join(ctx context.Context, on *conn) error {
	a := p.acquisition
	as, err := a.wordFor(on)
	if err != nil {
		return err
	}
	until := now().add(a.client.settings.replyTimeout)
	answer, err := on.ask(ctx, a.request.enqueueLines(as), until)
	if err != nil {
		return err
	}
	given, err := a.wish.parseGrant(answer)
	if err != nil && !errors.Is(err, errQueued) {
		return err
	}
	p.conn, p.given, p.isGranted = on, given, err == nil
	p.stop = context.AfterFunc(a.client.closed, on.close)
	a.joined = 1
	return nil
}

// Granted says whether it was granted at once. The lease is running, and nobody renews it before
// Wait.
func (p *Place) Granted() bool { return p.isGranted }

// Wait waits for the turn, as [Client.Acquire] does, and uses the place up. If the place is lost
// meanwhile, with the server or the connection, another is taken at the end of the queue:
// [Held.QueuedAgain]. The context is the parent of [Held.Context].
func (p *Place) Wait(ctx context.Context) (*Held, error) {
	a := p.acquisition
	if !p.use() {
		return nil, named(failure(ErrNotEnqueued, "the place is used up"), "wait", a.request.key)
	}
	a.begin(ctx)
	scoped, cancel := a.client.scope(ctx)
	defer cancel()
	err := p.await(scoped)
	if err == nil {
		return a.held, nil
	}
	p.conn.close()
	if isPassing(err) && now() < a.deadline {
		return a.run()
	}
	return nil, a.explained(err)
}

func (p *Place) await(ctx context.Context) error {
	a := p.acquisition
	given := p.given
	if !p.isGranted {
		var err error
		given, err = a.ask(ctx, p.conn, a.left(), a.request.awaitLines)
		a.joined = 1 // it had joined before
		if err != nil {
			return err
		}
	}
	return a.keep(ctx, p.conn, given)
}

// Close gives the place up, unless it is used up.
func (p *Place) Close() error {
	if !p.use() {
		return nil
	}
	// The end of the connection gives up a place in the queue. It releases a grant, too, unless the
	// server was told not to: so a release is sent. Nobody waits for the answer.
	if p.isGranted {
		p.conn.begin(p.acquisition.request.releaseLines(p.given), lineSizeMax)
	}
	p.conn.close()
	return nil
}

// use says false when it was used before.
func (p *Place) use() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isUsed {
		return false
	}
	p.isUsed = true
	p.stop()
	return true
}
