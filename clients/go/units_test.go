package lockd

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"locks": "locks:6388", "locks:7": "locks:7", "::1": "[::1]:6388", "[::1]:7": "[::1]:7",
		"[::1]": "[::1]:6388", "10.0.0.1": "10.0.0.1:6388",
	} {
		if _, got, err := parseAddress(text); err != nil || got != want {
			t.Errorf("%q is %q (%v), not %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", ":7", "a:", "a:0", "a:65536", "a:x", "a b", "[::1", "http://a"} {
		if _, got, err := parseAddress(text); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q is %q (%v)", text, got, err)
		}
	}
}

func TestCertaintyIsOverForGood(t *testing.T) {
	c := certainty{until: 100}
	if !c.lasts(99) || !c.extend(99, 200) || !c.lasts(199) {
		t.Error("it does not last")
	}
	if c.lasts(200) {
		t.Error("it lasts at its end")
	}
	if c.lasts(150) || c.extend(150, 1000) || c.end(150) {
		t.Error("it came back")
	}
}

func TestRequestsOnTheWire(t *testing.T) {
	lock := &request{key: "a b"}
	slot := &request{key: "k", limit: 3, leaseSeconds: 20}
	reader := &request{key: "k", isShared: true, leaseSeconds: 20}
	job := &request{key: "k", limit: 5, permits: 4, leaseSeconds: 20}
	given := grant{token: "t", lease: 20 * time.Second}
	for want, got := range map[string]string{
		"l\na b\n0\n":               lock.acquireLines(0, ""),
		"l\na b\n5 as=0\n":          lock.acquireLines(5*time.Second, "as=0"),
		"sl\nk\n5 3 20 as=0\n":      slot.acquireLines(5*time.Second, "as=0"),
		"e\na b\n\n":                lock.enqueueLines(""),
		"se\nk\n3 20\n":             slot.enqueueLines(""),
		"l\nk\n5 20 shared as=0\n":  reader.acquireLines(5*time.Second, "as=0"),
		"e\nk\n20 shared\n":         reader.enqueueLines(""),
		"sl\nk\n5 5 20 4\n":         job.acquireLines(5*time.Second, ""),
		"se\nk\n5 20 4 as=0\n":      job.enqueueLines("as=0"),
		"w\na b\n7\n":               lock.awaitLines(7 * time.Second),
		"sn\nk\nt 20\n":             slot.renewLines(given),
		"r\na b\nt\n":               lock.releaseLines(given),
		"sr\nk\nt\n":                slot.releaseLines(given),
		"signal\nc.d\n hello you\n": lines("signal", "c.d", " hello you"),
	} {
		if got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func FuzzReplies(f *testing.F) {
	for _, line := range []string{"ok " + fakeToken + " 30", "timeout", "error_not_leader a:1", "ok 200 {}", `ok 200 {"token":1,"ttl_ms":9000}`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		given, err := parseGrant(reply{line: line}, 30)
		if err == nil && (given.lease < time.Second || given.lease > 30*time.Second) {
			t.Errorf("%q is a lease of %v", line, given.lease)
		}
		if remaining, err := parseRenewal(reply{line: line}, 30*time.Second); err == nil && remaining > 30*time.Second {
			t.Errorf("%q renews for %v", line, remaining)
		}
		parseCount(reply{line: line})
		parseConflict(line, &request{})
		if given, err := (&set{request: &request{leaseSeconds: 30}}).parseGrant(reply{line: line}); err == nil {
			if given.lease < time.Second || given.lease > 30*time.Second {
				t.Errorf("%q is a lease of %v", line, given.lease)
			}
		}
		parseLost(line)
		parseSignal(line)
	})
}

func TestALeaseIsNeverBelievedToBeLongerThanAsked(t *testing.T) {
	given, err := parseGrant(reply{line: "ok " + fakeToken + " 3600"}, 10)
	if err != nil || given.lease != 10*time.Second || given.fence != fakeFence {
		t.Error(given, err)
	}
	if remaining, err := parseRenewal(reply{line: "ok 3600"}, 10*time.Second); remaining != 10*time.Second {
		t.Error(remaining, err)
	}
}

func TestClocksCountSuspendedTime(t *testing.T) {
	at := time.Now()
	read := at
	clock := newElapsedClock(func() time.Time { return read })
	first := clock.now()
	// The monotonic clock has stood still, as while the machine sleeps; the wall clock has not.
	read = at.Round(0).Add(time.Hour)
	if got := clock.now().sub(first); got != time.Hour {
		t.Errorf("%v have passed", got)
	}
	read = at // set back: time does not go back with it
	if got := clock.now().sub(first); got != time.Hour {
		t.Errorf("%v have passed", got)
	}
	if a, b := now(), now(); b < a {
		t.Error("the clock goes back")
	}
	if never.add(time.Hour) != never || instant(5).add(-5) != 0 {
		t.Error("moments do not add up")
	}
}

func TestWhatCannotBeAskedForIsInvalid(t *testing.T) {
	missing := t.TempDir() + "/missing"
	fifo := t.TempDir() + "/fifo" // without a writer
	if err := exec.Command("mkfifo", fifo).Run(); err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string][]Option{
		"both":            {Servers("a"), Cluster("b")},
		"twice":           {Cluster("a", "a:6388")},
		"address":         {Servers("a b")},
		"many":            {Cluster(strings.Split("a b c d e f g h i j k l m n o p q", " ")...)},
		"name":            {Name("")},
		"note":            {Note("a\nb")},
		"token":           {Token("a\nb")},
		"tokens":          {Token("a"), TokenFile("options.go")},
		"token file":      {TokenFile(missing)},
		"token FIFO":      {TokenFile(fifo)},
		"CA FIFO":         {CAFile(fifo)},
		"CA":              {CAFile(missing)},
		"no CA":           {CAFile("options.go")},
		"certificate":     {Certificate(missing, missing)},
		"key FIFO":        {Certificate("options.go", fifo)},
		"connect timeout": {ConnectTimeout(0)},
	} {
		if _, err := New(options...); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	client := newClient(t)
	for name, ask := range map[string]func() error{
		"key":      func() error { return errOf(client.Acquire(context.Background(), "")) },
		"long key": func() error { return errOf(client.Acquire(context.Background(), strings.Repeat("k", 257))) },
		"line":     func() error { return errOf(client.Acquire(context.Background(), "a\nb")) },
		"UTF-8":    func() error { return errOf(client.Acquire(context.Background(), "\xff")) },
		"wait":     func() error { return errOf(client.Acquire(context.Background(), "k", Wait(-1))) },
		"lease":    func() error { return errOf(client.Acquire(context.Background(), "k", Lease(0))) },
		"max hold": func() error { return errOf(client.Acquire(context.Background(), "k", MaxHold(0))) },
		"limit":    func() error { return errOf(client.Enqueue(context.Background(), "k", Semaphore(0))) },
		"permits": func() error {
			return errOf(client.Enqueue(context.Background(), "k", Semaphore(4), Permits(0)))
		},
		"many permits": func() error {
			return errOf(client.Acquire(context.Background(), "k", Permits(5), Semaphore(4)))
		},
		"whose permits": func() error {
			return errOf(client.Acquire(context.Background(), "k", Permits(2)))
		},
		"shared semaphore": func() error {
			return errOf(client.Acquire(context.Background(), "k", Semaphore(4), Shared()))
		},
		"channel":   func() error { return errOf(client.Publish(context.Background(), "a.*", "x")) },
		"payload":   func() error { return errOf(client.Publish(context.Background(), "a", " ")) },
		"two lines": func() error { return errOf(client.Publish(context.Background(), "a", "x\ny")) },
		"pattern":   func() error { return errOf(client.Listen(context.Background(), "a.>.b")) },
		"group":     func() error { return errOf(client.Listen(context.Background(), "a", Group(" g"))) },
	} {
		if err := ask(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func errOf[T any](_ T, err error) error { return err }

func TestErrorsSayWhatWhereAndWhy(t *testing.T) {
	for want, err := range map[string]error{
		`lockd: acquire "k" at a:1: the server cannot be reached: refused`: &Error{Op: "acquire", Key: "k", Server: "a:1", Kind: ErrUnreachable, Err: errors.New("refused")},
		`lockd: invalid: why`: invalid("why"),
		`lockd: acquire "k": not acquired within 2s, held by ann@build`:         &NotAcquiredError{Key: "k", Waited: 2 * time.Second, Client: "ann@build", Holder: "tcp:3"},
		`lockd: "k" under fence 7 is lost: the server says that it was revoked`: &LostError{Key: "k", Fence: 7, Cause: LossRevoked},
		`lockd: "k" under fence 7 is lost: the server says: moved`:              &LostError{Key: "k", Fence: 7, Cause: "moved"},
	} {
		if err.Error() != want {
			t.Errorf("%q, not %q", err, want)
		}
	}
}

func TestTheSearchGoesOnlyWhereItWasSent(t *testing.T) {
	c := &cluster{members: []*endpoint{{address: "a:6388"}, {address: "b:6388"}, {address: "c:6388"}}}
	notLeader := func(named string) error { return &Error{Kind: ErrNotLeader, leader: named} }

	way := newSearch(c)
	way.moveOn(notLeader("c:6388"), 0)
	if way.here != 2 {
		t.Errorf("it went to %d, not to whom it was sent", way.here)
	}
	way.moveOn(notLeader("stranger:1"), 0)
	if way.here != 1 {
		t.Errorf("it went to %d, not to who was left", way.here)
	}
	way.moveOn(notLeader("a:6388"), 50)
	if way.here != 0 || way.notBefore != 50 {
		t.Errorf("the second round begins with %d at %d", way.here, way.notBefore)
	}
	if err := way.verdict(); !errors.Is(err, ErrNotLeader) || !strings.Contains(err.Error(), `"stranger:1" was named, and was not given`) {
		t.Error(err)
	}
	for i := 0; i < 3; i++ {
		way.moveOn(failure(ErrUnreachable, ""), 100)
	}
	if way.notBefore != instant(100).add(pauseMinAmong) || way.isHopeless {
		t.Errorf("the third round begins at %d", way.notBefore)
	}
	for i := 0; i < 3; i++ {
		way.moveOn(failure(ErrUntrusted, ""), 100)
	}
	if !way.isHopeless || !errors.Is(way.verdict(), ErrUntrusted) {
		t.Error("there is hope where there is none")
	}
}
