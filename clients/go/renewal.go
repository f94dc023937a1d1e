package lockd

import (
	"context"
	"errors"
	"time"
)

const (
	renewPauseMin = 50 * time.Millisecond
	renewPauseMax = time.Second
)

// renewal keeps one lock renewed, without waiting: the renewer calls advance.
//
//	at home ──(a third of the lease)──> asking ──ok──> at home
//	                                      │
//	     the connection ends, the server  │
//	     does not lead, or is overdue     v
//	                   away: a new connection, again and again ──ok──> home is there
//
// Home is the connection on which it was granted; once that is gone, the one on which it was renewed.
// To leave home would be to release, so it is kept open while its server is merely slow, in case it
// answers after all.
//
// A server of a cluster that replies that it does not lead is left, and home is gone with it. Once
// home is gone, a server may have released the lock: it is suspect from the first reconnection that
// does not renew it, also one that reaches only followers, until one does. It is lost when a server
// refuses this client.
//
// It ends when a server that leads says that the token names nothing, when a server says that the
// lock is lost, or when the certainty ends before a renewal was confirmed.
type renewal struct {
	held *Held
	poke func() // has advance called soon; any goroutine may call it

	way         *search
	home        talk
	visit       talk
	attempt     *attempt // on the way to a visit; nil: none
	isAway      bool     // the visit counts, or is to be made: home is gone or overdue
	renewAt     instant
	confirmedAt instant // when that was asked which was last confirmed
	pause       time.Duration
	isRefused   bool

	next  instant // when to call advance
	index int     // in the renewer's queue
}

// talk is one server that is asked.
type talk struct {
	conn     *conn     // nil: none
	member   int       // of the cluster
	asked    *exchange // the renewal that has no reply yet; nil: none
	isProven bool      // the lock was granted or renewed on it
}

// attempt is a connection that is being made.
type attempt struct {
	member int
	cancel context.CancelFunc
	done   chan struct{}
	conn   *conn
	err    error
}

func newRenewal(held *Held, on *conn) *renewal {
	member := held.cluster.indexOf(on.server)
	r := &renewal{
		held:        held,
		way:         newSearchAt(held.cluster, member),
		home:        talk{conn: on, member: member, isProven: true},
		confirmedAt: held.grant.sentAt,
	}
	r.renewNotBefore(held.grant.renewAt())
	return r
}

// advance does what can be done now. Once it has said that the lock is lost it is done with.
func (r *renewal) advance(now instant) (cause LossCause, isLost bool) {
	if cause, isLost := r.toldLoss(); isLost {
		return cause, true
	}
	if !r.held.certainty.lasts(now) {
		return r.giveUp(), true
	}
	for _, talk := range []*talk{&r.home, &r.visit} {
		if cause, isLost := r.hear(talk, now); isLost {
			return cause, true
		}
	}
	if r.isAway {
		r.goOn(now)
	} else if now >= r.overdueAt(&r.home) {
		r.goAway(failure(ErrNoReply, ""), now)
	}
	if r.isRefused {
		return LossUnauthorized, true
	}
	if talk := r.current(); talk.conn != nil && talk.asked == nil && now >= r.renewAt {
		talk.asked = talk.conn.begin(r.held.wish.renewLines(r.held.grant), lineSizeMax)
	}
	return "", false
}

// deadline is when to advance if nothing comes before.
func (r *renewal) deadline() instant {
	next := r.held.certainty.endsAt()
	talk := r.current()
	switch {
	case talk.conn != nil && talk.asked != nil:
		return min(next, r.overdueAt(talk))
	case talk.conn != nil:
		return min(next, r.renewAt)
	case r.attempt == nil && r.renewAt != never:
		return min(next, r.way.notBefore)
	default:
		return next
	}
}

func (r *renewal) current() *talk {
	if r.isAway {
		return &r.visit
	}
	return &r.home
}

func (r *renewal) toldLoss() (LossCause, bool) {
	for _, talk := range []*talk{&r.home, &r.visit} {
		if talk.conn == nil {
			continue
		}
		cause, isLost := talk.conn.lossOf(r.held.grant.token)
		if cause == LossExpired && r.held.isPastMaxHold() {
			return LossMaxHold, true
		}
		if isLost {
			return cause, true
		}
	}
	return "", false
}

func (r *renewal) hear(talk *talk, now instant) (cause LossCause, isLost bool) {
	if talk.conn == nil {
		return "", false
	}
	if talk.asked != nil && talk.asked.isDone() {
		answer := talk.asked.reply()
		talk.asked = nil
		if cause, isLost := r.judge(talk, answer, now); isLost {
			return cause, true
		}
	}
	if talk.conn != nil && !talk.conn.isOpen() {
		// A connection that ends may release, which only a renewal could tell.
		if now >= r.held.stopAt {
			r.held.certainty.end(now)
			return LossMaxHold, true
		}
		r.leave(talk, now)
	}
	return "", false
}

func (r *renewal) judge(talk *talk, answer reply, now instant) (cause LossCause, isLost bool) {
	// Home has answered after all, and somebody else has confirmed what was asked later.
	if answer.sentAt < r.confirmedAt {
		return "", false
	}
	remaining, err := r.held.wish.parseRenewal(answer, r.held.grant)
	switch {
	case err == nil:
		return r.confirm(talk, answer.sentAt, remaining, now)
	case saysGone(err):
		// Of several keys the others may be held.
		r.sayRelease()
		return LossRefused, true
	case movesOn(err) && !(errors.Is(err, ErrNotLeader) && r.held.cluster.isAlone()):
		r.held.note(err)
		talk.conn.end(err)
	default:
		// It cannot tell now.
		r.held.note(err)
		r.doubt(err)
		r.pause = min(max(2*r.pause, renewPauseMin), renewPauseMax)
		r.renewNotBefore(now.add(r.pause))
	}
	return "", false
}

func (r *renewal) confirm(
	talk *talk, sentAt instant, remaining time.Duration, now instant,
) (cause LossCause, isLost bool) {
	if !r.held.certainty.extend(now, sentAt.add(remaining)) {
		return r.giveUp(), true
	}
	r.confirmedAt = sentAt
	talk.isProven = true
	r.held.note(nil)
	r.renewNotBefore(sentAt.add(remaining / 3))
	r.pause = 0
	r.way.found(talk.member)
	if talk == &r.home && r.isAway {
		r.isAway = false
		r.dropVisit()
	}
	r.settle()
	return "", false
}

// renewNotBefore leaves the lock to its lease when it has been held for long enough.
func (r *renewal) renewNotBefore(at instant) {
	r.renewAt = at
	if at >= r.held.stopAt {
		r.renewAt = never
	}
}

func (r *renewal) leave(left *talk, now instant) {
	why := left.conn.err()
	wasCurrent, wasProven := left == r.current(), left.isProven
	*left = talk{}
	if wasCurrent && wasProven {
		r.goAway(why, now)
		return
	}
	if wasCurrent {
		r.fail(why, now)
		return
	}
	// Home is gone, and a server may release with it.
	r.renewNotBefore(now)
	r.settle()
}

// settle makes the connection on which the lock was renewed home, once home is gone.
func (r *renewal) settle() {
	if r.home.conn == nil && r.visit.isProven {
		r.home, r.visit, r.isAway = r.visit, talk{}, false
	}
}

// goAway goes to the next server, which is asked as soon as it is there.
func (r *renewal) goAway(why error, now instant) {
	r.isAway = true
	r.renewNotBefore(now)
	r.way.moveOn(why, now)
}

// fail goes away from a try that did not renew.
func (r *renewal) fail(why error, now instant) {
	r.held.note(why)
	r.goAway(why, now)
	r.doubt(why)
}

// doubt is for a lock that was not renewed after a server may have released it with its connection.
func (r *renewal) doubt(why error) {
	for _, talk := range []*talk{&r.home, &r.visit} {
		if talk.conn != nil && talk.isProven {
			return
		}
	}
	if _, isSet := r.held.wish.(*set); isSet {
		return // held by a name
	}
	if isDefinite(why) && (errors.Is(why, ErrDenied) || r.way.isHopeless) {
		r.isRefused = true
	}
	r.held.certainty.suspect()
}

// goOn goes on with a visit that is to be made, is under way or has begun.
func (r *renewal) goOn(now instant) {
	switch {
	case r.attempt != nil:
		r.arrive(now)
	case r.visit.conn != nil && now >= r.overdueAt(&r.visit):
		r.dropVisit()
		r.fail(failure(ErrNoReply, ""), now)
	case r.visit.conn == nil && r.renewAt != never && now >= r.way.notBefore:
		r.setOut(now)
	}
}

func (r *renewal) setOut(now instant) {
	cluster := r.held.cluster
	if r.home.conn != nil && r.home.member == r.way.here && !cluster.isAlone() {
		// Its answer is what is waited for.
		r.goAway(failure(ErrNoReply, ""), now)
		return
	}
	left := r.held.certainty.endsAt().sub(now)
	limit := min(cluster.settings.connectTimeout, r.patience(), cluster.attemptTimeout(left))
	ctx, cancel := context.WithCancel(context.Background())
	going := &attempt{member: r.way.here, cancel: cancel, done: make(chan struct{})}
	r.attempt = going
	go func(member *endpoint) {
		going.conn, going.err = member.open(ctx, now.add(limit), nil)
		close(going.done)
		r.poke()
	}(r.way.member())
}

func (r *renewal) arrive(now instant) {
	going := r.attempt
	select {
	case <-going.done:
	default:
		return
	}
	r.attempt = nil
	going.cancel()
	if going.err != nil {
		r.fail(going.err, now)
		return
	}
	r.visit = talk{conn: going.conn, member: going.member}
	going.conn.watchBy(r.poke)
	// What it has said before it was watched is heard now.
	if !going.conn.isOpen() {
		r.leave(&r.visit, now)
	}
}

func (r *renewal) dropVisit() {
	if r.visit.conn != nil {
		r.visit.conn.close()
		r.visit = talk{}
	}
	if r.attempt != nil {
		r.attempt.abandon()
		r.attempt = nil
	}
}

// abandon closes the connection if it is made after all.
func (a *attempt) abandon() {
	a.cancel()
	go func() {
		<-a.done
		if a.conn != nil {
			a.conn.close()
		}
	}()
}

// giveUp releases what the server may keep a little longer than we believed in it.
func (r *renewal) giveUp() LossCause {
	r.sayRelease()
	return r.held.lossByClock()
}

func (r *renewal) sayRelease() {
	r.connections().say(r.held.wish.releaseLines(r.held.grant))
}

// overdueAt is when others are asked as well.
func (r *renewal) overdueAt(talk *talk) instant {
	if talk.asked == nil {
		return never
	}
	return talk.asked.sentAt.add(r.held.grant.lease / 4)
}

// patience is for what must not take most of the lease.
func (r *renewal) patience() time.Duration { return max(r.held.grant.lease/4, time.Second) }

// connections are those of a lock: the one to ask, and another that is kept open meanwhile. Either
// may be nil.
type connections struct{ current, other *conn }

func (r *renewal) connections() connections {
	awaitsHome := r.home.asked != nil && r.home.asked.sentAt > r.confirmedAt
	if awaitsHome || !r.isAway {
		return connections{current: r.home.conn, other: r.visit.conn}
	}
	return connections{current: r.visit.conn, other: r.home.conn}
}

// say sends a request, and waits for no answer.
func (c connections) say(lines string) {
	for _, on := range []*conn{c.current, c.other} {
		if on != nil {
			on.begin(lines, lineSizeMax)
		}
	}
}

func (c connections) close() {
	for _, on := range []*conn{c.current, c.other} {
		if on != nil {
			on.close()
		}
	}
}

// stop ends all that is under way, and returns the connections.
func (r *renewal) stop() connections {
	if r.attempt != nil {
		r.attempt.abandon()
		r.attempt = nil
	}
	return r.connections()
}
