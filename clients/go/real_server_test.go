package lockd

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"
)

// patience is for what comes soon, on a machine that may be busy.
const patience = 20 * time.Second

// lockd is the server's program.
func lockd() string {
	if path := os.Getenv("LOCKD_TEST_SERVER"); path != "" {
		return path
	}
	return filepath.Join("..", "..", "build", "lockd")
}

// TestMain starts the server that the examples talk to. Without the program they are skipped, as are
// the tests that need it.
func TestMain(m *testing.M) {
	flag.Parse()
	if address := os.Getenv(holderVariable); address != "" {
		beHolder(address)
		return
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	if _, err := os.Stat(lockd()); err != nil {
		fmt.Printf("skipped: all examples and all tests with a real server: %v (LOCKD_TEST_SERVER names it)\n", err)
		flag.Set("test.skip", "^Example")
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "lockd-go-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	server := &realServer{dir: dir}
	if err := server.start("0"); err != nil {
		fmt.Println(err)
		return 1
	}
	defer server.stop(syscall.SIGKILL)
	os.Setenv("LOCKD_SERVERS", server.address())
	return m.Run()
}

// realServer is a server process on a port of its own.
type realServer struct {
	dir  string
	args []string
	port string
	cmd  *exec.Cmd
}

func startServer(t *testing.T, args ...string) *realServer {
	t.Helper()
	if _, err := os.Stat(lockd()); err != nil {
		t.Skip("no server: " + err.Error())
	}
	s := &realServer{dir: t.TempDir(), args: args}
	if err := s.start("0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.stop(syscall.SIGKILL) })
	return s
}

var listening = regexp.MustCompile(`listening .*port=(\d+)`)

func (s *realServer) start(port string) error {
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = exec.Command(lockd(), s.flags(port)...)
	s.cmd.Stderr = log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	for began := time.Now(); time.Since(began) < patience; time.Sleep(5 * time.Millisecond) {
		if found := listening.FindStringSubmatch(s.log()); found != nil {
			s.port = found[1]
			return nil
		}
	}
	s.stop(syscall.SIGKILL)
	return fmt.Errorf("the server does not start:\n%s", s.log())
}

func (s *realServer) flags(port string) []string {
	flags := []string{"--http-addr", "off", "--host", "127.0.0.1", "--port", port}
	if !slices.Contains(s.args, "--wal") {
		flags = append(flags, "--memory")
	}
	return append(flags, s.args...)
}

func (s *realServer) log() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return string(text)
}

func (s *realServer) address() string { return "127.0.0.1:" + s.port }

// stop ends the process, and returns when it has ended.
func (s *realServer) stop(signal syscall.Signal) {
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Signal(signal)
	s.cmd.Wait()
	s.cmd = nil
}

// startAgain starts it on the port that it had.
func (s *realServer) startAgain(t *testing.T) {
	t.Helper()
	if err := s.start(s.port); err != nil {
		t.Fatal(err)
	}
}

// waiters is how many wait for a lock, by the server's own count.
func (s *realServer) waiters(t *testing.T, key string) int {
	t.Helper()
	for _, lock := range s.stats(t).Locks {
		if lock.Key == key {
			return lock.Waiters
		}
	}
	return 0
}

func (s *realServer) isHeld(t *testing.T, key string) bool {
	t.Helper()
	for _, lock := range s.stats(t).Locks {
		if lock.Key == key {
			return true
		}
	}
	return false
}

func (s *realServer) stats(t *testing.T) Stats {
	t.Helper()
	all, err := newClient(t, Servers(s.address())).Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

func newClient(t *testing.T, options ...Option) *Client {
	t.Helper()
	client, err := New(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// mustAcquire fails the test if there is no grant.
func mustAcquire(t *testing.T, c *Client, key string, options ...AcquireOption) *Held {
	t.Helper()
	held, err := c.Acquire(testContext(t), key, options...)
	if err != nil {
		t.Fatal(err)
	}
	return held
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits for what comes soon.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(5 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("not within %v: %s", patience, what)
}

// outcome is what a call in the background returned.
type outcome struct {
	held *Held
	err  error
}

func acquireInBackground(ctx context.Context, c *Client, key string, options ...AcquireOption) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		held, err := c.Acquire(ctx, key, options...)
		done <- outcome{held, err}
	}()
	return done
}

func await[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(patience):
		t.Fatalf("not within %v: %s", patience, what)
		panic("unreachable")
	}
}
