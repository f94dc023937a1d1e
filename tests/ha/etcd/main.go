// A current etcd, for the tests of the cluster: Debian's is of another age, and what its rights,
// its compaction and its snapshots are has changed since. `go install` refuses etcd's own module,
// which has replace directives; this one requires its server and starts it.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
