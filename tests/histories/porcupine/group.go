package main

import (
	"sort"

	"github.com/anishathalye/porcupine"
)

// Several keys that were asked for in one step: what that did to each of them it did at one time.

const groupMax = 4

// Keys that requests for several connect, and those that none does, each alone. A group that is too
// large is cut: of its requests each part of the group sees what they did to its own keys.
func (h *history) groups() [][]string {
	names := make([]string, 0, len(h.keys))
	for name := range h.keys {
		names = append(names, name)
	}
	sort.Strings(names)
	first := map[string]string{} // the first key of a request
	group := map[string][]string{}
	for _, name := range names {
		group[name] = []string{name}
	}
	for _, name := range names {
		for _, e := range h.keys[name] {
			set := e.set()
			if set == "" {
				continue
			}
			other, known := first[set]
			if !known {
				first[set] = name
				continue
			}
			join(group, other, name)
		}
	}
	var groups [][]string
	for _, name := range names {
		if keys := group[name]; keys[0] == name {
			groups = append(groups, keys)
		}
	}
	return groups
}

func join(group map[string][]string, a, b string) {
	if group[a][0] == group[b][0] || len(group[a])+len(group[b]) > groupMax {
		return
	}
	joined := append(append([]string{}, group[a]...), group[b]...)
	sort.Strings(joined)
	for _, name := range joined {
		group[name] = joined
	}
}

// How many keys are judged together with others.
func (h *history) grouped() int {
	count := 0
	for _, keys := range h.groups() {
		if len(keys) > 1 {
			count += len(keys)
		}
	}
	return count
}

// Whether a request for several of the keys was granted or renewed in part, or under two fences.
func (h *history) contradicts(keys []string) bool {
	first := map[string]entry{}
	for _, key := range keys {
		for _, e := range h.keys[key] {
			set := e.set()
			if set == "" || e.F == "release" {
				continue
			}
			other, known := first[set]
			if !known {
				first[set] = e
			} else if (e.Res == "ok") != (other.Res == "ok") || e.Fence != other.Fence {
				return true
			}
		}
	}
	return false
}

func ofKey(steps []step) []porcupine.Operation {
	var operations []porcupine.Operation
	for _, op := range steps {
		operations = append(operations, porcupine.Operation{Input: op, Call: op.call, Return: op.ret})
	}
	return operations
}

// What is done to one of the keys.
type groupStep struct {
	key int
	step
}

// The steps of one request are one operation.
func ofGroup(slices [][]step) []porcupine.Operation {
	var requests [][]groupStep
	sets := map[string]int{}
	for key, steps := range slices {
		for _, op := range steps {
			at, known := sets[op.set]
			if op.set == "" || !known {
				at = len(requests)
				requests = append(requests, nil)
				sets[op.set] = at
			}
			requests[at] = append(requests[at], groupStep{key, op})
		}
	}
	var operations []porcupine.Operation
	for _, request := range requests {
		op := porcupine.Operation{Input: request, Call: request[0].call, Return: request[0].ret}
		for _, part := range request {
			op.Call, op.Return = max(op.Call, part.call), min(op.Return, part.ret)
		}
		operations = append(operations, op)
	}
	return operations
}

type groupState [groupMax]state

// All of it is legal, and at one time, or none is.
func takeAll(from groupState, request []groupStep) []groupState {
	var at, ret int64 = 0, never
	for _, op := range request {
		at, ret = max(at, from[op.key].now, op.call), min(ret, op.ret)
	}
	states := []groupState{from}
	for _, op := range request {
		var next []groupState
		for _, s := range states {
			part := op.step
			part.call, part.ret = max(part.call, at), ret
			for _, moved := range take(s[op.key], part) {
				one := s
				one[op.key] = moved
				next = append(next, one)
			}
		}
		states = next
	}
	for i := range states {
		settle(&states[i], request)
	}
	return states
}

// The time of the last is that of all.
func settle(s *groupState, request []groupStep) {
	var at int64
	for _, op := range request {
		at = max(at, s[op.key].now)
	}
	for _, op := range request {
		if !s[op.key].lost {
			s[op.key].now = at
		}
	}
}

var groupModel = porcupine.NondeterministicModel{
	Init: func() []interface{} { return []interface{}{groupState{}} },
	Step: func(from, input, _ interface{}) []interface{} {
		var next []interface{}
		for _, s := range takeAll(from.(groupState), input.([]groupStep)) {
			next = append(next, s)
		}
		return next
	},
	Equal: func(a, b interface{}) bool { return a.(groupState) == b.(groupState) },
}
