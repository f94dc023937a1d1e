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

func TestASlotGoesToWhoWaits(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	var holders []possession
	for range 3 {
		holders = append(holders, newSemaphore(t, "pool", 3, s))
		acquire(t, holders[len(holders)-1])
	}
	waiting := begin(patient(t), newSemaphore(t, "pool", 3, s).Acquire)
	s.awaitWaiters("pool", 1)
	release(t, holders[1])
	waiting.expectGranted(t)
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

func TestTwoPhasesOfASemaphoreTimeOut(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	acquire(t, newSemaphore(t, "pool", 1, s))
	second := newSemaphore(t, "pool", 1, s)
	enqueue(t, second, "queued")
	waitInVain(t, second)
	s.awaitWaiters("pool", 0)
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
	acquire(t, other)
}

func TestALockOfTheSameNameIsAnotherThing(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	acquire(t, newSemaphore(t, "diamond", 1, s))
	acquire(t, newLock(t, "diamond", s))
	second := newSemaphore(t, "diamond", 1, s)
	second.AcquireTimeout = shortWait
	acquireInVain(t, second)
}

func TestClosingReleasesASlot(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first := newSemaphore(t, "pool", 1, s)
	acquire(t, first)
	waiting := begin(patient(t), newSemaphore(t, "pool", 1, s).Acquire)
	s.awaitWaiters("pool", 1)
	succeed(t, first.Close())
	waiting.expectGranted(t)
}
