package lockd

import (
	"context"
	"time"
)

// attemptMin is what an attempt to connect may take at the very end of a wait.
const attemptMin = time.Second

// atLeader calls ask with a connection to the server that leads, and again, at whichever leads then,
// for as long as it fails in a way that another server may mend, or waiting: until giveUpAt, when it
// has a last look. If that is over already there is one attempt. A connection with which ask has
// succeeded is its own; others are closed.
func (c *cluster) atLeader(ctx context.Context, giveUpAt instant, ask func(*conn) error) error {
	return c.atLeaderListening(ctx, giveUpAt, nil, ask)
}

func (c *cluster) atLeaderListening(ctx context.Context, giveUpAt instant, onSignal func(Signal), ask func(*conn) error) error {
	way := newSearch(c)
	hasTime := now() < giveUpAt
	for {
		if err := pause(ctx, min(way.notBefore, giveUpAt)); err != nil {
			return err
		}
		patience := c.settings.connectTimeout
		if hasTime {
			patience = min(patience, max(giveUpAt.sub(now()), attemptMin))
		}
		err := c.askMember(ctx, way, patience, onSignal, ask)
		if err == nil || ctx.Err() != nil || !movesOn(err) {
			return err
		}
		way.moveOn(err, now())
		if way.isHopeless || now() >= giveUpAt {
			return way.verdict()
		}
	}
}

func (c *cluster) askMember(ctx context.Context, way *search, patience time.Duration, onSignal func(Signal), ask func(*conn) error) error {
	opened, err := c.openIfItLeads(ctx, way.member(), patience, onSignal)
	if err != nil {
		return err
	}
	c.leader.Store(int32(way.here))
	if err := ask(opened); err != nil {
		opened.close()
		return opened.at(err)
	}
	return nil
}

// openIfItLeads opens a connection to a server. Of a cluster, only who leads answers a barrier.
func (c *cluster) openIfItLeads(ctx context.Context, member *endpoint, patience time.Duration, onSignal func(Signal)) (*conn, error) {
	until := now().add(c.attemptTimeout(patience))
	opened, err := member.open(ctx, until, onSignal)
	if err != nil || c.isAlone() {
		return opened, err
	}
	if err := opened.command(ctx, barrierLines, until); err != nil {
		opened.close()
		return nil, err
	}
	return opened, nil
}

// attemptTimeout is what one server may take of the time for all, with a second look at one.
func (c *cluster) attemptTimeout(whole time.Duration) time.Duration {
	if c.isAlone() {
		return whole
	}
	return whole / time.Duration(len(c.members)+1)
}

// askByToken asks what any connection may ask and whoever leads may answer, first on the one that is
// there, if there is one, and then on others until the deadline.
func (c *cluster) askByToken(ctx context.Context, home *conn, lines string, deadline instant) (reply, error) {
	way := newSearch(c)
	if home != nil && home.isOpen() {
		until := deadline
		if !c.isAlone() {
			until = now().add(deadline.sub(now()) / 2)
		}
		answer, err := askIfItLeads(ctx, home, lines, until)
		if err == nil || ctx.Err() != nil || !movesOn(err) {
			return answer, err
		}
		way = newSearchAt(c, c.indexOf(home.server))
		way.moveOn(err, now())
	}
	for {
		if err := pause(ctx, way.notBefore); err != nil {
			return reply{}, err
		}
		answer, err := c.askOnce(ctx, way.member(), lines, deadline)
		if err == nil || ctx.Err() != nil || !movesOn(err) {
			return answer, err
		}
		way.moveOn(err, now())
		if way.isHopeless || max(now(), way.notBefore) >= deadline {
			return reply{}, way.verdict()
		}
	}
}

func (c *cluster) askOnce(ctx context.Context, member *endpoint, lines string, deadline instant) (reply, error) {
	until := now().add(c.attemptTimeout(deadline.sub(now())))
	opened, err := member.open(ctx, until, nil)
	if err != nil {
		return reply{}, err
	}
	defer opened.close()
	return askIfItLeads(ctx, opened, lines, until)
}

// askIfItLeads takes a reply for none when its server does not lead.
func askIfItLeads(ctx context.Context, on *conn, lines string, until instant) (reply, error) {
	answer, err := on.ask(ctx, lines, until)
	if err != nil {
		return reply{}, err
	}
	if _, err := parseStatus(answer.line); err != nil && movesOn(err) {
		return reply{}, on.at(err)
	}
	return answer, nil
}
