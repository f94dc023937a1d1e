package lockd

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// State is what the owner of a lock may believe of it.
type State string

const (
	// StateHeld: the lock is certain to be held.
	StateHeld State = "held"
	// StateSuspect: the connection of the lock has ended, and no new one has renewed it yet. The
	// server may have released it.
	StateSuspect State = "suspect"
	// StateLost: the lock is held no more, and never again. Also that of a lock that was released.
	StateLost State = "lost"
)

// Held is a lock, or permits of a semaphore, that is held. It is renewed in the background until it
// is released or lost. Any goroutine may use it.
//
// When it is lost its owner is told in every way there is: [Held.Check] returns a [*LostError], the
// context is cancelled with it as its cause, and the function of [OnLost] is called with it.
//
// A lease that was granted or renewed runs at least from the moment at which the request was sent.
// What is held is certain for that long, by a clock that goes on while the machine is suspended.
// Past it the lock is lost, whatever may still arrive.
type Held struct {
	renewer        *renewer
	cluster        *cluster
	request        *request
	wish           wish
	grant          grant
	queuedAgain    int
	stopAt         instant // when nobody renews any more
	releaseTimeout time.Duration

	ctx       context.Context
	cancel    context.CancelCauseFunc
	certainty certainty

	release struct {
		once sync.Once
		err  error
	}

	mu         sync.Mutex
	loss       *LostError
	isReleased bool
	lastError  error // of renewals, since one was confirmed
}

func newHeld(a *acquisition, given grant) *Held {
	h := &Held{
		renewer:        a.client.renewer,
		cluster:        a.cluster,
		request:        a.request,
		wish:           a.wish,
		grant:          given,
		queuedAgain:    a.queuedAgain(),
		stopAt:         never,
		releaseTimeout: a.client.settings.releaseTimeout,
		certainty:      certainty{until: given.certainUntil()},
	}
	if a.request.maxHold > 0 {
		h.stopAt = given.sentAt.add(a.request.maxHold)
	}
	h.ctx, h.cancel = context.WithCancelCause(a.ctx)
	return h
}

// String names the key and the fence, and not the token: that would be as good as the lock.
func (h *Held) String() string {
	return fmt.Sprintf("%q under fence %d", h.request.key, h.grant.fence)
}

// Key is what is held; of several keys, the first.
func (h *Held) Key() string { return h.request.key }

// Keys are what is held.
func (h *Held) Keys() []string { return slices.Clone(h.request.keys) }

// Fence is the fencing token: a number that rises with every grant of the key. Several keys that
// were acquired at once have one. Hand it to whatever
// the lock protects, and let that refuse one smaller than the largest it has seen. Of servers whose
// tokens are random it means nothing.
func (h *Held) Fence() uint64 { return h.grant.fence }

// Token names the grant to the server: whoever knows it may release it. Log the fence instead.
func (h *Held) Token() string { return h.grant.token }

// Lease is for how long the server lets a silent client hold on.
func (h *Held) Lease() time.Duration { return h.grant.lease }

// QueuedAgain is how often the request was sent again because its place in the queue was lost, with
// the server or the connection: it then went to the end.
func (h *Held) QueuedAgain() int { return h.queuedAgain }

// Context is a child of the context of the acquisition. It is cancelled as soon as the client knows
// that the lock is lost, and then its cause is a [*LostError]; and when the lock is released, and
// then its cause is [ErrReleased]. Ask [Held.Check] to know now.
func (h *Held) Context() context.Context { return h.ctx }

// State says whether the lock is held, suspect or lost.
func (h *Held) State() State { return h.certainty.state(now()) }

// LastError is why the last renewal failed; nil once a renewal is confirmed.
func (h *Held) LastError() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lastError
}

// Check returns nil if the lock is certain to be held, a [*SuspectError] while its connection is
// gone and no new one has renewed it, and otherwise a [*LostError], or [ErrReleased], which are
// final. It looks at the clock each time. Call it before whatever cannot be undone.
func (h *Held) Check() error {
	switch h.State() {
	case StateHeld:
		return nil
	case StateSuspect:
		return &SuspectError{Key: h.request.key, Fence: h.grant.fence, Err: h.LastError()}
	}
	h.mu.Lock()
	isReleased, loss := h.isReleased, h.loss
	h.mu.Unlock()
	switch {
	case loss != nil:
		return loss
	case isReleased:
		return named(ErrReleased, "check", h.request.key)
	default:
		return h.lose(h.lossByClock())
	}
}

// Remaining is for how long the lease of the lock runs, unless it is renewed or ends; 0 when it is
// lost.
func (h *Held) Remaining() time.Duration {
	at := now()
	if !h.certainty.lasts(at) {
		return 0
	}
	return max(h.certainty.endsAt().sub(at), 0)
}

// Release tells the server, and waits for its answer, for the time of [ReleaseTimeout] at most. It
// returns a [*LostError] if the lock was lost before, or why there is no answer: then the server
// releases it when it notices the end of the connection, or with the lease. Whatever it returns,
// nothing is held afterwards. A second call returns what the first did.
func (h *Held) Release() error {
	h.release.once.Do(func() { h.release.err = h.tellServer() })
	return h.release.err
}

func (h *Held) tellServer() error {
	connections := h.renewer.withdraw(h)
	defer connections.close()
	lines := h.wish.releaseLines(h.grant)
	if loss := h.endByOwner(); loss != nil {
		// The server may keep it a little longer than we believed in it.
		connections.say(lines)
		return loss
	}
	home := connections.current
	wasOpen := home != nil && home.isOpen()
	question := question{lines, now().add(h.releaseTimeout), h.wish.check}
	answer, err := h.cluster.askByToken(context.Background(), home, question)
	if err == nil {
		err = h.wish.check(answer)
	}
	if saysGone(err) && wasOpen && !home.isOpen() {
		// A first release whose answer was lost may have been what released it.
		return nil
	}
	if saysGone(err) {
		return h.lost(LossRefused)
	}
	if err != nil {
		return named(err, "release", h.request.key)
	}
	return nil
}

// endByOwner ends it, unless it is lost: then it returns how.
func (h *Held) endByOwner() error {
	lasted := h.certainty.end(now())
	h.mu.Lock()
	if h.loss == nil && lasted {
		h.isReleased = true
	}
	isReleased, loss := h.isReleased, h.loss
	h.mu.Unlock()
	switch {
	case isReleased:
		h.cancel(ErrReleased)
		return nil
	case loss != nil:
		return loss
	default:
		return h.lose(h.lossByClock())
	}
}

// lose ends it by no doing of its owner, who is told, unless that has been done. It returns how it
// was lost first.
func (h *Held) lose(cause LossCause) error {
	h.certainty.end(now())
	h.mu.Lock()
	isNews := h.loss == nil && !h.isReleased
	if isNews {
		h.loss = h.lost(cause)
		h.loss.Err = h.lastError
	}
	loss := h.loss
	h.mu.Unlock()
	if isNews {
		h.cancel(loss)
		if h.request.onLost != nil {
			go h.request.onLost(loss)
		}
	}
	if loss == nil {
		return ErrReleased
	}
	return loss
}

func (h *Held) lost(cause LossCause) *LostError {
	return &LostError{Key: h.request.key, Fence: h.grant.fence, Cause: cause}
}

// lossByClock is how it was lost if nobody but the clock says so.
func (h *Held) lossByClock() LossCause {
	switch {
	case h.isPastMaxHold():
		return LossMaxHold
	case isDefinite(h.LastError()):
		return LossUnauthorized
	default:
		return LossUnsure
	}
}

// note remembers why a renewal failed, or nil for one that was confirmed. It warns once of each
// kind of failure in a row.
func (h *Held) note(err error) {
	h.mu.Lock()
	before := h.lastError
	h.lastError = err
	h.mu.Unlock()
	if err != nil && (before == nil || kindOf(err) != kindOf(before)) {
		slog.Warn("lockd: a lock was not renewed", "key", h.request.key, "error", err)
	}
}

func (h *Held) isPastMaxHold() bool { return now() >= h.stopAt }
