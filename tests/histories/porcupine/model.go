package main

import (
	"math"

	"github.com/anishathalye/porcupine"
)

// The sequential model of one key: who may hold it, and when their leases can end. Times are those
// of the clients' clock; an operation takes effect at some time between its call and its return.

const (
	never      = math.MaxInt64
	holdersMax = 32
	shares     = 1 << 20 // of a lock: any number who share it
)

type verb uint8

const (
	grant        verb = iota // a client was told of a fence
	renew                    // confirmed
	release                  // confirmed
	absent                   // the server said that there is no such hold
	maybeRenew               // nobody knows
	maybeRelease             // nobody knows; or a connection that may have ended
	clockJump                // leases may end from now on
	restart                  // leases may be armed anew
	believed                 // somebody took it to be held, and may have renewed it
)

type step struct {
	verb      verb
	set       string // those of several keys that have it in common are one
	capacity  int64
	takes     int64 // of a grant
	fence     uint64
	call, ret int64
	leaseCall int64 // the lease of a grant runs from here at the earliest
	ttl       int64

	ofConnection bool // of maybeRelease: with the end of one
}

type hold struct {
	fence    uint64
	takes    int64
	ttl      int64
	from, by int64 // the lease ends no earlier, and no later
}

// Comparable, so that porcupine can tell states apart.
type state struct {
	last  uint64 // the largest fence
	now   int64  // no step that comes is earlier
	lost  bool   // more hold it than there is room for here: anything is legal
	count int
	holds [holdersMax]hold
}

func (s state) taken() int64 {
	var taken int64
	for i := 0; i < s.count; i++ {
		taken += s.holds[i].takes
	}
	return taken
}

func (s state) find(fence uint64) int {
	for i := 0; i < s.count; i++ {
		if s.holds[i].fence == fence {
			return i
		}
	}
	return -1
}

func (s state) without(i int) state {
	copy(s.holds[i:], s.holds[i+1:])
	s.count--
	s.holds[s.count] = hold{}
	return s
}

// A little more than the interval's arithmetic: an end that is never stays so.
func after(at, length int64) int64 {
	if at > never-length {
		return never
	}
	return at + length
}

func take(s state, op step) []state {
	if s.lost {
		return []state{s}
	}
	at := max(s.now, op.call)
	if at > op.ret {
		return nil
	}
	moved := s
	moved.now = at
	switch op.verb {
	case grant:
		return takeGrant(moved, op)
	case renew, maybeRenew:
		return takeRenew(moved, op)
	case release, maybeRelease:
		return takeRelease(moved, op)
	case absent:
		return takeAbsent(moved, op)
	case believed:
		return takeBelief(moved, op)
	case clockJump:
		for i := 0; i < moved.count; i++ {
			moved.holds[i].from = min(moved.holds[i].from, at)
		}
	case restart:
		for i := 0; i < moved.count; i++ {
			moved.holds[i].by = max(moved.holds[i].by, after(op.ret, moved.holds[i].ttl))
		}
	}
	return []state{moved}
}

// Legal if there is room, or if leases can have ended by the return that leave some.
func takeGrant(s state, op step) []state {
	if op.fence <= s.last {
		return nil
	}
	var next []state
	for _, freed := range makeRoom(s, op, 0) {
		if freed.count == holdersMax {
			next = append(next, state{lost: true})
			continue
		}
		freed.last = op.fence
		freed.holds[freed.count] = hold{
			fence: op.fence,
			takes: op.takes,
			ttl:   op.ttl,
			from:  after(max(freed.now, op.leaseCall), op.ttl),
			by:    after(op.ret, op.ttl),
		}
		freed.count++
		next = append(next, freed)
	}
	return next
}

// Every way to end leases, from that of the number `first` on, until there is room for the grant.
func makeRoom(s state, op step, first int) []state {
	if s.taken()+op.takes <= op.capacity {
		return []state{s}
	}
	var next []state
	for i := first; i < s.count; i++ {
		if s.holds[i].from <= op.ret {
			freed := s.without(i)
			freed.now = max(s.now, s.holds[i].from)
			next = append(next, makeRoom(freed, op, i)...)
		}
		if op.takes == op.capacity {
			break // all of them must have ended, in whatever order
		}
	}
	return next
}

func takeRenew(s state, op step) []state {
	i := s.find(op.fence)
	if i < 0 || s.now > s.holds[i].by {
		if op.verb == maybeRenew {
			return []state{s}
		}
		return nil
	}
	renewed := s
	held := &renewed.holds[i]
	held.ttl = max(held.ttl, op.ttl)
	held.from = after(s.now, op.ttl)
	if op.verb == maybeRenew {
		held.by = never
		return []state{s, renewed}
	}
	held.by = after(op.ret, op.ttl)
	return []state{renewed}
}

func takeBelief(s state, op step) []state {
	i := s.find(op.fence)
	if i < 0 {
		return nil
	}
	s.holds[i].by = never
	return []state{s}
}

func takeRelease(s state, op step) []state {
	i := s.find(op.fence)
	if op.verb == maybeRelease {
		if i < 0 {
			return []state{s}
		}
		return []state{s, s.without(i)}
	}
	if i < 0 || s.now > s.holds[i].by {
		return nil
	}
	return []state{s.without(i)}
}

func takeAbsent(s state, op step) []state {
	i := s.find(op.fence)
	if i < 0 {
		return []state{s}
	}
	if s.holds[i].from > op.ret {
		return nil
	}
	gone := s.without(i)
	gone.now = max(s.now, s.holds[i].from)
	return []state{gone}
}

var model = porcupine.NondeterministicModel{
	Init: func() []interface{} { return []interface{}{state{}} },
	Step: func(from, input, _ interface{}) []interface{} {
		var next []interface{}
		for _, s := range take(from.(state), input.(step)) {
			next = append(next, s)
		}
		return next
	},
	Equal: func(a, b interface{}) bool { return a.(state) == b.(state) },
}
