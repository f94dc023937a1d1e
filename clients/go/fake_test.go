package lockd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// What the client does with servers that are older, newer, slow, wrong or gone.

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

func TestAnOlderServerIsAskedAgainWithoutAName(t *testing.T) {
	t.Parallel()
	server := startFake(t, func(p *peer) {
		if p.number == 0 {
			p.expect("client")
			p.say("error")
			return
		}
		if argument := p.expect("l"); argument != "0" {
			t.Errorf("%q", argument)
		}
		p.grants("30")
		p.serve()
	})
	client := newClient(t, Servers(server.address()))
	for i := 0; i < 2; i++ {
		if _, err := client.TryAcquire(testContext(t), "job"); err != nil {
			t.Fatal(err)
		}
	}
	if server.connections() != 3 {
		t.Errorf("%d connections: what was learned is not remembered", server.connections())
	}
}

func TestTheFileOfTheAuthTokenIsReadForEveryConnection(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	tokens := make(chan string, 2)
	server := startFake(t, func(p *peer) {
		tokens <- p.expect("auth")
		p.say("ok")
		p.greet()
		p.expect("l")
		p.grants("30")
		p.serve()
	})
	var client *Client
	for _, token := range []string{"first", "second"} {
		if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if client == nil {
			client = newClient(t, Servers(server.address()), TokenFile(path))
		}
		mustAcquire(t, client, "job")
		if got := <-tokens; got != token {
			t.Errorf("%q, not %q", got, token)
		}
	}
}

func TestAPlaceIsAskedForAgainByTheSameWord(t *testing.T) {
	t.Parallel()
	words := make(chan string, 2)
	server := startFake(t, func(p *peer) {
		p.greet()
		if p.number == 0 {
			words <- p.expect("se")
			p.say("queued")
			p.expect("sw")
			return
		}
		words <- p.expect("sl")
		p.grants("9")
		p.serve()
	})
	client := newClient(t, Servers(server.address()))
	place, err := client.Enqueue(testContext(t), "pool", Semaphore(2), Lease(9*time.Second), Wait(time.Minute))
	if err != nil || place.Granted() {
		t.Fatal(err)
	}
	held, err := place.Wait(testContext(t))
	if err != nil || held.QueuedAgain() != 1 {
		t.Fatal(err)
	}
	first, second := <-words, <-words
	if !strings.HasPrefix(first, "2 9 as=") || second != "60 "+first {
		t.Errorf("%q and then %q", first, second)
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

func TestALeaseThatNobodyRenewedAnyMoreIsNoSurprise(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]LossCause{"expired": LossMaxHold, "revoked": LossRevoked} {
		said, want := said, want
		t.Run(said, func(t *testing.T) {
			t.Parallel()
			server := startFake(t, func(p *peer) {
				p.greet()
				p.expect("l")
				p.grants("60")
				time.Sleep(silence)
				p.say("lost " + fakeToken + " " + said + " job")
				p.stay()
			})
			client := newClient(t, Servers(server.address()), ReleaseTimeout(100*time.Millisecond))
			held := mustAcquire(t, client, "job", MaxHold(time.Millisecond))
			await(t, "the loss", held.Context().Done())
			var loss *LostError
			if !errors.As(held.Check(), &loss) || loss.Cause != want {
				t.Errorf("%v, and not %s", loss, want)
			}
		})
	}
}

func TestALossThatIsToldBeforeItsGrant(t *testing.T) {
	t.Parallel()
	server := startFake(t, func(p *peer) {
		p.greet()
		p.expect("l")
		p.say("lost " + fakeToken + " revoked job")
		p.grants("60")
		p.stay()
	})
	_, err := newClient(t, Servers(server.address())).Acquire(testContext(t), "job")
	var loss *LostError
	if !errors.As(err, &loss) || loss.Cause != LossRevoked {
		t.Error(err)
	}
}

func TestALossThatIsToldAfterTheRelease(t *testing.T) {
	t.Parallel()
	server := startFake(t, func(p *peer) {
		p.greet()
		p.expect("l")
		p.grants("60")
		p.expect("r")
		p.say("ok")
		p.say("lost " + fakeToken + " expired job")
		p.stay()
	})
	held := mustAcquire(t, newClient(t, Servers(server.address())), "job", OnLost(func(err error) { t.Error(err) }))
	if err := held.Release(); err != nil {
		t.Error(err)
	}
	time.Sleep(silence)
	if context.Cause(held.Context()) != ErrReleased {
		t.Error(context.Cause(held.Context()))
	}
}

func TestARenewalThatIsRefused(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"error", "error_lease_expired"} {
		answer := answer
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			server := startFake(t, func(p *peer) {
				p.greet()
				p.expect("l")
				p.grants("1")
				p.expect("n")
				p.say(answer)
				p.stay()
			})
			held := mustAcquire(t, newClient(t, Servers(server.address())), "job")
			<-held.Context().Done()
			var loss *LostError
			if !errors.As(held.Check(), &loss) || loss.Cause != LossRefused {
				t.Error(held.Check())
			}
		})
	}
}

func TestItRenewsAtAThirdOfTheLease(t *testing.T) {
	t.Parallel()
	asked := make(chan instant, 10)
	server := startFake(t, func(p *peer) {
		p.greet()
		p.expect("l")
		asked <- now()
		p.grants("3")
		for {
			command, _, argument := p.request()
			if command != "n" {
				p.say("ok")
				return
			}
			if argument != fakeToken+" 3" {
				t.Errorf("%q", argument)
			}
			asked <- now()
			p.say("ok 3")
		}
	})
	began := now()
	held := mustAcquire(t, newClient(t, Servers(server.address())), "job", Lease(3*time.Second))
	<-asked
	for i := 1; i <= 2; i++ {
		at := await(t, "a renewal", asked)
		if passed := at.sub(began); passed < time.Duration(i)*time.Second {
			t.Errorf("renewal %d came after %v", i, passed)
		}
	}
	if err := held.Release(); err != nil {
		t.Error(err)
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

func TestARenewalThatIsConfirmedLateRevivesNothing(t *testing.T) {
	t.Parallel()
	released := make(chan bool, 1)
	confirm := make(chan bool)
	server := startFake(t, func(p *peer) {
		p.greet()
		if p.number > 0 { // asked as well, and as silent
			p.stay()
			return
		}
		p.expect("l")
		p.grants("1")
		p.expect("n")
		<-confirm
		p.say("ok 1")
		p.expect("r")
		released <- true
	})
	client := newClient(t, Servers(server.address()))
	began := now()
	held := mustAcquire(t, client, "job")
	if held.Check() != nil {
		t.Error("it is lost already")
	}
	<-held.Context().Done()
	if passed := now().sub(began); passed < time.Second {
		t.Errorf("it was lost after %v", passed)
	}
	close(confirm)
	await(t, "the release of what nobody believes in", released)
	time.Sleep(silence)
	var loss *LostError
	if !errors.As(held.Check(), &loss) || loss.Cause != LossUnsure {
		t.Error(held.Check())
	}
}

func TestAServerThatCannotTellNowIsAskedAgain(t *testing.T) {
	t.Parallel()
	server := startFake(t, func(p *peer) {
		p.greet()
		p.expect("l")
		p.grants("1")
		p.expect("n")
		p.say("error_storage")
		p.expect("n")
		p.say("ok 1")
		p.serve()
	})
	held := mustAcquire(t, newClient(t, Servers(server.address())), "job")
	time.Sleep(1500 * time.Millisecond)
	if err := held.Check(); err != nil {
		t.Error(err)
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

// --- grants that come late ---

func TestAGrantThatComesLateIsRenewedFirst(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"ok 1", "error"} {
		answer := answer
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			server := startFake(t, func(p *peer) {
				p.greet()
				p.expect("l")
				time.Sleep(1100 * time.Millisecond)
				p.grants("1")
				p.expect("n")
				p.say(answer)
				p.serve()
			})
			began := now()
			held, err := newClient(t, Servers(server.address())).Acquire(testContext(t), "job", Lease(time.Second), Wait(time.Second))
			if answer == "error" {
				if !errors.Is(err, ErrLeaseExpired) {
					t.Error(err)
				}
				return
			}
			if err != nil || held.Check() != nil {
				t.Fatal(err)
			}
			if ends := held.certainty.endsAt(); ends.sub(began) < 2*time.Second {
				t.Errorf("certain until %v after the beginning: not by the renewal", ends.sub(began))
			}
		})
	}
}

// --- servers that fail ---

func TestAReplyThatIsCutOffAtAnyByteIsNone(t *testing.T) {
	t.Parallel()
	whole := "ok " + fakeToken + " 30\n"
	for cut := 0; cut < len(whole); cut++ {
		server := startFake(t, func(p *peer) {
			p.greet()
			p.expect("l")
			p.conn.Write([]byte(whole[:cut]))
		})
		_, err := newClient(t, Servers(server.address())).TryAcquire(testContext(t), "job")
		if !errors.Is(err, ErrDisconnected) {
			t.Errorf("cut at %d: %v", cut, err)
		}
		server.stop()
	}
}

func TestAReplyInPiecesIsOne(t *testing.T) {
	t.Parallel()
	server := startFake(t, func(p *peer) {
		p.greet()
		p.expect("l")
		for _, b := range []byte("sig a b\r\nok " + fakeToken + " 30\r\n") {
			p.conn.Write([]byte{b})
			time.Sleep(time.Millisecond)
		}
		p.serve()
	})
	mustAcquire(t, newClient(t, Servers(server.address())), "job")
}

func TestAConnectionThatBreaksWhileWaitingIsReplaced(t *testing.T) {
	t.Parallel()
	words := make(chan string, 2)
	server := startFake(t, func(p *peer) {
		p.greet()
		words <- p.expect("l")
		if p.number == 0 {
			return
		}
		p.grants("30")
		p.serve()
	})
	held := mustAcquire(t, newClient(t, Servers(server.address())), "job", Wait(time.Minute))
	if held.QueuedAgain() != 1 {
		t.Errorf("queued again %d times", held.QueuedAgain())
	}
	if first, second := <-words, <-words; first != second {
		t.Errorf("%q and then %q: that is another acquisition", first, second)
	}
}

func TestAnAnswerThatMakesNoSenseIsSaidToBe(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"HTTP/1.1 400 Bad Request", "ok", "ok 30", strings.Repeat("x", lineSizeMax+1)} {
		server := startFake(t, func(p *peer) {
			p.greet()
			p.expect("l")
			p.say(answer)
			p.stay()
		})
		_, err := newClient(t, Servers(server.address())).Acquire(testContext(t), "job")
		if !errors.Is(err, ErrGarbled) || len(err.Error()) > 300 {
			t.Errorf("%.40q: %v", answer, err)
		}
	}
}

func TestAServerThatEndsTheWaitTooEarlyIsAskedAgain(t *testing.T) {
	t.Parallel()
	server := startFake(t, func(p *peer) {
		p.greet()
		for {
			if command, _, _ := p.request(); command == "" {
				return
			}
			p.say("timeout")
		}
	})
	began := now()
	_, err := newClient(t, Servers(server.address())).Acquire(testContext(t), "job", Wait(400*time.Millisecond))
	var notAcquired *NotAcquiredError
	if !errors.As(err, &notAcquired) || now().sub(began) < 400*time.Millisecond {
		t.Error(err)
	}
}

func TestAServerThatStopsIsAskedAgainAndOneThatRefusesIsNot(t *testing.T) {
	t.Parallel()
	stopping := startFake(t, func(p *peer) {
		p.greet()
		p.expect("l")
		if p.number == 0 {
			p.say("error")
			return
		}
		p.grants("30")
		p.serve()
	})
	if held := mustAcquire(t, newClient(t, Servers(stopping.address())), "job"); held.QueuedAgain() != 1 {
		t.Error(held.QueuedAgain())
	}
	draining := startFake(t, func(p *peer) {
		p.greet()
		p.expect("l")
		p.say("error_draining")
	})
	_, err := newClient(t, Servers(draining.address())).Acquire(testContext(t), "job", Wait(300*time.Millisecond))
	if !errors.Is(err, ErrNotAcquired) || !errors.Is(err, ErrDraining) {
		t.Error(err)
	}
	refusing := startFake(t, func(p *peer) {
		p.greet()
		p.expect("l")
		p.say("error")
	})
	if _, err := newClient(t, Servers(refusing.address())).Acquire(testContext(t), "job"); !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
	denying := startFake(t, func(p *peer) {
		p.greet()
		p.expect("l")
		p.say("error_denied")
	})
	if _, err := newClient(t, Servers(denying.address())).Acquire(testContext(t), "job"); !errors.Is(err, ErrDenied) {
		t.Error(err)
	}
}

func TestAServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	server := startFake(t, (*peer).stay)
	client := newClient(t, Servers(server.address()), ConnectTimeout(200*time.Millisecond))
	began := now()
	if _, err := client.TryAcquire(testContext(t), "job"); !errors.Is(err, ErrNoReply) || now().sub(began) < 200*time.Millisecond {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(testContext(t))
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := newClient(t, Servers(server.address())).Acquire(ctx, "job"); !errors.Is(err, context.Canceled) {
		t.Error(err)
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

func TestWhoIsInTheWayIsSaidWhereTheServerTells(t *testing.T) {
	t.Parallel()
	server := startFake(t, func(p *peer) {
		p.greet()
		p.expect("l")
		p.say("timeout")
		command, path, query := p.request()
		if command != "api" || path != "GET /v1/locks" || query != `{"key":"job"}` {
			t.Error(command, path, query)
		}
		p.say(`ok 200 {"locks":[{"kind":"semaphore","key":"job","waiters":9,"holds":[{"holder":"x"}]},` +
			`{"kind":"lock","key":"job","waiters":2,"holds":[{"holder":"tcp:17","client":"ann@build-7:4711"}]}]}`)
	})
	_, err := newClient(t, Servers(server.address())).TryAcquire(testContext(t), "job")
	var got *NotAcquiredError
	if !errors.As(err, &got) || got.Holder != "tcp:17" || got.Client != "ann@build-7:4711" || got.Waiters != 2 {
		t.Error(err)
	}
	silent := startFake(t, func(p *peer) {
		p.greet()
		p.expect("l")
		p.say("timeout")
		p.expect("api")
		p.say("error")
	})
	if _, err := newClient(t, Servers(silent.address())).TryAcquire(testContext(t), "job"); !errors.Is(err, ErrNotAcquired) {
		t.Error(err)
	}
}

// --- clusters ---

// member is one server of a cluster: leads says whether it does, and names who else.
func startMember(t *testing.T, leads *atomic.Bool, names func() string) *fakeServer {
	return startFake(t, func(p *peer) {
		for {
			command, _, _ := p.request()
			switch {
			case command == "":
				return
			case command == "client":
				p.say("ok")
			case !leads.Load():
				p.say("error_not_leader " + names())
			case command == "l":
				p.grants("2")
			case command == "n":
				p.say("ok 2")
			default:
				p.say("ok")
			}
		}
	})
}

func TestTheLeaderIsLookedForAmongThoseThatWereGiven(t *testing.T) {
	t.Parallel()
	var yes, no atomic.Bool
	yes.Store(true)
	stranger := startMember(t, &yes, nil)
	leader := startMember(t, &yes, nil)
	follower := startMember(t, &no, leader.address)
	misled := startMember(t, &no, stranger.address)

	client := newClient(t, Cluster(follower.address(), misled.address(), leader.address()))
	held := mustAcquire(t, client, "job")
	if err := held.Release(); err != nil {
		t.Error(err)
	}
	if misled.connections() != 0 {
		t.Error("it asked the next, not the one that was named")
	}
	client = newClient(t, Cluster(misled.address(), leader.address()))
	if _, err := client.TryAcquire(testContext(t), "job"); err != nil {
		t.Error(err)
	}
	client = newClient(t, Cluster(misled.address(), follower.address()), ConnectTimeout(300*time.Millisecond))
	_, err := client.TryAcquire(testContext(t), "job")
	if !errors.Is(err, ErrNotLeader) || !strings.Contains(err.Error(), `" was named, and was not given`) {
		t.Error(err)
	}
	if stranger.connections() != 0 {
		t.Error("it asked a server that was not given")
	}
}

func TestAHeldLockIsHeldOnByTheNextLeader(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"gone", "deposed", "silent"} {
		how := how
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			var first, second atomic.Bool
			var renewals atomic.Int32
			var silent atomic.Bool
			first.Store(true)
			next := startFake(t, func(p *peer) {
				for {
					command, _, argument := p.request()
					switch {
					case command == "":
						return
					case command == "client":
						p.say("ok")
					case !second.Load():
						p.say("error_not_leader -")
					case command == "n":
						if argument != fakeToken+" 2" {
							t.Errorf("%q", argument)
						}
						renewals.Add(1)
						p.say("ok 2")
					default:
						p.say("ok")
					}
				}
			})
			old := startFake(t, func(p *peer) {
				for {
					command, _, _ := p.request()
					switch {
					case command == "":
						return
					case silent.Load():
					case command == "client":
						p.say("ok")
					case !first.Load():
						p.say("error_not_leader -")
					case command == "l":
						p.grants("2")
					case command == "n":
						p.say("ok 2")
					default:
						p.say("ok")
					}
				}
			})
			client := newClient(t, Cluster(next.address(), old.address()))
			held := mustAcquire(t, client, "job")
			first.Store(false)
			switch how {
			case "gone":
				old.stop()
			case "silent":
				silent.Store(true)
			}
			time.Sleep(200 * time.Millisecond) // an election
			second.Store(true)
			eventually(t, "three renewals", func() bool { return renewals.Load() >= 3 })
			if err := held.Check(); err != nil {
				t.Error(err)
			}
			if err := held.Release(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAWaitGoesOnAtTheNextLeader(t *testing.T) {
	t.Parallel()
	var second atomic.Bool
	next := startMember(t, &second, func() string { return "-" })
	queued := make(chan bool, 1)
	old := startFake(t, func(p *peer) {
		p.greet()
		p.expect("barrier")
		p.say("ok")
		p.expect("l")
		queued <- true
		p.stay()
	})
	client := newClient(t, Cluster(old.address(), next.address()))
	waiting := acquireInBackground(testContext(t), client, "job", Wait(time.Minute))
	await(t, "a place in the queue", queued)
	old.stop()
	time.Sleep(100 * time.Millisecond)
	second.Store(true)
	if got := await(t, "the grant", waiting); got.err != nil || got.held.QueuedAgain() != 1 {
		t.Error(got.err)
	}
}

func TestASignalIsOfferedToTheNextLeader(t *testing.T) {
	t.Parallel()
	var first, second atomic.Bool
	first.Store(true)
	signals := func(leads *atomic.Bool, name string) *fakeServer {
		return startFake(t, func(p *peer) {
			for {
				command, _, _ := p.request()
				switch {
				case command == "":
					return
				case command == "client":
					p.say("ok")
				case !leads.Load():
					p.say("error_not_leader -")
				case command == "signal":
					p.say("ok " + name)
				default:
					p.say("ok")
				}
			}
		})
	}
	client := newClient(t, Cluster(signals(&first, "1").address(), signals(&second, "2").address()))
	for want := 1; want <= 2; want++ {
		if got, err := client.Publish(testContext(t), "a", "x"); err != nil || got != want {
			t.Error(got, err)
		}
		first.Store(false)
		second.Store(true)
	}
}

// --- signals ---

func TestASignalThatMayHaveBeenSentIsNotSentAgain(t *testing.T) {
	t.Parallel()
	var sent atomic.Int32
	server := startFake(t, func(p *peer) {
		p.greet()
		p.expect("signal")
		sent.Add(1)
	})
	_, err := newClient(t, Servers(server.address())).Publish(testContext(t), "a", "x")
	if !errors.Is(err, ErrDisconnected) || sent.Load() != 1 {
		t.Error(sent.Load(), err)
	}
}

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

func TestAListenerEndsWhereItIsRefused(t *testing.T) {
	t.Parallel()
	server := startFake(t, func(p *peer) {
		p.greet()
		p.expect("listen")
		if p.number == 0 {
			p.say("ok")
			p.say("sig a last")
		} else {
			p.say("error_denied")
		}
	})
	listener, err := newClient(t, Servers(server.address())).Listen(testContext(t), "a")
	if err != nil {
		t.Fatal(err)
	}
	<-listener.ended
	if got, err := listener.Next(testContext(t)); err != nil || got.Payload != "last" {
		t.Error(got, err)
	}
	if _, err := listener.Next(testContext(t)); !errors.Is(err, ErrDenied) {
		t.Error(err)
	}
}
