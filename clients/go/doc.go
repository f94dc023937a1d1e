// Package lockd takes locks and semaphores from lockd, or from any server that speaks its line
// protocol.
//
//	client, err := lockd.New(lockd.Servers("locks.example.com"))
//	held, err := client.Acquire(ctx, "invoice/7", lockd.Wait(30*time.Second))
//	defer held.Release()
//	work(held.Context(), held.Fence())
//
// A lock that is held is renewed whenever a third of its lease has passed, by one goroutine for all
// locks of a client. It outlives a restart of a server that keeps a journal, and the leader of a
// cluster. When it is lost, its context is cancelled: see [Held].
//
// Whatever the lock protects should be given its fence, and refuse a smaller one than it has seen:
// between a look at the lock and what is done then, a program may be stopped for longer than the
// lease.
//
// An acquisition goes on through a server that is down, restarts or drains, until its own end. What
// it can end with are the errors of this package, for errors.Is and errors.As.
//
// Servers that came before the command by which clients name themselves, and dflockd's own, are
// served as well; the client finds out at the first connection.
package lockd
