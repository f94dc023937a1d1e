package main

import (
	"context"
	"errors"

	lockd "lockd.internal/lockd"
)

// kinds are the suite's words for this package's errors, the more telling first.
var kinds = []struct {
	err  error
	word string
}{
	{context.Canceled, "cancelled"},
	{lockd.ErrClosed, "cancelled"},
	{lockd.ErrSuspect, "suspect"},
	{lockd.ErrInvalid, "invalid"},
	{lockd.ErrUnsupported, "unsupported"},
	{lockd.ErrDenied, "denied"},
	{lockd.ErrMaxLocks, "max_locks"},
	{lockd.ErrMaxWaiters, "max_waiters"},
	{lockd.ErrMaxHolds, "max_holds"},
	{lockd.ErrLimitMismatch, "limit_mismatch"},
	{lockd.ErrModeMismatch, "mode_mismatch"},
	{lockd.ErrPermitsMismatch, "permits_mismatch"},
	{lockd.ErrStorage, "storage"},
	{lockd.ErrAlreadyEnqueued, "already_enqueued"},
	{lockd.ErrNotEnqueued, "not_enqueued"},
	{lockd.ErrLeaseExpired, "lease_expired"},
	{lockd.ErrNotLeader, "not_leader"},
	{lockd.ErrDraining, "draining"},
	{lockd.ErrUnauthorized, "unauthorized"},
	{lockd.ErrUnreachable, "unreachable"},
	{lockd.ErrUntrusted, "untrusted"},
	{lockd.ErrDisconnected, "disconnected"},
	{lockd.ErrNoReply, "no_reply"},
	{lockd.ErrGarbled, "garbled"},
	{lockd.ErrRefused, "refused"},
}

// said is the outcome of what went well, or the word for the error.
func said(outcome string, err error) report {
	if err == nil {
		return report{"outcome": outcome}
	}
	var lost *lockd.LostError
	if errors.As(err, &lost) {
		return report{"outcome": "lost", "cause": string(lost.Cause)}
	}
	if errors.Is(err, lockd.ErrReleased) {
		return report{"outcome": "lost", "cause": "released"}
	}
	var over *lockd.NotAcquiredError
	// One that ended because nobody could be asked says so besides: that is the outcome here.
	if errors.As(err, &over) && over.Err == nil {
		return report{
			"outcome":      "not_acquired",
			"queued_again": over.QueuedAgain > 0,
			"holder":       over.Holder,
			"holder_name":  over.Client,
			"waiters":      over.Waiters,
		}
	}
	for _, kind := range kinds {
		if errors.Is(err, kind.err) {
			return report{"outcome": kind.word}
		}
	}
	return report{"outcome": "unknown: " + err.Error()}
}
