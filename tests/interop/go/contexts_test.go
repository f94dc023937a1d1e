// An acquire whose context ends: the client closes the connection, and the server must notice.

package interop

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestACancelledAcquireLeavesTheLine(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	holder := newLock(t, "diamond", s)
	acquire(t, holder)
	expectToLeaveTheLine(t, s, "diamond", newLock(t, "diamond", s).Acquire)
	release(t, holder)
	acquire(t, newLock(t, "diamond", s))
}

func TestACancelledSecondPhaseLeavesTheLine(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	acquire(t, newLock(t, "diamond", s))
	second := newLock(t, "diamond", s)
	enqueue(t, second, "queued")
	expectToLeaveTheLine(t, s, "diamond", func(ctx context.Context) (bool, error) {
		return second.Wait(ctx, longWait)
	})
}

func TestADeadlineEndsAWaitAndNotEarly(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	acquire(t, newLock(t, "diamond", s))
	const length = 500 * time.Millisecond
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	_, err := newLock(t, "diamond", s).Acquire(ctx)
	expectError(t, err, context.DeadlineExceeded)
	expectAtLeast(t, began, length)
	s.awaitWaiters("diamond", 0)
}

// Deadlines that fall before, into and after the grants: nothing stays behind on the server.
func TestDeadlinesThatRaceTheGrants(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	var turns []*pending
	for number := range 40 {
		lock := newLock(t, "diamond", s)
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(number)*time.Millisecond)
		defer cancel()
		turns = append(turns, begin(ctx, func(ctx context.Context) (bool, error) {
			granted, err := lock.Acquire(ctx)
			if granted {
				err = lock.Release(context.Background())
			}
			return granted, err
		}))
	}
	for _, turn := range turns {
		granted, err := turn.result(t)
		if !granted && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("neither granted nor over: %v", err)
		}
		if granted {
			succeed(t, err)
		}
	}
	awaitThat(t, "nothing is held, and only the one who asks is connected", func() bool {
		said := s.stats()
		return len(said.Locks) == 0 && said.Connections == 1
	})
}

func expectToLeaveTheLine(t *testing.T, s *server, key string,
	acquire func(context.Context) (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	waiting := begin(ctx, acquire)
	s.awaitWaiters(key, 1)
	cancel()
	_, err := waiting.result(t)
	expectError(t, err, context.Canceled)
	s.awaitWaiters(key, 0)
}
