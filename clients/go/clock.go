package lockd

import (
	"math"
	"sync"
	"time"
)

// instant is a moment in nanoseconds, by a clock that never goes back and that counts the time for
// which the machine was suspended.
type instant int64

// never is later than every moment.
const never instant = math.MaxInt64

// now reads the clock.
var now = chooseClock()

func chooseClock() func() instant {
	if boot := bootClock(); boot != nil {
		return boot
	}
	return newElapsedClock(time.Now).now
}

func (t instant) add(d time.Duration) instant {
	if d > 0 && t > never-instant(d) {
		return never
	}
	return t + instant(d)
}

func (t instant) sub(earlier instant) time.Duration { return time.Duration(t - earlier) }

// elapsedClock is for platforms whose monotonic clock stops while the machine is suspended, and
// which offer no other. Between two readings it adds what the monotonic clock or the wall clock has
// advanced, whichever is more: a wall clock that is set forward ends a lease early, never late.
type elapsedClock struct {
	read func() time.Time

	mu   sync.Mutex
	last time.Time
	sum  instant
}

func newElapsedClock(read func() time.Time) *elapsedClock {
	return &elapsedClock{read: read, last: read()}
}

func (c *elapsedClock) now() instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	read := c.read()
	monotonic := read.Sub(c.last)
	wall := read.Round(0).Sub(c.last.Round(0))
	c.sum = c.sum.add(max(monotonic, wall, 0))
	c.last = read
	return c.sum
}
