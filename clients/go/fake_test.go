package lockd

import (
	"context"
	"errors"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// What callers in Go see of a server that plays a script: errors, contexts, goroutines, and
// connections that are kept. What all clients do at such servers is in clients/conformance.

func TestAServerThatKnowsTheClientIsToldWhoAsks(t *testing.T) {
	t.Parallel()
	word := regexp.MustCompile(`^0 7 as=[0-9a-f]{16}$`)
	server := startFake(t, func(p *peer) {
		command, name, note := p.request()
		if command != "client" || name != "billing" || note != "nightly" {
			t.Error(command, name, note)
		}
		p.say("ok")
		if argument := p.expect("l"); !word.MatchString(argument) {
			t.Errorf("%q", argument)
		}
		p.grants("7")
		p.serve()
	})
	client := newClient(t, Servers(server.address()), Name("billing"), Note("nightly"))
	held, err := client.TryAcquire(testContext(t), "job", Lease(6500*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if held.Fence() != fakeFence || held.Token() != fakeToken || held.Lease() != 7*time.Second || held.Key() != "job" {
		t.Error(held.Fence(), held.Token(), held.Lease(), held.Key())
	}
}

func TestTheDefaultNameIsTheUsersAndNotTheArguments(t *testing.T) {
	got := defaultIdentity()
	if !regexp.MustCompile(`^.+@.+:\d+$`).MatchString(got.name) || strings.Contains(got.note, "-test") {
		t.Errorf("%+v", got)
	}
	if long := cleaned(strings.Repeat("é", 200) + "\n"); !isName(long) {
		t.Errorf("%q", long)
	}
}

// --- losses ---

func TestALossThatTheServerTells(t *testing.T) {
	t.Parallel()
	tell := make(chan string, 1)
	server := startFake(t, func(p *peer) {
		p.greet()
		p.expect("l")
		p.grants("60")
		p.say("sig a.b for somebody else")
		p.say("lost 0000000000000006ffffffffffffffff expired job")
		p.say(<-tell)
		p.stay()
	})
	client := newClient(t, Servers(server.address()), ReleaseTimeout(100*time.Millisecond))
	called := make(chan error, 2)
	held := mustAcquire(t, client, "job", OnLost(func(err error) { called <- err }))
	time.Sleep(silence)
	if err := held.Check(); err != nil {
		t.Fatal(err)
	}
	tell <- "lost " + fakeToken + " revoked job"
	<-held.Context().Done()
	err := await(t, "the call", called)
	var loss *LostError
	if !errors.As(err, &loss) || loss.Cause != LossRevoked || loss.Key != "job" || loss.Fence != fakeFence {
		t.Error(err)
	}
	for what, got := range map[string]error{"cause": context.Cause(held.Context()), "check": held.Check(), "release": held.Release()} {
		if got != err {
			t.Errorf("%s: %v", what, got)
		}
	}
	if len(called) != 0 {
		t.Error("it was told twice")
	}
}

func TestCertaintyCountsFromWhenTheRequestWasSent(t *testing.T) {
	t.Parallel()
	delay := 700 * time.Millisecond
	server := startFake(t, func(p *peer) {
		p.greet()
		p.expect("l")
		time.Sleep(delay)
		p.grants("3")
		p.expect("n")
		time.Sleep(delay)
		p.say("ok 3")
		p.stay()
	})
	client := newClient(t, Servers(server.address()), ReleaseTimeout(50*time.Millisecond))
	held := mustAcquire(t, client, "job")
	first := held.certainty.endsAt()
	if left := first.sub(now()); left > 3*time.Second-delay {
		t.Errorf("certain for %v of 3 s, %v after the request", left, delay)
	}
	eventually(t, "a renewal", func() bool { return held.certainty.endsAt() != first })
	if left := held.Remaining(); left <= 0 || left > 3*time.Second-delay {
		t.Errorf("certain for %v of 3 s, %v after the renewal was sent", left, delay)
	}
}

func TestAServerThatIsSilentIsAskedOnAnotherConnection(t *testing.T) {
	t.Parallel()
	homeEnded := make(chan bool, 1)
	renewed := make(chan string, 10)
	server := startFake(t, func(p *peer) {
		p.greet()
		if p.number == 0 {
			p.expect("l")
			p.grants("2")
			p.stay()
			homeEnded <- true
			return
		}
		for {
			command, _, argument := p.request()
			if command == "" {
				return
			}
			renewed <- command + " " + argument
			p.say("ok 2")
		}
	})
	held := mustAcquire(t, newClient(t, Servers(server.address())), "job")
	for i := 0; i < 3; i++ {
		if got := await(t, "a renewal", renewed); got != "n "+fakeToken+" 2" {
			t.Error(got)
		}
	}
	if len(homeEnded) != 0 {
		t.Error("the connection on which it was granted was closed: that releases")
	}
	if err := held.Release(); err != nil {
		t.Error(err)
	}
	await(t, "the end of the first connection", homeEnded)
}

// --- servers that fail ---

func TestAWaitThatEndsAtAServerThatDrainsSaysBoth(t *testing.T) {
	t.Parallel()
	server := startFake(t, func(p *peer) {
		p.greet()
		p.expect("l")
		p.say("error_draining")
	})
	client := newClient(t, Servers(server.address()))
	_, err := client.Acquire(testContext(t), "job", Wait(300*time.Millisecond))
	if !errors.Is(err, ErrNotAcquired) || !errors.Is(err, ErrDraining) {
		t.Error(err)
	}
}

// A context that is cancelled before the server has said who it is.
func TestACallThatIsGivenUpEndsWithTheErrorOfItsContext(t *testing.T) {
	t.Parallel()
	server := startFake(t, (*peer).stay)
	ctx, cancel := context.WithCancel(testContext(t))
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := newClient(t, Servers(server.address())).Acquire(ctx, "job"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAnErrorShowsLittleOfAnAnswerThatMakesNoSense(t *testing.T) {
	_, err := parseGrant(reply{line: strings.Repeat("x", lineSizeMax)}, 0)
	if !errors.Is(err, ErrGarbled) || len(err.Error()) > 300 {
		t.Errorf("%.400v", err)
	}
}

func TestTheTimeToConnectIsNotThatOfTheCaller(t *testing.T) {
	t.Parallel()
	server := startFake(t, (*peer).stay)
	client := newClient(t, Servers(server.address()), TLS(nil), ConnectTimeout(100*time.Millisecond))
	_, err := client.TryAcquire(testContext(t), "job")
	if !errors.Is(err, ErrUnreachable) || errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	server := startFake(t, func(p *peer) {
		p.greet()
		for {
			switch command, _, _ := p.request(); command {
			case "":
				return
			case "l":
				p.grants("30")
			case "e":
				p.say("queued")
			case "signal":
				p.say("ok 0")
			default:
				p.say("ok")
			}
		}
	})
	client := newClient(t, Servers(server.address()))
	for i := 0; i < 5; i++ {
		mustAcquire(t, client, "job")
		if _, err := client.Enqueue(testContext(t), "job"); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Listen(testContext(t), "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Publish(testContext(t), "a", "x"); err != nil {
			t.Fatal(err)
		}
	}
	released := mustAcquire(t, newClient(t, Servers(server.address())), "job")
	if err := errors.Join(client.Close(), released.Release()); err != nil {
		t.Error(err)
	}
	server.stop()
	eventually(t, "no goroutine more than before", func() bool { return runtime.NumGoroutine() <= before })
}

// --- signals ---

func TestAListenerPingsAndLeavesAServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	groups := make(chan string, 10)
	var pings atomic.Int32
	server := startFake(t, func(p *peer) {
		p.greet()
		groups <- p.expect("listen")
		p.say("ok")
		p.say("sig a.b one of the pushed")
		if p.number == 0 {
			p.stay()
			return
		}
		for {
			if command, _, _ := p.request(); command != "ping" {
				return
			}
			pings.Add(1)
			p.say("ok")
		}
	})
	client := newClient(t, Servers(server.address()), ReplyTimeout(200*time.Millisecond))
	client.settings.pingInterval = 100 * time.Millisecond
	listener, err := client.Listen(testContext(t), "a.*", Group("g"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 2; i++ {
		if got := await(t, "a listener", groups); got != "g" {
			t.Error(got)
		}
		if got, err := listener.Next(testContext(t)); err != nil || got != (Signal{"a.b", "one of the pushed"}) {
			t.Error(got, err)
		}
	}
	eventually(t, "two pings", func() bool { return pings.Load() >= 2 })
	listener.Close()
}
