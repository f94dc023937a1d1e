package lockd

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Locks that many hold together, and jobs that need several permits of a semaphore.

// mustBeHeld fails the test if a try is granted.
func mustBeHeld(t *testing.T, c *Client, key string, options ...AcquireOption) {
	t.Helper()
	if _, err := c.TryAcquire(testContext(t), key, options...); !errors.Is(err, ErrNotAcquired) {
		t.Errorf("%q is not held by others: %v", key, err)
	}
}

func mustEnqueue(t *testing.T, c *Client, key string, options ...AcquireOption) *Place {
	t.Helper()
	place, err := c.Enqueue(testContext(t), key, options...)
	if err != nil {
		t.Fatal(err)
	}
	return place
}

func TestReadersHoldTogetherAndTheWriterWaitsForAll(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()))
	one := mustAcquire(t, client, "job", Shared())
	two := mustAcquire(t, client, "job", Shared())
	mustBeHeld(t, client, "job")
	one.Release()
	mustBeHeld(t, client, "job")
	two.Release()
	writer := mustAcquire(t, client, "job", Wait(0))
	if !(one.Fence() < two.Fence() && two.Fence() < writer.Fence()) {
		t.Errorf("fences %d, %d and %d do not rise", one.Fence(), two.Fence(), writer.Fence())
	}
	mustBeHeld(t, client, "job", Shared())
}

func TestNoReaderOvertakesAWriter(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()))
	reader := mustAcquire(t, client, "job", Shared())
	writer := acquireInBackground(testContext(t), client, "job")
	eventually(t, "a waiter", func() bool { return server.waiters(t, "job") == 1 })
	late := acquireInBackground(testContext(t), client, "job", Shared())
	eventually(t, "two waiters", func() bool { return server.waiters(t, "job") == 2 })
	mustBeHeld(t, client, "job", Shared())
	reader.Release()
	written := await(t, "the writer's turn", writer)
	if written.err != nil {
		t.Fatal(written.err)
	}
	select {
	case got := <-late:
		t.Fatal("a reader came in beside the writer:", got)
	case <-time.After(silence):
	}
	written.held.Release()
	if got := await(t, "the late reader's turn", late); got.err != nil || got.held.Fence() <= written.held.Fence() {
		t.Error(got.err)
	}
}

func TestTwoPhasesOfSharedLocks(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()))
	first := mustEnqueue(t, client, "job", Shared())
	second := mustEnqueue(t, client, "job", Shared())
	writer := mustEnqueue(t, client, "job", Wait(patience))
	if !first.Granted() || !second.Granted() || writer.Granted() {
		t.Error(first.Granted(), second.Granted(), writer.Granted())
	}
	for _, place := range []*Place{first, second} {
		held, err := place.Wait(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		held.Release()
	}
	if _, err := writer.Wait(testContext(t)); err != nil {
		t.Error(err)
	}
}

func TestSharedLocksRenewThemselvesAndSurviveAKilledServer(t *testing.T) {
	t.Parallel()
	server := startServer(t, "--wal", filepath.Join(t.TempDir(), "wal"))
	client := newClient(t, Servers(server.address()))
	readers := []*Held{
		mustAcquire(t, client, "job", Shared(), Lease(20*time.Second)),
		mustAcquire(t, client, "job", Shared(), Lease(20*time.Second)),
	}
	short := mustAcquire(t, client, "other", Shared(), Lease(time.Second))
	time.Sleep(1600 * time.Millisecond)
	if err := short.Check(); err != nil {
		t.Error(err)
	}
	server.stop(syscall.SIGKILL)
	server.startAgain(t)
	mustBeHeld(t, client, "job")
	for _, reader := range readers {
		if err := reader.Release(); err != nil {
			t.Error(err)
		}
	}
	mustAcquire(t, client, "job", Wait(0))
}

func TestAJobOfFourPermitsIsOvertakenByNoSmallOne(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()))
	pool := mustAcquire(t, client, "gpus", Semaphore(5), Permits(2))
	job := mustEnqueue(t, client, "gpus", Permits(4), Semaphore(5), Lease(20*time.Second), Wait(patience))
	small := mustEnqueue(t, client, "gpus", Semaphore(5), Wait(patience))
	if job.Granted() || small.Granted() {
		t.Error("somebody was granted what is not there")
	}
	mustBeHeld(t, client, "gpus", Semaphore(5)) // three are free, and not for it
	pool.Release()
	four, err := job.Wait(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	one, err := small.Wait(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if four.Lease() != 20*time.Second || one.Fence() <= four.Fence() {
		t.Error(four.Lease(), four.Fence(), one.Fence())
	}
	mustBeHeld(t, client, "gpus", Semaphore(5))
	four.Release()
	mustBeHeld(t, client, "gpus", Semaphore(5), Permits(5))
	mustAcquire(t, client, "gpus", Semaphore(5), Permits(4), Wait(0))
}
