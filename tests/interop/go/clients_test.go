package interop

import (
	"context"
	"testing"
	"time"

	"github.com/mtingers/dflockd/client"
)

// What the client's locks and semaphores have in common.
type possession interface {
	Acquire(context.Context) (bool, error)
	Enqueue(context.Context) (string, error)
	Wait(context.Context, time.Duration) (bool, error)
	Release(context.Context) error
	Close() error
	Token() string
}

const (
	lease    = 60 // seconds
	longWait = 50 * time.Second
	// The shortest that a lock of this client's can wait: it sends whole seconds, and takes none for
	// ten.
	shortWait = time.Second
)

// A lock that waits long. A case changes what it wants otherwise before the first use.
func newLock(t *testing.T, key string, at ...*server) *client.Lock {
	lock := &client.Lock{Key: key, AcquireTimeout: longWait, LeaseTTL: lease, Servers: addresses(at)}
	t.Cleanup(func() { lock.Close() })
	return lock
}

func newSemaphore(t *testing.T, key string, limit int, at ...*server) *client.Semaphore {
	semaphore := &client.Semaphore{Key: key, Limit: limit, AcquireTimeout: longWait,
		LeaseTTL: lease, Servers: addresses(at)}
	t.Cleanup(func() { semaphore.Close() })
	return semaphore
}

func addresses(servers []*server) (all []string) {
	for _, s := range servers {
		all = append(all, s.address)
	}
	return all
}

// A bare connection, for the client's lower level.
func dial(t *testing.T, s *server) *client.Conn {
	t.Helper()
	conn, err := client.Dial(s.address)
	succeed(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// For calls that a case does not mean to cancel.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func acquire(t *testing.T, p possession) {
	t.Helper()
	granted, err := p.Acquire(patient(t))
	succeed(t, err)
	expect(t, granted, true)
}

func acquireInVain(t *testing.T, p possession) {
	t.Helper()
	granted, err := p.Acquire(patient(t))
	succeed(t, err)
	expect(t, granted, false)
}

func expectTaken(t *testing.T, key string, at ...*server) {
	t.Helper()
	lock := newLock(t, key, at...)
	lock.AcquireTimeout = shortWait
	acquireInVain(t, lock)
}

func enqueue(t *testing.T, p possession, want string) {
	t.Helper()
	status, err := p.Enqueue(patient(t))
	succeed(t, err)
	expect(t, status, want)
}

func wait(t *testing.T, p possession) {
	t.Helper()
	granted, err := p.Wait(patient(t), longWait)
	succeed(t, err)
	expect(t, granted, true)
}

func waitInVain(t *testing.T, p possession) {
	t.Helper()
	granted, err := p.Wait(patient(t), shortWait)
	succeed(t, err)
	expect(t, granted, false)
}

func release(t *testing.T, p possession) {
	t.Helper()
	succeed(t, p.Release(patient(t)))
}

// An acquire that goes on while the case does something else.
type pending struct {
	done    chan struct{}
	granted bool
	err     error
}

func begin(ctx context.Context, acquire func(context.Context) (bool, error)) *pending {
	p := &pending{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.granted, p.err = acquire(ctx)
	}()
	return p
}

func (p *pending) isDone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *pending) result(t *testing.T) (bool, error) {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		t.Fatal("an acquire never ended")
	}
	return p.granted, p.err
}

func (p *pending) expectGranted(t *testing.T) {
	t.Helper()
	granted, err := p.result(t)
	succeed(t, err)
	expect(t, granted, true)
}
