package lockd

import (
	"context"
	"time"
)

// attemptMin is what an attempt to connect may take at the very end of a wait.
const attemptMin = time.Second

// errand is what is asked of the server that leads.
type errand struct {
	// ask has a connection to that server, which is its own if it succeeds, and is closed if it
	// fails.
	ask func(*conn) error
	// giveUpAt is when there is a last attempt. If that is over already, there is one.
	giveUpAt instant
	onSignal func(Signal) // of the connections; nil: none is expected
}

// atLeader runs an errand, and again, at whichever server leads then, for as long as it fails in a
// way in which another server may not, or after a pause it may not.
func (c *cluster) atLeader(ctx context.Context, e errand) error {
	way := newSearch(c)
	hasTime := now() < e.giveUpAt
	for {
		if err := pause(ctx, min(way.notBefore, e.giveUpAt)); err != nil {
			return err
		}
		patience := c.settings.connectTimeout
		if hasTime {
			patience = min(patience, max(e.giveUpAt.sub(now()), attemptMin))
		}
		err := c.runAt(ctx, way, e, patience)
		if err == nil || ctx.Err() != nil || !movesOn(err) {
			return err
		}
		way.moveOn(err, now())
		if way.isHopeless || now() >= e.giveUpAt {
			return way.verdict()
		}
	}
}

// runAt runs an errand where the search is, if that server leads: of a cluster, only who leads
// answers a barrier.
func (c *cluster) runAt(ctx context.Context, way *search, e errand, patience time.Duration) error {
	until := now().add(c.attemptTimeout(patience))
	opened, err := way.member().open(ctx, until, e.onSignal)
	if err != nil {
		return err
	}
	if !c.isAlone() {
		err = opened.command(ctx, barrierLines, until)
	}
	if err == nil {
		c.leader.Store(int32(way.here))
		err = opened.at(e.ask(opened))
	}
	if err != nil {
		opened.close()
	}
	return err
}

// searchUntil is when a call that does not wait gives up: an election is waited for.
func (c *cluster) searchUntil() instant {
	if c.isAlone() {
		return now()
	}
	return now().add(c.settings.connectTimeout)
}

// attemptTimeout is what one server may take of the time for all, with a second look at one.
func (c *cluster) attemptTimeout(whole time.Duration) time.Duration {
	if c.isAlone() {
		return whole
	}
	return whole / time.Duration(len(c.members)+1)
}

// question is what any connection may ask, and whoever leads may answer.
type question struct {
	lines    string
	deadline instant
	check    func(reply) error // what an answer says if it is no success
}

// askByToken asks, first on the connection that is there, if there is one, and then on others until
// the deadline.
func (c *cluster) askByToken(ctx context.Context, home *conn, q question) (reply, error) {
	way := newSearch(c)
	if home != nil && home.isOpen() {
		until := q.deadline
		if !c.isAlone() {
			until = now().add(q.deadline.sub(now()) / 2)
		}
		answer, err := q.askIfItLeads(ctx, home, until)
		if err == nil || ctx.Err() != nil || !movesOn(err) {
			return answer, err
		}
		if now() >= q.deadline {
			return reply{}, err
		}
		way = newSearchAt(c, c.indexOf(home.server))
		way.moveOn(err, now())
	}
	for {
		if err := pause(ctx, way.notBefore); err != nil {
			return reply{}, err
		}
		answer, err := c.askOnce(ctx, way.member(), q)
		if err == nil || ctx.Err() != nil || !movesOn(err) {
			return answer, err
		}
		way.moveOn(err, now())
		if way.isHopeless || max(now(), way.notBefore) >= q.deadline {
			return reply{}, way.verdict()
		}
	}
}

func (c *cluster) askOnce(ctx context.Context, member *endpoint, q question) (reply, error) {
	until := now().add(c.attemptTimeout(q.deadline.sub(now())))
	opened, err := member.open(ctx, until, nil)
	if err != nil {
		return reply{}, err
	}
	defer opened.close()
	return q.askIfItLeads(ctx, opened, until)
}

// askIfItLeads takes a reply for none when its server does not lead.
func (q question) askIfItLeads(ctx context.Context, on *conn, until instant) (reply, error) {
	answer, err := on.ask(ctx, q.lines, until)
	if err != nil {
		return reply{}, err
	}
	if err := q.check(answer); err != nil && movesOn(err) {
		return reply{}, on.at(err)
	}
	return answer, nil
}
