// What a client is told when it may not have something, or the server is going.

package interop

import (
	"testing"

	"github.com/mtingers/dflockd/client"
)

func TestNoMoreKeys(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--max-locks", "2")
	first, third := newLock(t, "one", s), newLock(t, "three", s)
	acquire(t, first)
	acquire(t, newSemaphore(t, "two", 1, s))
	_, err := third.Acquire(patient(t))
	expectError(t, err, client.ErrMaxLocks)
	_, err = third.Enqueue(patient(t))
	expectError(t, err, client.ErrMaxLocks)
	_, err = newSemaphore(t, "three", 1, s).Acquire(patient(t))
	expectError(t, err, client.ErrMaxLocks)
	release(t, first)
	acquire(t, third)
}

func TestNoMoreWaiters(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--max-waiters", "1")
	acquire(t, newLock(t, "diamond", s))
	enqueue(t, newLock(t, "diamond", s), "queued")
	_, err := newLock(t, "diamond", s).Acquire(patient(t))
	expectError(t, err, client.ErrMaxWaiters)
	_, err = newLock(t, "diamond", s).Enqueue(patient(t))
	expectError(t, err, client.ErrMaxWaiters)
}
