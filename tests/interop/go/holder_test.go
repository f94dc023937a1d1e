package interop

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/mtingers/dflockd/client"
)

// What the process of a holder runs: it takes the lock, waiting for it, and says `held`; it says
// `lost` when the client has noticed that. It never returns.
func hold(words []string) {
	leaseTTL, err := strconv.Atoi(words[2])
	if err != nil {
		panic(err)
	}
	lock := &client.Lock{Servers: words[:1], Key: words[1], LeaseTTL: leaseTTL,
		AcquireTimeout: longWait, OnRenewError: func(error) { fmt.Println("lost") }}
	if granted, err := lock.Acquire(context.Background()); err != nil || !granted {
		panic(fmt.Sprint("not granted: ", err))
	}
	fmt.Println("held")
	select {}
}

// A client in a process of its own, for cases that stop it or kill it.
type holder struct {
	t       *testing.T
	process *exec.Cmd
	said    chan string
}

func startHolder(t *testing.T, s *server, key string, leaseTTL int) *holder {
	t.Helper()
	program, err := os.Executable()
	succeed(t, err)
	h := &holder{t: t, said: make(chan string, 16)}
	h.process = exec.Command(program, "hold", s.address, key, strconv.Itoa(leaseTTL))
	stdout, err := h.process.StdoutPipe()
	succeed(t, err)
	succeed(t, h.process.Start())
	t.Cleanup(func() { h.process.Process.Kill(); h.process.Wait() })
	go func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			h.said <- lines.Text()
		}
	}()
	return h
}

func (h *holder) expectToSay(line string) {
	h.t.Helper()
	select {
	case said := <-h.said:
		expect(h.t, said, line)
	case <-time.After(patience):
		h.t.Fatalf("the holder never said %q", line)
	}
}

func (h *holder) signal(signal syscall.Signal) {
	h.t.Helper()
	succeed(h.t, h.process.Process.Signal(signal))
}
