// As many holders as the limit says.

package interop

import (
	"testing"

	"github.com/mtingers/dflockd/client"
)

func TestAsManyHoldersAsTheLimit(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first, second, third := newSemaphore(t, "pool", 2, s), newSemaphore(t, "pool", 2, s),
		newSemaphore(t, "pool", 2, s)
	acquire(t, first)
	acquire(t, second)
	expect(t, first.Token() != second.Token(), true)
	third.AcquireTimeout = shortWait
	acquireInVain(t, third)
	expect(t, s.stats().Semaphores, []semaphoreStats{{Key: "pool", Limit: 2, Holders: 2}})
	release(t, first)
	acquire(t, third)
}

func TestTwoPhasesOfASemaphore(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first, second, third := newSemaphore(t, "pool", 2, s), newSemaphore(t, "pool", 2, s),
		newSemaphore(t, "pool", 2, s)
	enqueue(t, first, "acquired")
	enqueue(t, second, "acquired")
	enqueue(t, third, "queued")
	release(t, first)
	wait(t, third)
}

func TestTheFirstSetsTheLimit(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first, other := newSemaphore(t, "pool", 2, s), newSemaphore(t, "pool", 3, s)
	acquire(t, first)
	_, err := other.Acquire(patient(t))
	expectError(t, err, client.ErrLimitMismatch)
	_, err = other.Enqueue(patient(t))
	expectError(t, err, client.ErrLimitMismatch)
	release(t, first)
	_, err = other.Acquire(patient(t)) // an idle semaphore keeps its limit
	expectError(t, err, client.ErrLimitMismatch)
}
