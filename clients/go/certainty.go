package lockd

import "sync"

// certainty is until when a hold is certain, and that it is over for good once it is.
//
// The owner asks, the renewer extends, and the process may be stopped between any two instructions
// of either. Whoever first finds that the time has passed ends it, so that no renewal confirmed
// late makes anybody believe again: an answer of false is final, for everybody.
type certainty struct {
	mu        sync.Mutex
	until     instant
	over      bool
	isSuspect bool // until it is extended: a server may have released the hold already
}

// lasts says whether it lasts. The caller has read now after it was asked.
func (c *certainty) lasts(now instant) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.look(now)
}

// state is what the owner may believe. The caller has read now after it was asked.
func (c *certainty) state(now instant) State {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.look(now):
		return StateLost
	case c.isSuspect:
		return StateSuspect
	default:
		return StateHeld
	}
}

// suspect makes it suspect until it is extended.
func (c *certainty) suspect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isSuspect = true
}

// extend moves its end, to an earlier moment too. It does nothing, and says false, when it was over
// by now.
func (c *certainty) extend(now, until instant) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.look(now) {
		return false
	}
	c.until = until
	c.isSuspect = false
	return true
}

// end ends it now, and says false when it was over already.
func (c *certainty) end(now instant) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	lasted := c.look(now)
	c.over = true
	c.until = min(c.until, now)
	return lasted
}

// endsAt is when it ends, or ended.
func (c *certainty) endsAt() instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.until
}

func (c *certainty) look(now instant) bool {
	c.over = c.over || now >= c.until
	return !c.over
}
