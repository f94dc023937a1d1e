package lockd

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Several keys at once: all of them or none, under one fence. What all clients do at scripted servers
// is in clients/conformance.

func mustAcquireAll(t *testing.T, c *Client, keys []string, options ...AcquireOption) *Held {
	t.Helper()
	held, err := c.AcquireAll(testContext(t), keys, options...)
	if err != nil {
		t.Fatal(err)
	}
	return held
}

// mustBeFree fails the test if a try is refused.
func mustBeFree(t *testing.T, c *Client, keys ...string) {
	t.Helper()
	for _, key := range keys {
		mustAcquire(t, c, key, Wait(0)).Release()
	}
}

func TestASetIsHeldWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()), Name("billing"))
	before := mustAcquire(t, client, "b")
	before.Release()
	held := mustAcquireAll(t, client, []string{"a", "b"}, Wait(0), Lease(15*time.Second))
	if !reflect.DeepEqual(held.Keys(), []string{"a", "b"}) || held.Lease() != 15*time.Second || held.Check() != nil {
		t.Error(held.Keys(), held.Lease(), held.Check())
	}
	mustBeHeld(t, client, "a")
	mustBeHeld(t, client, "b")
	for _, keys := range [][]string{{"c", "b"}, {"a", "b"}} {
		_, err := client.AcquireAll(testContext(t), keys, Wait(0))
		var over *NotAcquiredError
		if !errors.As(err, &over) || !strings.HasPrefix(over.Holder, "billing#") {
			t.Error(err)
		}
	}
	mustBeFree(t, client, "c")
	if err := held.Release(); err != nil {
		t.Error(err)
	}
	mustBeFree(t, client, "b")
	after := mustAcquire(t, client, "a", Wait(0))
	if !(before.Fence() < held.Fence() && held.Fence() < after.Fence()) {
		t.Errorf("fences %d, %d and %d do not rise", before.Fence(), held.Fence(), after.Fence())
	}
}

func TestASetWhoseWaitTheServerCutsIsAskedForAgain(t *testing.T) {
	t.Parallel()
	server := startServer(t, "--max-set-wait", "1")
	client := newClient(t, Servers(server.address()))
	mustAcquire(t, client, "b")
	began := now()
	_, err := client.AcquireAll(testContext(t), []string{"a", "b"}, Wait(2500*time.Millisecond))
	var over *NotAcquiredError
	if !errors.As(err, &over) || now().sub(began) < 2500*time.Millisecond || over.QueuedAgain == 0 {
		t.Errorf("after %v: %v", now().sub(began), err)
	}
}

func TestASetRenewsItselfUntilOneIsTakenAway(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()))
	held := mustAcquireAll(t, client, []string{"a", "b"}, Lease(time.Second))
	for began := now(); now().sub(began) < 2500*time.Millisecond; time.Sleep(10 * time.Millisecond) {
		if err := held.Check(); err != nil {
			t.Fatal(err)
		}
	}
	mustBeHeld(t, client, "a")
	server.revoke(t, "b")
	await(t, "the loss", held.Context().Done())
	var loss *LostError
	if !errors.As(held.Check(), &loss) || loss.Cause != LossRefused {
		t.Error(held.Check())
	}
	mustAcquire(t, client, "a", Wait(patience)).Release()
	other := mustAcquireAll(t, client, []string{"a", "b"})
	server.revoke(t, "b")
	if err := other.Release(); !errors.Is(err, ErrLost) {
		t.Error(err)
	}
	mustBeFree(t, client, "a", "b")
}

// revoke ends a hold as an operator does.
func (s *realServer) revoke(t *testing.T, key string) {
	t.Helper()
	s.tell(t, fmt.Sprintf("api\nPOST /v1/admin/release\n{\"key\":%q,\"all\":true,\"reason\":\"a test\"}\n", key))
}

// tell has somebody else make a call of the API.
func (s *realServer) tell(t *testing.T, lines string) {
	t.Helper()
	other, err := net.Dial("tcp", s.address())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	fmt.Fprint(other, lines)
	said := make([]byte, 7)
	if _, err := other.Read(said); err != nil || string(said) != "ok 200 " {
		t.Fatalf("%q: %v", said, err)
	}
}

func mustAcquireItems(t *testing.T, c *Client, items []SetItem, options ...AcquireOption) *Held {
	t.Helper()
	held, err := c.AcquireItems(testContext(t), items, options...)
	if err != nil {
		t.Fatal(err)
	}
	return held
}

func TestOfAnyItemsASetWaitsForRoomInEachAndRenewsItself(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()))
	writer, slot := mustAcquire(t, client, "plan"), mustAcquire(t, client, "cores", Semaphore(2))
	done := make(chan outcome, 1)
	go func() {
		items := []SetItem{{Key: "plan", Shared: true}, {Key: "cores", Limit: 2, Permits: 2}}
		held, err := client.AcquireItems(testContext(t), items, Lease(time.Second))
		done <- outcome{held, err}
	}()
	eventually(t, "a waiter", func() bool { return server.waiters(t, "plan") == 1 })
	writer.Release()
	mustBeHeld(t, client, "plan") // free, and not for who came later
	slot.Release()
	got := await(t, "the grant", done)
	if got.err != nil || got.held.Fence() <= slot.Fence() {
		t.Fatal(got.err)
	}
	for began := now(); now().sub(began) < 2500*time.Millisecond; time.Sleep(10 * time.Millisecond) {
		if err := got.held.Check(); err != nil {
			t.Fatal(err)
		}
	}
	mustBeHeld(t, client, "plan")
}

func TestALockAndASemaphoreOfOneKeyAreTwo(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := newClient(t, Servers(server.address()))
	mustAcquireItems(t, client, []SetItem{{Key: "a"}, {Key: "a", Limit: 1}}, Wait(0))
	mustBeHeld(t, client, "a")
	mustBeHeld(t, client, "a", Semaphore(1))
	other := []SetItem{{Key: "a", Limit: 2}}
	if _, err := client.AcquireItems(testContext(t), other, Wait(0)); !errors.Is(err, ErrLimitMismatch) {
		t.Error(err)
	}
}

// startSetFake grants a set once, says what became of it when it is released, and tells both calls.
func startSetFake(t *testing.T, released string) (*fakeServer, <-chan map[string]any) {
	t.Helper()
	calls := make(chan map[string]any, 2)
	server := startFake(t, func(p *peer) {
		p.greet()
		calls <- p.expectCall("POST /v1/acquire")
		p.say(`ok 200 {"token":7,"ttl_ms":9000}`)
		calls <- p.expectCall("POST /v1/release")
		p.say("ok 200 " + released)
		p.stay()
	})
	return server, calls
}

func TestOfAnyItemsASetNamesWhatItTakes(t *testing.T) {
	t.Parallel()
	server, calls := startSetFake(t, `{"released":[],"not_held":[{"key":"b","kind":"lock"}]}`)
	client := newClient(t, Servers(server.address()))
	items := []SetItem{{Key: "a"}, {Key: "b", Shared: true}, {Key: "c", Limit: 4, Permits: 2}}
	held := mustAcquireItems(t, client, items, Wait(0))
	if err := held.Release(); !errors.Is(err, ErrLost) {
		t.Error(err)
	}
	want := []any{
		map[string]any{"key": "a"},
		map[string]any{"key": "b", "mode": "shared"},
		map[string]any{"key": "c", "kind": "semaphore", "limit": 4.0, "permits": 2.0},
	}
	for i := 0; i < 2; i++ {
		if call := <-calls; !reflect.DeepEqual(call["items"], want) {
			t.Errorf("%v", call)
		}
	}
}

func TestClosingTheClientReleasesSets(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	other := newClient(t, Servers(server.address()))
	held := mustAcquireAll(t, other, []string{"a", "b"}, Lease(time.Minute))
	if err := other.Close(); err != nil || held.Check() == nil {
		t.Error(err)
	}
	mustBeFree(t, newClient(t, Servers(server.address())), "a", "b")
}

func TestASetThatNoServerTakesIsNotAskedFor(t *testing.T) {
	t.Parallel()
	script := func(p *peer) { t.Error("somebody was asked") }
	one, two := startFake(t, script), startFake(t, script)
	client := newClient(t, Servers(one.address(), two.address()))
	if ShardOf("a", 2) == ShardOf("d", 2) {
		t.Fatal("the keys live together")
	}
	var many []string
	for i := 0; i < 65; i++ {
		many = append(many, fmt.Sprint(i))
	}
	for _, keys := range [][]string{nil, {"a", "a"}, {"a", ""}, many, {"a", "d"}} {
		if _, err := client.AcquireAll(testContext(t), keys); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", keys, err)
		}
	}
	for _, items := range [][]SetItem{
		{{Key: ""}},
		{{Key: "a", Limit: -1}},
		{{Key: "a", Permits: 2}},
		{{Key: "a", Limit: 2, Permits: 3}},
		{{Key: "a", Limit: 2, Permits: -1}},
		{{Key: "a", Limit: 2, Shared: true}},
		{{Key: "a", Limit: 2}, {Key: "a", Limit: 3}},
	} {
		if _, err := client.AcquireItems(testContext(t), items); !errors.Is(err, ErrInvalid) {
			t.Errorf("%v: %v", items, err)
		}
	}
	for _, option := range []AcquireOption{Lease(0), Semaphore(2), Shared(), Permits(2)} {
		if _, err := client.AcquireAll(testContext(t), []string{"a"}, option); !errors.Is(err, ErrInvalid) {
			t.Error(err)
		}
	}
}

// expectCall reads a call of the API, and returns its members.
func (p *peer) expectCall(route string) map[string]any {
	command, got, argument := p.request()
	var members map[string]any
	err := json.Unmarshal([]byte(argument), &members)
	if command != "api" || got != route || err != nil {
		p.server.t.Errorf("connection %d: %q %q %q came instead of %q", p.number, command, got, argument, route)
	}
	return members
}

func TestASetNamesOneHolder(t *testing.T) {
	t.Parallel()
	server, calls := startSetFake(t, `{"released":["<é>","b"],"not_held":[]}`)
	client := newClient(t, Servers(server.address()), Name(strings.Repeat("é", 128)))
	held := mustAcquireAll(t, client, []string{"<é>", "b"}, Wait(1500*time.Millisecond), Lease(9*time.Second))
	if held.Fence() != 7 || held.Lease() != 9*time.Second || held.Release() != nil {
		t.Error(held, held.Lease())
	}
	acquire, release := <-calls, <-calls
	holder, _ := acquire["holder"].(string)
	if !regexp.MustCompile(`^é{119}#[0-9a-f]{16}$`).MatchString(holder) {
		t.Errorf("%q", holder)
	}
	keys := []any{"<é>", "b"}
	wait, _ := acquire["wait_ms"].(float64)
	want := map[string]any{"keys": keys, "holder": holder, "ttl_ms": 9000.0, "wait_ms": wait}
	if !reflect.DeepEqual(acquire, want) || wait < 1 || wait > 1500 {
		t.Errorf("%v", acquire)
	}
	if want := map[string]any{"keys": keys, "holder": holder, "token": 7.0}; !reflect.DeepEqual(release, want) {
		t.Errorf("%v", release)
	}
}
