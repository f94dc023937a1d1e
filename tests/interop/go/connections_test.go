// The functions below the locks: many keys on one connection, and errors by name.

package interop

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mtingers/dflockd/client"
)

var wrongToken = strings.Repeat("0", 32)

func TestManyKeysOnOneConnection(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	mine, theirs := dial(t, s), dial(t, s)
	for number := range 50 {
		key := fmt.Sprintf("stone-%d", number)
		token, ttl, err := client.Acquire(mine, key, 0, client.WithLeaseTTL(lease))
		succeed(t, err)
		expect(t, ttl, lease)
		_, _, err = client.Acquire(theirs, key, 0)
		expectError(t, err, client.ErrTimeout)
		remaining, err := client.Renew(mine, key, token, client.WithLeaseTTL(90))
		succeed(t, err)
		expect(t, remaining, 90)
		// The token is what counts, not the connection.
		succeed(t, client.Release(theirs, key, token))
	}
	expect(t, s.held(), []string{})
}

func TestAConnectionSharedByManyGoroutines(t *testing.T) {
	t.Parallel()
	conn := dial(t, startServer(t))
	errs := make(chan error, 16)
	var all sync.WaitGroup
	for number := range cap(errs) {
		all.Add(1)
		go func() {
			defer all.Done()
			errs <- takeAndGiveBack(conn, fmt.Sprintf("stone-%d", number), 100)
		}()
	}
	all.Wait()
	close(errs)
	for err := range errs {
		succeed(t, err)
	}
}

func TestASlotByTheLowerLevel(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first, second := dial(t, s), dial(t, s)
	token, ttl, err := client.SemAcquire(first, "pool", 0, 1, client.WithLeaseTTL(lease))
	succeed(t, err)
	expect(t, ttl, lease)
	_, _, err = client.SemAcquire(second, "pool", 0, 1)
	expectError(t, err, client.ErrTimeout)
	status, _, _, err := client.SemEnqueue(second, "pool", 1, client.WithLeaseTTL(30))
	succeed(t, err)
	expect(t, status, "queued")
	remaining, err := client.SemRenew(first, "pool", token, client.WithLeaseTTL(90))
	succeed(t, err)
	expect(t, remaining, 90)
	succeed(t, client.SemRelease(first, "pool", token))
	_, ttl, err = client.SemWait(second, "pool", longWait)
	succeed(t, err)
	expect(t, ttl, 30)
}

func TestErrorsByName(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--detailed-errors")
	first, second := dial(t, s), dial(t, s)
	_, _, err := client.Wait(first, "diamond", 0)
	expectError(t, err, client.ErrNotQueued)
	status, token, _, err := client.Enqueue(first, "diamond")
	succeed(t, err)
	expect(t, status, "acquired")
	_, _, _, err = client.Enqueue(first, "diamond")
	expectError(t, err, client.ErrAlreadyQueued)
	status, _, _, err = client.Enqueue(second, "diamond", client.WithLeaseTTL(1))
	succeed(t, err)
	expect(t, status, "queued")
	succeed(t, client.Release(first, "diamond", token))
	awaitThat(t, "the second lease is over", func() bool { return len(s.held()) == 0 })
	_, _, err = client.Wait(second, "diamond", 0)
	expectError(t, err, client.ErrLeaseExpired)
	// None of these ended a connection.
	succeed(t, takeAndGiveBack(first, "diamond", 1))
	succeed(t, takeAndGiveBack(second, "diamond", 1))
}

func TestErrorsThatAreOnlyErrors(t *testing.T) {
	t.Parallel()
	conn := dial(t, startServer(t))
	_, _, err := client.Wait(conn, "diamond", 0)
	expectError(t, err, client.ErrServer)
	_, err = client.Renew(conn, "diamond", wrongToken)
	expectError(t, err, client.ErrServer)
	expectError(t, client.Release(conn, "diamond", wrongToken), client.ErrServer)
	expectError(t, client.SemRelease(conn, "diamond", wrongToken), client.ErrServer)
	succeed(t, takeAndGiveBack(conn, "diamond", 1))
}

func TestAServerThatStopsSaysSo(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := dial(t, s)
	token, _, err := client.Acquire(conn, "diamond", 0)
	succeed(t, err)
	s.terminate()
	awaitThat(t, "the server no longer listens", s.isClosed)
	_, _, err = client.Acquire(conn, "another", 0)
	expectError(t, err, client.ErrDraining)
	_, err = client.Renew(conn, "diamond", token)
	succeed(t, err)
	succeed(t, client.Release(conn, "diamond", token))
}

func takeAndGiveBack(conn *client.Conn, key string, times int) error {
	for range times {
		token, _, err := client.Acquire(conn, key, 0)
		if err != nil {
			return err
		}
		if err := client.Release(conn, key, token); err != nil {
			return err
		}
	}
	return nil
}
