// A program that holds a lock of a cluster, and says how it goes.
//
//	clusteractor KEY LEASE_S HOST:PORT...
//
// "held FENCE QUEUED_AGAIN" once it has it, after a wait without bound; "lost CAUSE" when it is
// lost. A line comes in: it releases, and says "released".
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"lockd.internal/lockd"
)

func main() {
	lease, err := time.ParseDuration(os.Args[2] + "s")
	if err != nil {
		log.Fatal(err)
	}
	client, err := lockd.New(lockd.Cluster(os.Args[3:]...))
	if err != nil {
		log.Fatal(err)
	}
	held, err := client.Acquire(context.Background(), os.Args[1], lockd.Lease(lease), lockd.OnLost(tell))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("held", held.Fence(), held.QueuedAgain() > 0)
	if !bufio.NewScanner(os.Stdin).Scan() {
		return
	}
	if err := held.Release(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("released")
}

func tell(loss error) {
	var lost *lockd.LostError
	if errors.As(loss, &lost) {
		fmt.Println("lost", lost.Cause)
	}
}
