// One holder at a time, in the order in which they asked.

package interop

import (
	"regexp"
	"testing"
	"time"
)

var token = regexp.MustCompile(`^[0-9a-f]{32}$`)

func TestALockIsTakenAndGivenBackAndTakenAgain(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	lock := newLock(t, "diamond", s)
	for range 2 {
		acquire(t, lock)
		expect(t, token.MatchString(lock.Token()), true)
		expect(t, s.held(), []string{"diamond"})
		release(t, lock)
		expect(t, lock.Token(), "")
		expect(t, s.held(), []string{})
	}
}

func TestOneHolderAtATime(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	holder := newLock(t, "diamond", s)
	acquire(t, holder)
	expectTaken(t, "diamond", s)
	acquire(t, newLock(t, "another", s))
	release(t, holder)
	acquire(t, newLock(t, "diamond", s))
}

func TestAWaitTimesOutAndNotEarly(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	acquire(t, newLock(t, "diamond", s))
	second := newLock(t, "diamond", s)
	second.AcquireTimeout = 2 * time.Second
	began := time.Now()
	acquireInVain(t, second)
	expectAtLeast(t, began, 2*time.Second)
	expect(t, s.waiters("diamond"), 0)
}

func TestAReleaseGrantsToWhoWaits(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first, second := newLock(t, "diamond", s), newLock(t, "diamond", s)
	acquire(t, first)
	waiting := begin(patient(t), second.Acquire)
	s.awaitWaiters("diamond", 1)
	expect(t, waiting.isDone(), false)
	release(t, first)
	waiting.expectGranted(t)
}

func TestTwoPhasesOnAFreeLock(t *testing.T) {
	t.Parallel()
	lock := newLock(t, "diamond", startServer(t))
	enqueue(t, lock, "acquired")
	granted := lock.Token()
	expect(t, token.MatchString(granted), true)
	wait(t, lock)
	expect(t, lock.Token(), granted)
	release(t, lock)
}

func TestTwoPhasesOnAHeldLock(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first, second := newLock(t, "diamond", s), newLock(t, "diamond", s)
	acquire(t, first)
	enqueue(t, second, "queued")
	expect(t, second.Token(), "")
	release(t, first)
	// Granted before it asks: nobody else gets it meanwhile.
	expect(t, s.held(), []string{"diamond"})
	expectTaken(t, "diamond", s)
	wait(t, second)
	expect(t, token.MatchString(second.Token()), true)
	release(t, second)
}

func TestASecondPhaseThatTimesOutGivesUpItsPlace(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first, second, third := newLock(t, "diamond", s), newLock(t, "diamond", s),
		newLock(t, "diamond", s)
	acquire(t, first)
	enqueue(t, second, "queued")
	enqueue(t, third, "queued")
	waitInVain(t, second)
	s.awaitWaiters("diamond", 1)
	release(t, first)
	wait(t, third)
}

func TestClosingReleases(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first, second := newLock(t, "diamond", s), newLock(t, "diamond", s)
	acquire(t, first)
	waiting := begin(patient(t), second.Acquire)
	s.awaitWaiters("diamond", 1)
	succeed(t, first.Close())
	waiting.expectGranted(t)
}
