package lockd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// What the client does with the real server.

func TestALockExcludesAndItsFencesRise(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()))
	var inside, rounds atomic.Int32
	var last uint64
	var workers sync.WaitGroup
	for i := 0; i < 8; i++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for j := 0; j < 10; j++ {
				held, err := client.Acquire(testContext(t), "job", Lease(10*time.Second))
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 || held.Fence() <= last {
					t.Errorf("two are inside, or fence %d came after %d", held.Fence(), last)
				}
				last = held.Fence()
				rounds.Add(1)
				inside.Add(-1)
				if err := held.Release(); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	workers.Wait()
	if rounds.Load() != 80 {
		t.Errorf("%d rounds", rounds.Load())
	}
}

func TestATryDoesNotWait(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()))
	held := mustAcquire(t, client, "job")
	_, err := client.TryAcquire(testContext(t), "job")
	var notAcquired *NotAcquiredError
	if !errors.Is(err, ErrNotAcquired) || !errors.As(err, &notAcquired) || notAcquired.Key != "job" || notAcquired.Err != nil {
		t.Errorf("%v", err)
	}
	if err := held.Release(); err != nil {
		t.Error(err)
	}
	again, err := client.TryAcquire(testContext(t), "job")
	if err != nil {
		t.Fatal(err)
	}
	again.Release()
}

func TestABoundedWaitEndsAndNeverEarly(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()))
	mustAcquire(t, client, "job")
	for _, wait := range []time.Duration{40 * time.Millisecond, 500 * time.Millisecond, time.Second, 1300 * time.Millisecond} {
		wait := wait
		t.Run(wait.String(), func(t *testing.T) {
			t.Parallel()
			began := now()
			_, err := newClient(t, Servers(server.address())).Acquire(testContext(t), "job", Wait(wait))
			waited := now().sub(began)
			if !errors.Is(err, ErrNotAcquired) || waited < wait || waited > wait+patience {
				t.Errorf("after %v: %v", waited, err)
			}
		})
	}
}

func TestACancelledWaitGivesUpItsPlaceAtOnce(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()))
	mustAcquire(t, client, "job")
	ctx, cancel := context.WithCancel(testContext(t))
	waiting := acquireInBackground(ctx, client, "job")
	eventually(t, "a waiter", func() bool { return server.waiters(t, "job") == 1 })
	cancel()
	got := await(t, "the end of the wait", waiting)
	if !errors.Is(got.err, context.Canceled) || errors.Is(got.err, ErrNotAcquired) {
		t.Error(got.err)
	}
	eventually(t, "no waiter", func() bool { return server.waiters(t, "job") == 0 })

	ctx, cancel = context.WithTimeout(testContext(t), 50*time.Millisecond)
	defer cancel()
	if _, err := client.Acquire(ctx, "job", Wait(time.Hour)); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// mustBeHeld fails the test if a try is granted.
func mustBeHeld(t *testing.T, c *Client, key string, options ...AcquireOption) {
	t.Helper()
	if _, err := c.TryAcquire(testContext(t), key, options...); !errors.Is(err, ErrNotAcquired) {
		t.Errorf("%q is not held by others: %v", key, err)
	}
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

func TestSemaphores(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()))
	first := mustAcquire(t, client, "pool", Semaphore(2))
	mustAcquire(t, client, "pool", Semaphore(2), Lease(time.Second))
	if _, err := client.TryAcquire(testContext(t), "pool", Semaphore(2)); !errors.Is(err, ErrNotAcquired) {
		t.Error(err)
	}
	if _, err := client.Acquire(testContext(t), "pool", Semaphore(3)); !errors.Is(err, ErrLimitMismatch) {
		t.Error(err)
	}
	mustAcquire(t, client, "pool") // a lock of that name is something else
	if err := first.Release(); err != nil {
		t.Error(err)
	}
	if held, err := client.TryAcquire(testContext(t), "pool", Semaphore(2)); err != nil {
		t.Error(err)
	} else if err := held.Check(); err != nil {
		t.Error(err)
	}
	time.Sleep(1500 * time.Millisecond) // longer than the second's lease
	if all := server.stats(t).Semaphores; len(all) != 1 || all[0].Holders != 2 || all[0].Limit != 2 {
		t.Errorf("%+v", all)
	}
}

func TestTwoPhases(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()))
	place, err := client.Enqueue(testContext(t), "job", Lease(time.Second))
	if err != nil || !place.Granted() {
		t.Fatal(err)
	}
	second, err := client.Enqueue(testContext(t), "job", Wait(100*time.Millisecond))
	if err != nil || second.Granted() {
		t.Fatal(err)
	}
	third, err := client.Enqueue(testContext(t), "job")
	if err != nil || third.Granted() {
		t.Fatal(err)
	}
	held, err := place.Wait(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	began := now()
	if _, err := second.Wait(testContext(t)); !errors.Is(err, ErrNotAcquired) || now().sub(began) < 100*time.Millisecond {
		t.Error(err)
	}
	if _, err := place.Wait(testContext(t)); !errors.Is(err, ErrNotEnqueued) {
		t.Error(err)
	}
	eventually(t, "one waiter", func() bool { return server.waiters(t, "job") == 1 })
	held.Release()
	last, err := third.Wait(testContext(t))
	if err != nil || last.Check() != nil || last.QueuedAgain() != 0 {
		t.Fatal(err)
	}
	fourth, err := client.Enqueue(testContext(t), "job")
	if err != nil {
		t.Fatal(err)
	}
	fourth.Close()
	eventually(t, "no waiter", func() bool { return server.waiters(t, "job") == 0 })
	granted, err := client.Enqueue(testContext(t), "other")
	if err != nil || !granted.Granted() {
		t.Fatal(err)
	}
	granted.Close()
	eventually(t, "a release", func() bool { return !server.isHeld(t, "other") })
}

func TestAPlaceWhoseLeaseRanOut(t *testing.T) {
	t.Parallel()
	server := startServer(t, "--detailed-errors")
	client := newClient(t, Servers(server.address()))
	for _, wait := range []time.Duration{0, 10 * time.Second} {
		place, err := client.Enqueue(testContext(t), "job", Lease(time.Second), Wait(wait))
		if err != nil || !place.Granted() {
			t.Fatal(err)
		}
		eventually(t, "the end of the lease", func() bool { return !server.isHeld(t, "job") })
		held, err := place.Wait(testContext(t))
		if wait == 0 && !errors.Is(err, ErrLeaseExpired) {
			t.Error(err)
		}
		if wait > 0 && (err != nil || held.QueuedAgain() != 1) {
			t.Error(err, "and there was time to ask again")
		}
	}
}

func TestItRenewsForAsLongAsItIsHeld(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()))
	var all []*Held
	for i := 0; i < 20; i++ {
		all = append(all, mustAcquire(t, client, fmt.Sprint("job/", i), Lease(2*time.Second)))
	}
	time.Sleep(5 * time.Second)
	for _, held := range all {
		if err := held.Check(); err != nil {
			t.Error(err)
		}
		if left := held.Remaining(); left <= 0 || left > held.Lease() || held.Context().Err() != nil {
			t.Errorf("%v remain", left)
		}
		if err := held.Release(); err != nil {
			t.Error(err)
		}
		if err := held.Release(); err != nil {
			t.Error(err)
		}
		if !errors.Is(held.Check(), ErrReleased) || context.Cause(held.Context()) != ErrReleased || held.Remaining() != 0 {
			t.Error(held.Check(), context.Cause(held.Context()))
		}
	}
}

func TestTheLongestTimeToHold(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()))
	lost := make(chan error, 1)
	began := now()
	held := mustAcquire(t, client, "job", Lease(time.Second), MaxHold(1500*time.Millisecond), OnLost(func(err error) { lost <- err }))
	err := await(t, "the end", lost)
	var loss *LostError
	if !errors.As(err, &loss) || loss.Cause != LossMaxHold || held.Check() != err || context.Cause(held.Context()) != err {
		t.Error(err)
	}
	if passed := now().sub(began); passed < 1500*time.Millisecond {
		t.Errorf("it ended after %v", passed)
	}
	eventually(t, "a release", func() bool { return !server.isHeld(t, "job") })
}

func TestTheContextIsAChildOfTheCallers(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()))
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(testContext(t), key{}, "value"))
	held, err := client.Acquire(ctx, "job")
	if err != nil {
		t.Fatal(err)
	}
	if held.Context().Value(key{}) != "value" {
		t.Error("its values are lost")
	}
	cancel()
	if held.Context().Err() == nil || held.Check() != nil {
		t.Error("the caller's end is the context's, and not the lock's", held.Check())
	}
}

func TestTheServersLimits(t *testing.T) {
	t.Parallel()
	server := startServer(t, "--max-locks", "1", "--max-waiters", "1")
	client := newClient(t, Servers(server.address()))
	mustAcquire(t, client, "job")
	if _, err := client.Acquire(testContext(t), "other"); !errors.Is(err, ErrMaxLocks) {
		t.Error(err)
	}
	place, err := client.Enqueue(testContext(t), "job")
	if err != nil {
		t.Fatal(err)
	}
	defer place.Close()
	_, err = client.Acquire(testContext(t), "job")
	var failed *Error
	if !errors.Is(err, ErrMaxWaiters) || !errors.As(err, &failed) || failed.Server != server.address() || failed.Key != "job" {
		t.Error(err)
	}
}

func TestCloseReleasesAndEndsEverything(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()))
	held := mustAcquire(t, client, "job")
	mustAcquire(t, newClient(t, Servers(server.address())), "other")
	waiting := acquireInBackground(testContext(t), client, "other")
	place, err := client.Enqueue(testContext(t), "other")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := client.Listen(testContext(t), "a")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "two waiters", func() bool { return server.waiters(t, "other") == 2 })
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if !errors.Is(held.Check(), ErrReleased) || server.isHeld(t, "job") {
		t.Error("it is held still")
	}
	if got := await(t, "the end of the wait", waiting); !errors.Is(got.err, ErrClosed) {
		t.Error(got.err)
	}
	if _, err := listener.Next(testContext(t)); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, err := place.Wait(testContext(t)); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, err := client.Acquire(testContext(t), "job"); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, err := client.Publish(testContext(t), "a", "x"); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	eventually(t, "no waiter", func() bool { return server.waiters(t, "other") == 0 })
}

func TestSeveralServersShareTheKeys(t *testing.T) {
	t.Parallel()
	servers := []*realServer{startServer(t), startServer(t), startServer(t)}
	client := newClient(t, Servers(servers[0].address(), servers[1].address(), servers[2].address()))
	for _, key := range []string{"my-key", "orders/42", "my-job", "clé-日本"} {
		mustAcquire(t, client, key)
		for i, server := range servers {
			if server.isHeld(t, key) != (i == ShardOf(key, 3)) {
				t.Errorf("%q is at server %d, or is not", key, i)
			}
		}
	}
	if all, err := client.Stats(testContext(t)); err != nil || len(all) != 3 || all[1].Server != servers[1].address() {
		t.Error(all, err)
	}
	servers[1].stop(syscall.SIGKILL)
	if all, err := client.Stats(testContext(t)); !errors.Is(err, ErrUnreachable) || len(all[2].Locks) == 0 {
		t.Error(all, err)
	}
}

func TestTheAuthToken(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("open sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := startServer(t, "--auth-token-file", path)
	for name, options := range map[string][]Option{
		"none": {}, "wrong": {Token("wrong")},
	} {
		client := newClient(t, append(options, Servers(server.address()))...)
		if _, err := client.Acquire(testContext(t), "job"); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := client.Listen(testContext(t), "a"); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, option := range map[string]Option{"value": Token("open sesame"), "file": TokenFile(path)} {
		client := newClient(t, option, Servers(server.address()))
		if held, err := client.Acquire(testContext(t), "job"); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if err := held.Release(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	unasked := newClient(t, Servers(startServer(t).address()), Token("secret"))
	if _, err := unasked.Acquire(testContext(t), "job"); !errors.Is(err, ErrUnauthorized) {
		t.Error(err)
	}
}

// --- restarts ---

func TestAReleaseGoesOnThroughARestart(t *testing.T) {
	t.Parallel()
	server := startServer(t, "--wal", filepath.Join(t.TempDir(), "wal"))
	client := newClient(t, Servers(server.address()), ReleaseTimeout(patience))
	held := mustAcquire(t, client, "job", Lease(time.Minute))
	server.stop(syscall.SIGKILL)
	released := make(chan error, 1)
	go func() { released <- held.Release() }()
	time.Sleep(200 * time.Millisecond)
	server.startAgain(t)
	if err := await(t, "the release", released); err != nil {
		t.Error(err)
	}
	if server.isHeld(t, "job") {
		t.Error("it is held still")
	}
}

func TestAHeldLockIsLostWithAServerWithoutAJournal(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()))
	held := mustAcquire(t, client, "job", Lease(5*time.Minute))
	server.stop(syscall.SIGKILL)
	server.startAgain(t)
	await(t, "the loss, long before a renewal is due", held.Context().Done())
	var loss *LostError
	if !errors.As(context.Cause(held.Context()), &loss) || loss.Cause != LossRefused || loss.Fence != held.Fence() {
		t.Error(context.Cause(held.Context()))
	}
	if err := held.Release(); !errors.Is(err, ErrLost) {
		t.Error(err)
	}
}

func TestAWaitSurvivesARestart(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "asked": syscall.SIGTERM} {
		signal := signal
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startServer(t, "--wal", filepath.Join(t.TempDir(), "wal"), "--shutdown-timeout", "0.3")
			holder := newClient(t, Servers(server.address()))
			held := mustAcquire(t, holder, "job", Lease(20*time.Second))
			waiting := acquireInBackground(testContext(t), newClient(t, Servers(server.address())), "job", Wait(time.Minute))
			eventually(t, "a waiter", func() bool { return server.waiters(t, "job") == 1 })
			server.stop(signal)
			time.Sleep(300 * time.Millisecond)
			server.startAgain(t)
			eventually(t, "a waiter", func() bool { return server.waiters(t, "job") == 1 })
			eventually(t, "a renewal on a new connection", func() bool { return held.Check() == nil })
			if err := held.Release(); err != nil {
				t.Fatal(err)
			}
			got := await(t, "the grant", waiting)
			if got.err != nil || got.held.QueuedAgain() < 1 {
				t.Fatal(got.err, got.held)
			}
			if err := got.held.Release(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAServerThatIsDownIsWaitedFor(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	server.stop(syscall.SIGKILL)
	client := newClient(t, Servers(server.address()))
	if _, err := client.TryAcquire(testContext(t), "job"); !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrNotAcquired) {
		t.Error(err)
	}
	began := now()
	_, err := client.Acquire(testContext(t), "job", Wait(700*time.Millisecond))
	if !errors.Is(err, ErrNotAcquired) || !errors.Is(err, ErrUnreachable) || now().sub(began) < 700*time.Millisecond {
		t.Error(err)
	}
	waiting := acquireInBackground(testContext(t), client, "job", Wait(time.Minute))
	time.Sleep(300 * time.Millisecond)
	server.startAgain(t)
	if got := await(t, "the grant", waiting); got.err != nil || got.held.QueuedAgain() != 0 {
		t.Fatal(got.err)
	}
	server.stop(syscall.SIGKILL)
	ctx, cancel := context.WithTimeout(testContext(t), 300*time.Millisecond)
	defer cancel()
	if _, err := client.Acquire(ctx, "job"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// --- signals ---

func TestSignals(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()))
	all, err := client.Listen(testContext(t), "orders.>")
	if err != nil {
		t.Fatal(err)
	}
	var group []*Listener
	for i := 0; i < 2; i++ {
		member, err := client.Listen(testContext(t), "orders.*", Group("workers"))
		if err != nil {
			t.Fatal(err)
		}
		group = append(group, member)
	}
	for i := 0; i < 4; i++ {
		if reached, err := client.Publish(testContext(t), "orders.42", fmt.Sprint("number ", i)); err != nil || reached != 2 {
			t.Fatal(reached, err)
		}
	}
	if reached, err := client.Publish(testContext(t), "invoices", "none"); err != nil || reached != 0 {
		t.Error(reached, err)
	}
	for i := 0; i < 4; i++ {
		want := Signal{Channel: "orders.42", Payload: fmt.Sprint("number ", i)}
		if got, err := all.Next(testContext(t)); err != nil || got != want {
			t.Error(got, err)
		}
	}
	for _, member := range group {
		for i := 0; i < 2; i++ {
			if _, err := member.Next(testContext(t)); err != nil {
				t.Error(err)
			}
		}
	}
	if channels := server.stats(t).SignalChannels; len(channels) != 2 {
		t.Errorf("%+v", channels)
	}
	ctx, cancel := context.WithTimeout(testContext(t), 20*time.Millisecond)
	defer cancel()
	if _, err := all.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	all.Close()
	if _, err := all.Next(testContext(t)); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	eventually(t, "one channel", func() bool { return len(server.stats(t).SignalChannels) == 1 })
}

// As the other clients do: whoever publishes asks the server of the channel, whoever listens all.
func TestSignalsOfSeveralServers(t *testing.T) {
	t.Parallel()
	servers := []*realServer{startServer(t), startServer(t)}
	client := newClient(t, Servers(servers[0].address(), servers[1].address()))
	listener, err := client.Listen(testContext(t), "a.*")
	if err != nil {
		t.Fatal(err)
	}
	channels := []string{"", ""}
	for i := 0; channels[0] == "" || channels[1] == ""; i++ {
		channel := fmt.Sprint("a.", i)
		channels[ShardOf(channel, 2)] = channel
	}
	for i, channel := range channels {
		alone := newClient(t, Servers(servers[1-i].address()))
		if reached, err := alone.Publish(testContext(t), channel, "elsewhere"); err != nil || reached != 1 {
			t.Error(reached, err)
		}
		if got, err := listener.Next(testContext(t)); err != nil || got.Payload != "elsewhere" {
			t.Error(got, err)
		}
		there := newClient(t, Servers(servers[i].address()))
		own, err := there.Listen(testContext(t), channel)
		if err != nil {
			t.Fatal(err)
		}
		if reached, err := client.Publish(testContext(t), channel, "there"); err != nil || reached != 2 {
			t.Error(reached, err)
		}
		for _, one := range []*Listener{own, listener} {
			if got, err := one.Next(testContext(t)); err != nil || got.Payload != "there" {
				t.Error(got, err)
			}
		}
		own.Close()
	}
	servers[1].stop(syscall.SIGKILL)
	servers[1].startAgain(t)
	eventually(t, "a listener", func() bool {
		reached, err := client.Publish(testContext(t), channels[1], "after")
		return err == nil && reached == 1
	})
	if got, err := listener.Next(testContext(t)); err != nil || got.Payload != "after" {
		t.Error(got, err)
	}
	listener.Close()
	for _, one := range servers {
		eventually(t, "nobody listens", func() bool { return len(one.stats(t).SignalChannels) == 0 })
	}
}

func TestAListenerListensAgainAfterARestart(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()))
	listener, err := client.Listen(testContext(t), "a.*")
	if err != nil {
		t.Fatal(err)
	}
	if reached, err := client.Publish(testContext(t), "a.b", "before"); err != nil || reached != 1 {
		t.Fatal(reached, err)
	}
	if got, err := listener.Next(testContext(t)); err != nil || got.Payload != "before" {
		t.Error(got, err)
	}
	server.stop(syscall.SIGKILL)
	server.startAgain(t)
	eventually(t, "a listener", func() bool {
		reached, err := client.Publish(testContext(t), "a.b", "after")
		return err == nil && reached == 1
	})
	if got, err := listener.Next(testContext(t)); err != nil || got.Payload != "after" {
		t.Error(got, err)
	}
	if listener.Reopened() != 1 || listener.Dropped() != 0 {
		t.Error(listener.Reopened(), listener.Dropped())
	}
}

func TestOfSignalsThatNobodyTakesTheLatestAreKept(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()))
	listener, err := client.Listen(testContext(t), "a")
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < signalsMax+10; i++ {
		if _, err := client.Publish(testContext(t), "a", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "ten drops", func() bool { return listener.Dropped() == 10 })
	if got, err := listener.Next(testContext(t)); err != nil || got.Payload != "10" {
		t.Error(got, err)
	}
}
