package lockd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Why a call failed, for errors.Is. The errors themselves are an [*Error], a [*NotAcquiredError] or
// a [*LostError], for errors.As.
var (
	// ErrNotAcquired is the end of the wait: somebody else holds it, or the server could not be
	// asked, which [NotAcquiredError.Err] says then.
	ErrNotAcquired = errors.New("not acquired within the wait")
	// ErrLost is that of what was held and is held no more, by no doing of its owner.
	ErrLost = errors.New("the lock is lost")
	// ErrSuspect is that of a lock whose connection has ended, and that no new one has renewed yet.
	ErrSuspect = errors.New("the lock is suspect")
	// ErrReleased is the cause of the context of what its owner has released.
	ErrReleased = errors.New("the lock was released")
	// ErrClosed is that of a client, a place or a listener that was closed.
	ErrClosed = errors.New("closed")
	// ErrInvalid is that of what can be sent to no server. Nothing was.
	ErrInvalid = errors.New("invalid")
	// ErrUnsupported is that of what this server does not know. It was not asked.
	ErrUnsupported = errors.New("the server does not know this")

	// ErrRefused is the server's plain "error", or one that this package does not know.
	ErrRefused = errors.New("the server refused")
	// ErrDenied is that of a right that the auth token does not give.
	ErrDenied = errors.New("the server denied it")
	// ErrMaxLocks says that the server has as many keys as it may.
	ErrMaxLocks = errors.New("the server has as many keys as it may")
	// ErrMaxWaiters says that the key has as many waiters as it may.
	ErrMaxWaiters = errors.New("the key has as many waiters as it may")
	// ErrMaxHolds says that the server, or this client, has as many holds and places as it may.
	ErrMaxHolds = errors.New("the server, or this client, has as many holds as it may")
	// ErrLimitMismatch says that the semaphore has another limit.
	ErrLimitMismatch = errors.New("the semaphore has another limit")
	// ErrModeMismatch says that it was asked for before in the other mode, shared or not. There is no
	// upgrade: release it, and ask again.
	ErrModeMismatch = errors.New("it was asked for in the other mode before")
	// ErrPermitsMismatch says that it was asked for before with another number of permits.
	ErrPermitsMismatch = errors.New("it was asked for with other permits before")
	// ErrStorage says that the server's disk is full.
	ErrStorage = errors.New("the server's disk is full")
	// ErrAlreadyEnqueued says that the connection has a place in that queue.
	ErrAlreadyEnqueued = errors.New("already in the queue")
	// ErrNotEnqueued says that the place was used up.
	ErrNotEnqueued = errors.New("not in the queue")
	// ErrLeaseExpired is that of a grant whose lease ran out before anyone took it.
	ErrLeaseExpired = errors.New("it was granted, and its lease ran out before anyone took it")
	// ErrNotLeader says that none of the cluster's servers leads.
	ErrNotLeader = errors.New("the server does not lead its cluster")
	// ErrDraining says that the server is stopping, and grants no more.
	ErrDraining = errors.New("the server is stopping")
	// ErrUnauthorized is that of a wrong or missing auth token or client certificate.
	ErrUnauthorized = errors.New("the server did not let us in")

	// ErrUnreachable says that no connection could be made.
	ErrUnreachable = errors.New("the server cannot be reached")
	// ErrUntrusted says that the server's certificate could not be verified.
	ErrUntrusted = errors.New("the server's certificate cannot be verified")
	// ErrDisconnected says that the connection has ended. A request may have been executed.
	ErrDisconnected = errors.New("the connection has ended")
	// ErrNoReply says that the server did not answer in time. A request may have been executed.
	ErrNoReply = errors.New("the server did not answer in time")
	// ErrGarbled says that what came is no answer. A request may have been executed.
	ErrGarbled = errors.New("the server's answer makes no sense")
)

// Error is a call that failed.
type Error struct {
	Op     string // what was asked: "acquire", "publish"
	Key    string // for what, if for anything
	Server string // of whom, if somebody was asked: host:port
	Kind   error  // why: one of this package's, or of package context's
	Detail string // more about it, for people
	Err    error  // the system's own error, if that is why

	leader    string // whom a server that does not lead has named
	isStrange bool   // a refusal by a word that this package does not know
}

func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString("lockd: ")
	if e.Op != "" {
		text.WriteString(e.Op + " ")
	}
	if e.Key != "" {
		text.WriteString(strconv.Quote(e.Key) + " ")
	}
	if e.Server != "" {
		text.WriteString("at " + e.Server + " ")
	}
	said := strings.TrimSuffix(text.String(), " ")
	if said != "lockd:" {
		said += ":"
	}
	said += " " + e.Kind.Error()
	if e.Detail != "" {
		said += ": " + e.Detail
	}
	if e.Err != nil {
		said += ": " + e.Err.Error()
	}
	return said
}

// Unwrap returns the kind, and the system's error if there is one.
func (e *Error) Unwrap() []error { return withCause(e.Kind, e.Err) }

// NotAcquiredError is an acquisition whose wait is over. It is [ErrNotAcquired], and whatever kept
// the client from waiting in the queue at the end, such as [ErrUnreachable].
type NotAcquiredError struct {
	Key    string
	Waited time.Duration
	// QueuedAgain is how often the request was sent again because its place in the queue was
	// lost, with the server or the connection: it then went to the end.
	QueuedAgain int
	// Holder, Client and Waiters are who was in the way and how many waited, where the server
	// told it: the holder's id, its name, and the length of the queue.
	Holder, Client string
	Waiters        int
	// Err is why nobody was waiting in the queue when the wait ended; nil if somebody was.
	Err error
}

func (e *NotAcquiredError) Error() string {
	waited := e.Waited.Round(time.Millisecond)
	text := fmt.Sprintf("lockd: acquire %q: not acquired within %v", e.Key, waited)
	switch {
	case e.Client != "":
		text += ", held by " + e.Client
	case e.Holder != "":
		text += ", held by " + e.Holder
	}
	return text + because(e.Err)
}

// Unwrap returns ErrNotAcquired, and Err if there is one.
func (e *NotAcquiredError) Unwrap() []error { return withCause(ErrNotAcquired, e.Err) }

// LossCause is how a lock was lost.
type LossCause string

// The causes that this package knows. A server may name others.
const (
	// LossExpired: the server said that the lease ran out.
	LossExpired LossCause = "expired"
	// LossRevoked: the server said that somebody with the right to do so ended it.
	LossRevoked LossCause = "revoked"
	// LossRefused: the server answered a renewal or a release that the token names nothing.
	LossRefused LossCause = "refused"
	// LossUnauthorized: the server did not let the client in again, or denied it the right to renew.
	LossUnauthorized LossCause = "unauthorized"
	// LossUnsure: no renewal was confirmed before the lease ran out by the client's own count.
	LossUnsure LossCause = "unsure"
	// LossMaxHold: the time of MaxHold was over, and then the lease.
	LossMaxHold LossCause = "max_hold"
)

// LostError is a lock that was held, and is held no more. It is [ErrLost].
type LostError struct {
	Key   string
	Fence uint64
	Cause LossCause
	// Err is why the last renewal failed; nil if none did since one was confirmed.
	Err error
}

func (e *LostError) Error() string {
	why, known := map[LossCause]string{
		LossExpired:      "the server says that its lease ran out",
		LossRevoked:      "the server says that it was revoked",
		LossRefused:      "the server says that it is held no more",
		LossUnauthorized: "the server refuses this client",
		LossUnsure:       "its lease ran out without a confirmed renewal",
		LossMaxHold:      "it was held for as long as it may be",
	}[e.Cause]
	if !known {
		why = "the server says: " + string(e.Cause)
	}
	return fmt.Sprintf("lockd: %q under fence %d is lost: %s%s", e.Key, e.Fence, why, because(e.Err))
}

// Unwrap returns ErrLost, and Err if there is one.
func (e *LostError) Unwrap() []error { return withCause(ErrLost, e.Err) }

// SuspectError is a lock whose connection has ended, and that no new one has renewed yet: the server
// may have released it with the connection, and granted it to another client. The client tries to
// renew it until its lease is over: then it is held again, or lost. It is [ErrSuspect].
type SuspectError struct {
	Key   string
	Fence uint64
	// Err is why the last renewal failed.
	Err error
}

func (e *SuspectError) Error() string {
	const why = "is suspect, since its connection has ended"
	return fmt.Sprintf("lockd: %q under fence %d %s%s", e.Key, e.Fence, why, because(e.Err))
}

// Unwrap returns ErrSuspect, and Err if there is one.
func (e *SuspectError) Unwrap() []error { return withCause(ErrSuspect, e.Err) }

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + strings.TrimPrefix(err.Error(), "lockd: ")
}

func withCause(kind, cause error) []error {
	if cause == nil {
		return []error{kind}
	}
	return []error{kind, cause}
}

func failure(kind error, detail string) *Error { return &Error{Kind: kind, Detail: detail} }

func invalid(detail string) error { return failure(ErrInvalid, detail) }

// named returns the error with what was asked, and for what.
func named(err error, op, key string) error {
	var known *Error
	if !errors.As(err, &known) {
		return &Error{Op: op, Key: key, Kind: err}
	}
	full := *known
	full.Op, full.Key = op, key
	return &full
}

// isPassing says whether the failure may pass by itself.
func isPassing(err error) bool {
	return isAny(err,
		ErrNotLeader, ErrDraining, ErrUnreachable, ErrDisconnected, ErrNoReply, errEarly)
}

// movesOn says whether this is no answer, or that of a server that does not lead: another may give
// one, or the same one later.
func movesOn(err error) bool {
	return isPassing(err) || isAny(err, ErrUntrusted, ErrUnauthorized, ErrGarbled)
}

// isDefinite says whether the server refuses this client, which another try does not cure.
func isDefinite(err error) bool { return isAny(err, ErrDenied, ErrUnauthorized) }

func isAny(err error, kinds ...error) bool {
	if errors.Is(err, context.Canceled) {
		return false
	}
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

func kindOf(err error) error {
	var known *Error
	if errors.As(err, &known) {
		return known.Kind
	}
	return err
}

func leaderNamedBy(err error) string {
	var known *Error
	if errors.As(err, &known) {
		return known.leader
	}
	return ""
}
