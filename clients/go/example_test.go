package lockd_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"lockd.internal/lockd"
)

// Does a job that only one process may do at a time.
func Example() {
	ctx := context.Background()
	client, err := lockd.New(lockd.Servers(os.Getenv("LOCKD_SERVERS")))
	if err != nil {
		log.Fatal(err)
	}

	// Wait in the queue for up to ten seconds. From then on the lock renews itself.
	held, err := client.Acquire(ctx, "my-job", lockd.Wait(10*time.Second), lockd.Lease(30*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	defer held.Release()

	for step := 1; step <= 3; step++ {
		// Before everything that cannot be undone: is it still ours?
		if err := held.Check(); err != nil {
			log.Fatal(err)
		}
		// Whatever is written to gets the fence, and refuses one smaller than it has seen.
		write(held.Context(), step, held.Fence())
	}
	// The deferred call would do it, too, but nobody asks it how it went.
	fmt.Println("release:", held.Release())
	// Output:
	// step 1
	// step 2
	// step 3
	// release: <nil>
}

func write(ctx context.Context, step int, fence uint64) {
	if ctx.Err() == nil && fence > 0 {
		fmt.Println("step", step)
	}
}

// Says why there is no lock.
func ExampleClient_TryAcquire() {
	ctx := context.Background()
	client, err := lockd.New(lockd.Servers(os.Getenv("LOCKD_SERVERS")))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	for i := 0; i < 2; i++ {
		_, err := client.TryAcquire(ctx, "nightly")
		switch {
		case err == nil:
			fmt.Println("it is ours")
		case errors.Is(err, lockd.ErrNotAcquired):
			fmt.Println("somebody else does it")
		default:
			log.Fatal(err)
		}
	}
	// Output:
	// it is ours
	// somebody else does it
}

// Two permits for three workers: a semaphore, and a place in its queue.
func ExampleClient_Enqueue() {
	ctx := context.Background()
	client, err := lockd.New(lockd.Servers(os.Getenv("LOCKD_SERVERS")))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	first, err := client.Acquire(ctx, "printers", lockd.Semaphore(2))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.Acquire(ctx, "printers", lockd.Semaphore(2)); err != nil {
		log.Fatal(err)
	}

	// Joins the queue now, and waits later: meanwhile there is something else to do.
	place, err := client.Enqueue(ctx, "printers", lockd.Semaphore(2), lockd.Wait(10*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("granted at once:", place.Granted())

	first.Release()
	third, err := place.Wait(ctx)
	fmt.Println("granted:", third.Check() == nil, err)
	// Output:
	// granted at once: false
	// granted: true <nil>
}

// Many read together, and one writes alone.
func ExampleShared() {
	ctx := context.Background()
	client, err := lockd.New(lockd.Servers(os.Getenv("LOCKD_SERVERS")))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	reader, err := client.Acquire(ctx, "report", lockd.Shared())
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.TryAcquire(ctx, "report", lockd.Shared()); err == nil {
		fmt.Println("two read")
	}
	_, err = client.TryAcquire(ctx, "report")
	fmt.Println("one writes meanwhile:", !errors.Is(err, lockd.ErrNotAcquired), reader.Release())
	// Output:
	// two read
	// one writes meanwhile: false <nil>
}

// A job that needs four of eight.
func ExamplePermits() {
	ctx := context.Background()
	client, err := lockd.New(lockd.Servers(os.Getenv("LOCKD_SERVERS")))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	job, err := client.Acquire(ctx, "gpus", lockd.Semaphore(8), lockd.Permits(4),
		lockd.Wait(10*time.Second), lockd.Lease(30*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("four of eight:", job.Check() == nil, job.Release())
	// Output:
	// four of eight: true <nil>
}

// Two seats, or none.
func ExampleClient_AcquireAll() {
	ctx := context.Background()
	client, err := lockd.New(lockd.Servers(os.Getenv("LOCKD_SERVERS")))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	seats, err := client.AcquireAll(ctx, []string{"seat-12", "seat-13"}, lockd.Wait(10*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.AcquireAll(ctx, []string{"seat-13", "seat-14"}, lockd.Wait(0))
	fmt.Println(seats.Keys(), errors.Is(err, lockd.ErrNotAcquired), seats.Release())
	// Output:
	// [seat-12 seat-13] true <nil>
}

// A report that nobody else writes, prices that do not change meanwhile, and four cores.
func ExampleClient_AcquireItems() {
	ctx := context.Background()
	client, err := lockd.New(lockd.Servers(os.Getenv("LOCKD_SERVERS")))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	job, err := client.AcquireItems(ctx, []lockd.SetItem{
		{Key: "report-7"},
		{Key: "prices", Shared: true},
		{Key: "cores", Limit: 8, Permits: 4},
	}, lockd.Wait(10*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(job.Keys(), job.Release())
	// Output:
	// [report-7 prices cores] <nil>
}

// Listens to what happens to orders, and says that something has.
func ExampleClient_Listen() {
	ctx := context.Background()
	client, err := lockd.New(lockd.Servers(os.Getenv("LOCKD_SERVERS")))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	listener, err := client.Listen(ctx, "orders.>")
	if err != nil {
		log.Fatal(err)
	}
	reached, err := client.Publish(ctx, "orders.42", "ready")
	if err != nil {
		log.Fatal(err)
	}
	signal, err := listener.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("reached %d; %s: %s\n", reached, signal.Channel, signal.Payload)
	// Output:
	// reached 1; orders.42: ready
}

// What a client may be told when it is made.
func ExampleNew() {
	_, err := lockd.New(
		lockd.Cluster("locks-1", "locks-2", "locks-3"), // one cluster; or Servers, which share the keys
		lockd.TokenFile("/etc/billing/lockd.token"),
		lockd.CAFile("/etc/billing/ca.pem"),
		lockd.Certificate("/etc/billing/billing.pem", "/etc/billing/billing.key"),
		lockd.Name("billing"),
	)
	fmt.Println(err != nil, errors.Is(err, os.ErrNotExist))
	// Output:
	// true true
}
