// Holds locks and renews them: the client for Go, to be measured by bench/clients/renewals.
//
//	hold_locks HOST:PORT LOCKS LEASE_S
//
// Says "held" when it has all, holds them until a line comes in, and says how many it has then.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"lockd.internal/lockd"
)

func main() {
	locks, _ := strconv.Atoi(os.Args[2])
	lease, _ := strconv.Atoi(os.Args[3])
	client, err := lockd.New(lockd.Servers(os.Args[1]))
	if err != nil {
		log.Fatal(err)
	}
	var all []*lockd.Held
	for i := 0; i < locks; i++ {
		key := fmt.Sprintf("%d/%d", os.Getpid(), i)
		held, err := client.Acquire(context.Background(), key, lockd.Lease(time.Duration(lease)*time.Second))
		if err != nil {
			log.Fatal(err)
		}
		all = append(all, held)
	}
	fmt.Println("held")
	bufio.NewScanner(os.Stdin).Scan()
	count := 0
	for _, held := range all {
		if held.Check() == nil {
			count++
		}
	}
	fmt.Println(count)
	client.Close()
}
