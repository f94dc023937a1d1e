// Drives the client for Go. ../README.md says what is asked of a driver.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	lockd "lockd.internal/lockd"
)

const workers = 32

func now() int64 {
	const clockBoottime = 7
	var at syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&at)), 0)
	return at.Nano()
}

// One line of the history.
type line struct {
	Proc    int    `json:"proc"`
	F       string `json:"f"`
	Key     string `json:"key"`
	Kind    string `json:"kind"`
	Limit   int    `json:"limit"`
	TTL     int    `json:"ttl"`
	Timeout int    `json:"timeout"`
	Call    int64  `json:"call"`
	Ret     int64  `json:"ret,omitempty"`
	GaveUp  int64  `json:"gave_up,omitempty"`
	Res     string `json:"res"`
	Fence   uint64 `json:"fence,omitempty"`
	Via     string `json:"via"`
	Srv     string `json:"srv"`
	Life    int    `json:"life"`
}

type worker struct {
	client *lockd.Client
	proc   int
	chance *rand.Rand
	notes  *notes
}

func (w *worker) run(isStopping *atomic.Bool) {
	for !isStopping.Load() {
		w.holdOne(w.request())
		time.Sleep(5*time.Millisecond + time.Duration(w.chance.Intn(20))*time.Millisecond)
	}
}

func (w *worker) request() line {
	l := line{
		Proc: w.proc, Key: fmt.Sprint("lock-", w.chance.Intn(160)), Kind: "lock", Limit: 1,
		TTL: 1 + w.chance.Intn(3), Timeout: 2 * w.chance.Intn(2), Via: "lib", Srv: "w", Life: 1,
	}
	if w.chance.Intn(5) == 0 {
		l.Key, l.Kind, l.Limit = fmt.Sprint("sem-", w.chance.Intn(20)), "sem", 2
	}
	return l
}

func (w *worker) holdOne(l line) {
	options := []lockd.AcquireOption{
		lockd.Wait(time.Duration(l.Timeout) * time.Second),
		lockd.Lease(time.Duration(l.TTL) * time.Second),
	}
	if l.Kind == "sem" {
		options = append(options, lockd.Semaphore(l.Limit))
	}
	l.F, l.Call = "acquire", now()
	held, err := w.client.Acquire(context.Background(), l.Key, options...)
	switch {
	case errors.Is(err, lockd.ErrNotAcquired):
		l.Ret, l.Res = now(), "error:refused"
	case err != nil:
		l.GaveUp, l.Res = now(), "info"
	default:
		l.Ret, l.Res, l.Fence = now(), "ok", held.Fence()
	}
	w.notes.add(l)
	if err == nil {
		w.release(held, l, w.keep(held, l))
	}
}

// keep returns until when it believed in it.
func (w *worker) keep(held *lockd.Held, l line) int64 {
	until := l.Ret + int64(500+w.chance.Intn(3500))*int64(time.Millisecond)
	isLong := w.chance.Intn(100) < 2
	l.F, l.Call = "believe", l.Ret
	believed := false // not even once, if the lease was over when the answer came
	for {
		at := now()
		if held.Check() != nil {
			break
		}
		believed, l.Ret = true, at
		if !isLong || at >= until {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if believed {
		w.notes.add(l)
	}
	return l.Ret
}

// A client that loses a hold releases it by itself: at any time since it last believed in it.
func (w *worker) release(held *lockd.Held, l line, believed int64) {
	l.F, l.Call, l.Ret = "release", now(), 0
	if err := held.Release(); err != nil {
		l.Call, l.GaveUp, l.Res = believed, now(), "info"
	} else {
		l.Ret = now()
	}
	w.notes.add(l)
}

type notes struct {
	mu  sync.Mutex
	out *bufio.Writer
}

func (n *notes) add(l line) {
	text, _ := json.Marshal(l)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.out.Write(append(text, '\n'))
}

func main() {
	var numbers [3]int
	for i := range numbers {
		numbers[i], _ = strconv.Atoi(os.Args[i+1])
	}
	port, proc, seed := numbers[0], numbers[1], numbers[2]
	client, err := lockd.New(lockd.Servers(fmt.Sprint("127.0.0.1:", port)))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	notes := &notes{out: bufio.NewWriter(os.Stdout)}
	var isStopping atomic.Bool
	var running sync.WaitGroup
	for i := 0; i < workers; i++ {
		w := &worker{client, proc + i, rand.New(rand.NewSource(int64(seed + i))), notes}
		running.Add(1)
		go func() {
			defer running.Done()
			w.run(&isStopping)
		}()
	}
	io.Copy(io.Discard, os.Stdin)
	isStopping.Store(true)
	running.Wait()
	client.Close()
	notes.out.Flush()
}
