// Package interop runs the published Go client against the server: each of its calls, the errors that
// it knows by name, contexts, and goroutines that share a connection. The cases of the Python clients
// show what the server promises to every client.
//
//	interop.test -dflockd <the server's program>
//
// Every case has servers of its own, so all may run at once; most of their time goes by waiting.
package interop

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

var dflockd = flag.String("dflockd", "", "the server's program")

func TestMain(m *testing.M) {
	flag.Parse()
	if *dflockd == "" {
		fmt.Fprintln(os.Stderr, "which server? say -dflockd <program>")
		os.Exit(2)
	}
	os.Exit(m.Run())
}
