// One holder at a time, in the order in which they asked.

package interop

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"syscall"
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

func TestTokensSortInTheOrderOfGrants(t *testing.T) {
	t.Parallel()
	lock := newLock(t, "diamond", startServer(t))
	var tokens []string
	for range 20 {
		acquire(t, lock)
		tokens = append(tokens, lock.Token())
		release(t, lock)
	}
	expect(t, slices.IsSorted(tokens), true)
	expect(t, len(slices.Compact(tokens)), 20)
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

func TestAnyTextIsAKey(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	keys := []string{`"\`, "a.b/c:d", "clé-日本", strings.Repeat("k", 256)}
	for _, key := range keys {
		acquire(t, newLock(t, key, s))
	}
	expect(t, s.held(), keys)
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

func TestFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first := newLock(t, "diamond", s)
	acquire(t, first)
	served := make(chan int, 8)
	var turns []*pending
	for number := range cap(served) {
		lock := newLock(t, "diamond", s)
		take := lock.Acquire
		if number%2 == 1 {
			enqueue(t, lock, "queued")
			take = func(ctx context.Context) (bool, error) { return lock.Wait(ctx, longWait) }
		}
		turns = append(turns, begin(patient(t), func(ctx context.Context) (bool, error) {
			granted, err := take(ctx)
			if !granted || err != nil {
				return granted, err
			}
			served <- number // still holding, so this is the order of the grants
			return true, lock.Release(ctx)
		}))
		s.awaitWaiters("diamond", number+1)
	}
	release(t, first)
	for _, turn := range turns {
		turn.expectGranted(t)
	}
	for number := range cap(served) {
		expect(t, <-served, number)
	}
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

func TestClosingLeavesTheLine(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first, second := newLock(t, "diamond", s), newLock(t, "diamond", s)
	acquire(t, first)
	enqueue(t, second, "queued")
	succeed(t, second.Close())
	s.awaitWaiters("diamond", 0)
}

func TestAKilledHolderReleases(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	holder := startHolder(t, s, "diamond", 3600)
	holder.expectToSay("held")
	expectTaken(t, "diamond", s)
	holder.signal(syscall.SIGKILL)
	acquire(t, newLock(t, "diamond", s))
}

func TestAKilledWaiterLeavesTheLine(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first := newLock(t, "diamond", s)
	acquire(t, first)
	waiter := startHolder(t, s, "diamond", 3600)
	s.awaitWaiters("diamond", 1)
	waiter.signal(syscall.SIGKILL)
	s.awaitWaiters("diamond", 0)
	release(t, first)
	acquire(t, newLock(t, "diamond", s))
}

func TestAKilledHolderKeepsItsLeaseWhereTheServerSaysSo(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--no-auto-release-on-disconnect")
	holder := startHolder(t, s, "diamond", 3600)
	holder.expectToSay("held")
	holder.signal(syscall.SIGKILL)
	awaitThat(t, "only the one who asks is connected", func() bool {
		return s.stats().Connections == 1
	})
	expect(t, s.held(), []string{"diamond"})
}
