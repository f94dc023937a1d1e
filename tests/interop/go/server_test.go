package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// How long to wait for what must happen. Generous: only a failure takes that long.
const patience = 60 * time.Second

var listening = regexp.MustCompile(`listening .*\bport=(\d+)`)

// A server of a test's own, on a port that the system chose. It ends with the test, which fails if
// it does not end well.
type server struct {
	t          *testing.T
	process    *exec.Cmd
	terminated bool
	ended      chan error
	log        log
	address    string
}

func startServer(t *testing.T, flags ...string) *server {
	t.Helper()
	s := &server{t: t, ended: make(chan error, 1)}
	s.process = exec.Command(*dflockd, append([]string{"--port", "0"}, flags...)...)
	s.process.Env = slices.DeleteFunc(os.Environ(), func(setting string) bool {
		return strings.HasPrefix(setting, "DFLOCKD_")
	})
	s.process.Stderr = &s.log
	succeed(t, s.process.Start())
	go func() { s.ended <- s.process.Wait() }()
	t.Cleanup(s.stop)
	awaitThat(t, "the server listens", func() bool {
		if len(s.ended) > 0 {
			t.Fatalf("the server did not start: %s", s.log.text())
		}
		return listening.MatchString(s.log.text())
	})
	s.address = "127.0.0.1:" + listening.FindStringSubmatch(s.log.text())[1]
	return s
}

// Begins to stop it, as an operator would.
func (s *server) terminate() {
	if !s.terminated {
		s.terminated = true
		s.process.Process.Signal(syscall.SIGTERM)
	}
}

func (s *server) stop() {
	if s.t.Failed() {
		s.process.Process.Kill()
		return
	}
	s.terminate()
	select {
	case err := <-s.ended:
		if err != nil {
			s.t.Errorf("the server ended with %v: %s", err, s.log.text())
		}
	case <-time.After(patience):
		s.process.Process.Kill()
		s.t.Errorf("the server did not stop: %s", s.log.text())
	}
}

func (s *server) isClosed() bool {
	conn, err := net.Dial("tcp", s.address)
	if err == nil {
		conn.Close()
	}
	return err != nil
}

type stats struct {
	Connections int
	Locks       []struct {
		Key     string
		Waiters int
	}
	Semaphores []semaphoreStats
}

type semaphoreStats struct {
	Key                     string
	Limit, Holders, Waiters int
}

// What it says of itself, asked without any client. For servers without auth and TLS.
func (s *server) stats() (said stats) {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.address)
	succeed(s.t, err)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	_, err = conn.Write([]byte("stats\n_\n_\n"))
	succeed(s.t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	succeed(s.t, err)
	body, isOk := strings.CutPrefix(line, "ok ")
	expect(s.t, isOk, true)
	succeed(s.t, json.Unmarshal([]byte(body), &said))
	return said
}

// The keys of the locks that are held, sorted.
func (s *server) held() []string {
	s.t.Helper()
	keys := []string{}
	for _, lock := range s.stats().Locks {
		keys = append(keys, lock.Key)
	}
	slices.Sort(keys)
	return keys
}

func (s *server) waiters(key string) (count int) {
	s.t.Helper()
	said := s.stats()
	for _, lock := range said.Locks {
		if lock.Key == key {
			count += lock.Waiters
		}
	}
	for _, semaphore := range said.Semaphores {
		if semaphore.Key == key {
			count += semaphore.Waiters
		}
	}
	return count
}

func (s *server) awaitWaiters(key string, count int) {
	s.t.Helper()
	awaitThat(s.t, "as many wait as should", func() bool { return s.waiters(key) == count })
}

// What the server wrote so far.
type log struct {
	mutex   sync.Mutex
	written bytes.Buffer
}

func (l *log) Write(piece []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.written.Write(piece)
}

func (l *log) text() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.written.String()
}
