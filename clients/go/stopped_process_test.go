package lockd

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A process that was stopped for longer than its lease knows so at its first look.
func TestAProcessThatWasStoppedKnowsThatItsLockIsLost(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), holderVariable+"="+server.address())
	asks, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		holder.Process.Kill()
		holder.Wait()
	}()
	lines := bufio.NewScanner(answers)
	ask := func() string {
		fmt.Fprintln(asks)
		lines.Scan()
		return lines.Text()
	}
	if got := ask(); got != "<nil>" {
		t.Fatal(got)
	}
	holder.Process.Signal(syscall.SIGSTOP)
	mustAcquire(t, newClient(t, Servers(server.address())), "job", Wait(patience))
	// What it is asked now it reads as soon as it goes on.
	time.AfterFunc(100*time.Millisecond, func() { holder.Process.Signal(syscall.SIGCONT) })
	if got := ask(); !strings.Contains(got, "is lost") {
		t.Errorf("it believes in a lock that somebody else has: %s", got)
	}
}

// holderVariable has the test program hold a lock at the server that it names.
const holderVariable = "LOCKD_GO_TEST_HOLDER"

// beHolder says whether the lock is held, for each line that it reads.
func beHolder(address string) {
	client, err := New(Servers(address))
	if err != nil {
		fmt.Println(err)
		return
	}
	held, err := client.Acquire(context.Background(), "job", Lease(time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	for asked := bufio.NewScanner(os.Stdin); asked.Scan(); {
		fmt.Println(held.Check())
	}
}
