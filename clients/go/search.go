package lockd

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// cluster is the servers of which one leads. A server that stands alone is a cluster of one.
type cluster struct {
	members  []*endpoint
	settings *settings
	// leader is who led last: where the next search begins.
	leader  atomic.Int32
	courier courier
}

func newCluster(members []*endpoint, s *settings) *cluster {
	return &cluster{members: members, settings: s, courier: newCourier()}
}

func (c *cluster) isAlone() bool { return len(c.members) == 1 }

// find returns the position of an address, and whether it was given at all.
func (c *cluster) find(text string) (int, bool) {
	_, address, err := parseAddress(text)
	if err != nil {
		return 0, false
	}
	at := slices.IndexFunc(c.members, func(e *endpoint) bool { return e.address == address })
	return at, at >= 0
}

func (c *cluster) indexOf(member *endpoint) int { return slices.Index(c.members, member) }

func (c *cluster) names() string {
	var names []string
	for _, member := range c.members {
		names = append(names, member.address)
	}
	return strings.Join(names, ", ")
}

// The pauses between rounds. A server that stands alone is waited for; of a cluster's another will
// soon lead.
const (
	pauseMinAlone, pauseMaxAlone = 50 * time.Millisecond, time.Second
	pauseMinAmong, pauseMaxAmong = 10 * time.Millisecond, 200 * time.Millisecond
)

// search goes from server to server of a cluster until it has met the one that leads.
//
// From a server that did not answer, or does not lead, it goes to whom that one named as the
// leader, if that address was given; else to whom somebody else has found meanwhile; else to the
// next of the list: to each once a round. A new round begins at once, then after a pause, which
// grows. So whoever names a leader that is gone, or two who name each other, keep nobody from the
// third. An address that was not given is never gone to.
//
// It neither waits nor asks, and is used by one goroutine at a time.
type search struct {
	cluster   *cluster
	here      int
	notBefore instant // when to ask who is here

	tried      []bool // in this round
	pause      time.Duration
	hasHope    bool // in this round
	isHopeless bool // everybody failed in the last round, in a way that waiting does not cure
	worst      error
	stranger   string // who was named as the leader, and was not given
}

func newSearch(c *cluster) *search { return newSearchAt(c, int(c.leader.Load())) }

func newSearchAt(c *cluster, begin int) *search {
	return &search{cluster: c, here: begin, tried: make([]bool, len(c.members))}
}

func (s *search) member() *endpoint { return s.cluster.members[s.here] }

// moveOn leaves who is here.
func (s *search) moveOn(why error, now instant) {
	s.tried[s.here] = true
	s.hasHope = s.hasHope || isPassing(why)
	if s.worst == nil || weight(why) >= weight(s.worst) {
		s.worst = why
	}
	if !slices.Contains(s.tried, false) {
		s.beginRound(now)
	}
	s.here = s.choose(why)
}

func (s *search) beginRound(now instant) {
	clear(s.tried)
	s.isHopeless = !s.hasHope
	s.hasHope = false
	s.notBefore = now.add(s.pause)
	if s.cluster.isAlone() {
		s.pause = min(max(2*s.pause, pauseMinAlone), pauseMaxAlone)
	} else {
		s.pause = min(max(2*s.pause, pauseMinAmong), pauseMaxAmong)
	}
}

func (s *search) choose(why error) int {
	if leader := leaderNamedBy(why); leader != "" {
		at, isGiven := s.cluster.find(leader)
		if !isGiven {
			s.stranger = leader
		} else if !s.tried[at] {
			return at
		}
	}
	if known := int(s.cluster.leader.Load()); known != s.here && !s.tried[known] {
		return known
	}
	next := s.here
	for {
		next = (next + 1) % len(s.tried)
		if !s.tried[next] {
			return next
		}
	}
}

// found says who leads: the next search begins there, and this one anew.
func (s *search) found(leader int) {
	s.cluster.leader.Store(int32(leader))
	*s = *newSearchAt(s.cluster, leader)
}

// verdict is why nobody was found. The search has moved on at least once.
func (s *search) verdict() error {
	if s.cluster.isAlone() {
		return s.worst
	}
	detail := "no leader was found among " + s.cluster.names()
	if s.stranger != "" {
		detail += "; " + shown(s.stranger) + " was named, and was not given"
	}
	return &Error{Kind: kindOf(s.worst), Detail: detail, Err: s.worst}
}

// weight is how much a failure tells those who are told one only: that nobody could be asked, that
// nobody leads, or what has to be fixed.
func weight(err error) int {
	switch {
	case !isPassing(err):
		return 2
	case isAny(err, ErrNotLeader, ErrDraining):
		return 1
	default:
		return 0
	}
}
