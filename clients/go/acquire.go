package lockd

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

const (
	// waitSecondsMax is the longest wait that a request names; a longer one asks again.
	waitSecondsMax = 365 * 24 * 3600
	// The server's own end of a wait is waited for if it is at most serverEndsWithin later than
	// ours, and then for timeoutGrace at most.
	serverEndsWithin = 200 * time.Millisecond
	timeoutGrace     = time.Second
	// refusedAgainWithin is how soon a server that refuses the request itself does so again.
	refusedAgainWithin = time.Second
	// conflictTimeout bounds the question who was in the way.
	conflictTimeout = time.Second
)

// Acquire waits in the queue of a lock, or of a semaphore, until it is granted. From then on it is
// renewed, until it is released.
//
// It ends with [ErrNotAcquired] when the time of [Wait] is over, and with the context's error, at
// once, when that is done: the place in the queue is given up. A server that cannot be reached,
// restarts or stops is asked again until then; a refusal, such as [ErrMaxWaiters], is returned.
//
// The context is also the parent of [Held.Context].
func (c *Client) Acquire(ctx context.Context, key string, options ...AcquireOption) (*Held, error) {
	request, err := newRequest(key, options)
	if err != nil {
		return nil, named(err, "acquire", key)
	}
	a, err := c.newAcquisition(ctx, request, request)
	if err != nil {
		return nil, named(err, "acquire", key)
	}
	return a.run()
}

// TryAcquire is Acquire without a wait: [ErrNotAcquired] if it cannot be had at once.
func (c *Client) TryAcquire(
	ctx context.Context, key string, options ...AcquireOption,
) (*Held, error) {
	return c.Acquire(ctx, key, append(options[:len(options):len(options)], Wait(0))...)
}

// acquisition is one call, at however many servers.
type acquisition struct {
	client    *Client
	ctx       context.Context // the caller's
	request   *request
	wish      wish
	cluster   *cluster
	as        string // the word by which a server knows it when it is asked again
	startedAt instant
	deadline  instant

	joined    int     // how often it has joined a queue
	isInDoubt bool    // it was asked for, and the answer did not come
	refusedAt instant // when it was last refused by a plain error
	conflict  conflict
	late      *grant // came late, and its renewal was not answered
	held      *Held  // once it has succeeded
}

func (c *Client) newAcquisition(
	ctx context.Context, request *request, wish wish,
) (*acquisition, error) {
	as, err := newAcquisitionWord()
	if err != nil {
		return nil, err
	}
	cluster := c.clusterOf(request.key)
	a := &acquisition{client: c, request: request, wish: wish, cluster: cluster, as: as}
	a.begin(ctx)
	return a, nil
}

// begin starts the wait.
func (a *acquisition) begin(ctx context.Context) {
	a.ctx, a.startedAt, a.deadline = ctx, now(), never
	if a.request.wait != forever {
		a.deadline = a.startedAt.add(a.request.wait)
	}
}

// run asks until there is a grant that is certain, or no time left.
func (a *acquisition) run() (*Held, error) {
	ctx, cancel := a.client.scope(a.ctx)
	defer cancel()
	ask := func(on *conn) error {
		given, err := a.take(ctx, on)
		if err != nil {
			return err
		}
		return a.keep(ctx, on, given)
	}
	err := a.cluster.atLeader(ctx, errand{ask: ask, giveUpAt: a.giveUpAt()})
	if err != nil {
		a.withdraw()
		return nil, a.explained(err)
	}
	return a.held, nil
}

// giveUpAt is when nobody is asked any more. An election is waited for, also by a try.
func (a *acquisition) giveUpAt() instant {
	if a.cluster.isAlone() {
		return a.deadline
	}
	return max(a.deadline, a.startedAt.add(a.client.settings.connectTimeout))
}

func (a *acquisition) left() time.Duration {
	return max(a.deadline.sub(now()), 0)
}

// take asks for a grant. A wait that is shorter than the way there and back would be over before
// any answer: so a short one begins with a try.
func (a *acquisition) take(ctx context.Context, on *conn) (grant, error) {
	as, err := a.wordFor(on)
	if err != nil {
		return grant{}, err
	}
	lines := func(wait time.Duration) string { return a.wish.acquireLines(wait, as) }
	if left := a.left(); 0 < left && left < time.Second {
		given, err := a.ask(ctx, on, 0, lines)
		if !errors.Is(err, errEarly) {
			return given, err
		}
	}
	return a.ask(ctx, on, a.left(), lines)
}

// wordFor is empty for servers that would take the word for a mistake. Those are not asked at all
// for what else they do not know.
func (a *acquisition) wordFor(on *conn) (string, error) {
	switch {
	case on.isIdentified:
		return a.as, nil
	case a.wish.isPlain():
		return "", nil
	default:
		return "", failure(ErrUnsupported, "shared locks, several permits, several keys")
	}
}

// ask waits in the queue, or tries when nothing is left of the wait. A wait that cannot be named
// exactly is ended here, by leaving.
func (a *acquisition) ask(
	ctx context.Context, on *conn, left time.Duration, lines func(time.Duration) string,
) (grant, error) {
	wait := a.wish.nameWait(left)
	if wait > 0 {
		a.joined++
	}
	answer, err := on.ask(ctx, lines(wait), a.leaveAt(left, wait))
	if err != nil {
		a.isInDoubt = true
	}
	if errors.Is(err, ErrNoReply) && wait-left > serverEndsWithin {
		return grant{}, failure(errTimeout, "")
	}
	if err != nil {
		return grant{}, err
	}
	given, err := a.wish.parseGrant(answer)
	if err == nil || !movesOn(err) {
		a.isInDoubt = false
	}
	if err != nil {
		return grant{}, a.judged(ctx, on, answer, err)
	}
	return given, nil
}

// leaveAt is when the reply is waited for no longer.
func (a *acquisition) leaveAt(left, named time.Duration) instant {
	if named == 0 {
		return now().add(a.client.settings.replyTimeout)
	}
	if a.deadline == never || named-left > serverEndsWithin {
		return a.deadline
	}
	return a.deadline.add(serverEndsWithin + timeoutGrace)
}

// judged is what a refusal means to somebody who is ready to wait.
func (a *acquisition) judged(ctx context.Context, on *conn, answer reply, refusal error) error {
	hasTime := now() < a.deadline
	switch {
	case errors.Is(refusal, errTimeout) && hasTime:
		return failure(errEarly, "")
	case errors.Is(refusal, errTimeout):
		a.conflict = a.wish.conflict(ctx, on, answer)
	case answer.line == "error" && hasTime:
		// A server that stops ends the waits at it so. One that refuses the request itself does so
		// again, and at once.
		isRepeated := a.refusedAt != 0 && now().sub(a.refusedAt) < refusedAgainWithin
		a.refusedAt = now()
		if !isRepeated {
			return failure(ErrDraining, "it ended the wait")
		}
	}
	return refusal
}

// keep has a grant renewed from now on.
func (a *acquisition) keep(ctx context.Context, on *conn, given grant) error {
	given, err := a.confirmed(ctx, on, given)
	if err != nil {
		return err
	}
	a.held = newHeld(a, given)
	a.client.renewer.keep(a.held, on)
	if a.client.closed.Err() != nil {
		// Close may have looked before.
		a.held.Release()
		return ErrClosed
	}
	return nil
}

// confirmed renews a grant that is due for it already, so that nobody is given what ran out while
// the reply was under way or this process was stopped. Others it returns as they are.
func (a *acquisition) confirmed(ctx context.Context, on *conn, given grant) (grant, error) {
	if cause, isLost := on.lossOf(given.token); isLost && cause != LossExpired {
		return grant{}, &LostError{Key: a.request.key, Fence: given.fence, Cause: cause}
	} else if isLost {
		return grant{}, a.lapsed()
	}
	if now() < given.renewAt() {
		return given, nil
	}
	settings := a.client.settings
	deadline := now().add(settings.replyTimeout).add(settings.connectTimeout)
	question := question{a.wish.renewLines(given), deadline, a.wish.check}
	answer, err := a.cluster.askByToken(ctx, on, question)
	if err != nil {
		a.isInDoubt, a.late = true, &given
		return grant{}, err
	}
	remaining, err := a.wish.parseRenewal(answer, given)
	if saysGone(err) {
		return grant{}, a.lapsed()
	}
	given.sentAt, given.remaining = answer.sentAt, remaining
	return given, err
}

// lapsed is the end of a grant before anyone took it. There may be time to ask again.
func (a *acquisition) lapsed() error {
	if now() < a.deadline {
		return failure(errEarly, "")
	}
	return failure(ErrLeaseExpired, "")
}

// explained is the error that the caller gets.
func (a *acquisition) explained(err error) error {
	err = a.client.ended(a.ctx, err)
	isOver := a.request.wait > 0 && now() >= a.deadline && isPassing(err)
	if !isOver && !errors.Is(err, errTimeout) {
		return named(err, "acquire", a.request.key)
	}
	over := &NotAcquiredError{
		Key:         a.request.key,
		Waited:      now().sub(a.startedAt),
		QueuedAgain: a.queuedAgain(),
		Holder:      a.conflict.holder,
		Client:      a.conflict.client,
		Waiters:     a.conflict.waiters,
	}
	if !isAny(err, errTimeout, errEarly) {
		over.Err = err
	}
	return over
}

func (a *acquisition) queuedAgain() int { return max(a.joined-1, 0) }

// conflict is who was in the way.
type conflict struct {
	holder, client string
	waiters        int
}

// conflict asks a server that is new enough to know. Without an answer nothing is known.
func (r *request) conflict(ctx context.Context, on *conn, _ reply) conflict {
	if !on.isIdentified {
		return conflict{}
	}
	query, _ := json.Marshal(map[string]string{"key": r.key})
	ask := lines("api", "GET /v1/locks", string(query))
	answer, err := on.ask(ctx, ask, now().add(conflictTimeout))
	if err != nil {
		return conflict{}
	}
	return parseConflict(answer.line, r)
}
