package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sort"
)

// One line of a history; see history_file.h.
type entry struct {
	F           string  `json:"f"`
	Proc        int     `json:"proc"`
	Key         string  `json:"key"`
	Kind        string  `json:"kind"`
	Limit       int64   `json:"limit"`
	Mode        string  `json:"mode"`
	Permits     int64   `json:"permits"`
	Keys        int     `json:"keys"`
	Rid         string  `json:"rid"`
	TTL         float64 `json:"ttl"`
	Call        int64   `json:"call"`
	Ret         int64   `json:"ret"`
	Res         string  `json:"res"`
	Fence       uint64  `json:"fence"`
	Via         string  `json:"via"`
	Conn        uint64  `json:"conn"`
	Srv         string  `json:"srv"`
	Life        int     `json:"life"`
	AutoRelease bool    `json:"auto_release"`
}

func (e entry) ttl() int64 { return int64(e.TTL*1e9 + 0.5) }

// What a hold takes of its key: so many permits, or of a lock one share of many, or all.
func (e entry) takes() int64 {
	switch {
	case e.Kind == "sem":
		return max(e.Permits, 1)
	case e.Mode == "shared":
		return 1
	}
	return shares
}

// Names a request for several keys in one step, of which each is an entry; empty of all others.
func (e entry) set() string {
	if e.Keys <= 1 {
		return ""
	}
	return fmt.Sprint(e.Srv, " ", e.F, " ", e.Rid, " ", e.Call)
}

type life struct {
	server string
	number int
}

type history struct {
	keys        map[string][]entry // by kind and name
	servers     map[string]bool    // whether their connections release what they hold
	disconnects map[uint64]int64   // when, by connection
	failures    map[life]int64     // when its storage failed
	weather     map[string][]entry // restarts and jumps of the clock, by server
}

func readHistory(path string) (*history, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	h := &history{
		keys:        map[string][]entry{},
		servers:     map[string]bool{},
		disconnects: map[uint64]int64{},
		failures:    map[life]int64{},
		weather:     map[string][]entry{},
	}
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		h.add(e)
	}
	return h, lines.Err()
}

func (h *history) add(e entry) {
	switch e.F {
	case "server":
		h.servers[e.Srv] = e.AutoRelease
	case "disconnect":
		h.disconnects[e.Conn] = e.Call
	case "eio":
		h.failures[life{e.Srv, e.Life}] = e.Call
	case "restart", "failover", "suspend":
		h.weather[e.Srv] = append(h.weather[e.Srv], e)
	case "acquire", "enqueue", "wait", "renew", "release", "revoke", "believe":
		name := e.Kind + " " + e.Key
		h.keys[name] = append(h.keys[name], e)
	}
}

// What clients did with one key, as steps of the model. What was granted to nobody who knows
// constrains nobody, for it may have been given up at any time: it is left out, and so is who was
// turned away.
type slice struct {
	h        *history
	cut      int64 // what had not returned by then is unknown: what came after is not in the slice
	capacity int64
	steps    []step
	asked    map[string]int64  // the first call, by request id
	fences   map[string]uint64 // the last that was told, likewise
	told     map[uint64]entry  // by fence
	tickets  map[int]entry     // by process
}

func (h *history) slice(entries []entry, entriesMax int) []step {
	sort.SliceStable(entries, func(i, j int) bool { return entries[i].Call < entries[j].Call })
	s := slice{
		h: h, cut: never, capacity: shares,
		asked: map[string]int64{}, fences: map[string]uint64{}, told: map[uint64]entry{}, tickets: map[int]entry{},
	}
	if len(entries) >= entriesMax {
		s.cut = entries[len(entries)-1].Call
	}
	if entries[0].Kind == "sem" {
		s.capacity = 1
	}
	for _, e := range entries {
		if e.Kind == "sem" {
			s.capacity = max(s.capacity, e.Limit)
		}
		if e.Res == "info" || e.Ret > s.cut {
			e.Res, e.Ret = "info", never
		}
		// A server whose storage has failed says no to everything, in one word.
		failed, has := h.failures[life{e.Srv, e.Life}]
		if e.Res == "error:not_held" && has && e.Ret >= failed {
			e.Res = "error:refused"
		}
		s.take(e)
	}
	s.addWeather(entries[0].Srv, entries[len(entries)-1].Call)
	return s.finish()
}

func (s *slice) take(e entry) {
	switch e.F {
	case "acquire":
		s.grant(e, s.firstAsked(e))
	case "enqueue":
		s.grant(e, s.firstAsked(e))
		if e.Res == "ok" || e.Res == "queued" {
			s.tickets[e.Proc] = e
		}
	case "wait":
		s.wait(e)
	case "renew":
		s.followUp(e, e.Fence, renew, maybeRenew)
	case "believe":
		s.believe(e)
	case "release", "revoke":
		s.followUp(e, e.Fence, release, maybeRelease)
	}
}

// At the last moment at which it was believed, it was there.
func (s *slice) believe(e entry) {
	if e.Res == "ok" {
		s.steps = append(s.steps, step{verb: believed, fence: e.Fence, call: e.Ret, ret: e.Ret})
	}
}

func (s *slice) firstAsked(e entry) int64 {
	if e.Rid == "" {
		return e.Call
	}
	if _, known := s.asked[e.Rid]; !known {
		s.asked[e.Rid] = e.Call
	}
	return s.asked[e.Rid]
}

func (s *slice) wait(e entry) {
	enqueue, known := s.tickets[e.Proc]
	delete(s.tickets, e.Proc)
	switch {
	case known && enqueue.Res == "ok" && (e.Res != "ok" || e.Fence == enqueue.Fence):
		s.followUp(e, enqueue.Fence, renew, maybeRenew)
	case known:
		s.grant(e, s.firstAsked(enqueue))
	default:
		s.grant(e, e.Call)
	}
}

func (s *slice) grant(e entry, asked int64) {
	if e.Res != "ok" {
		s.mayPassOn(e)
		return
	}
	if e.Rid != "" {
		s.asked[e.Rid] = e.Call // what else it is granted it asks for later
	}
	if first, known := s.told[e.Fence]; known && e.Rid != "" && e.Rid == first.Rid {
		s.followUp(e, e.Fence, renew, maybeRenew)
		s.passOn(e)
		s.mayEnd(e, e.Fence)
		return
	}
	s.told[e.Fence] = e
	if e.Rid != "" {
		s.fences[e.Rid] = e.Fence
	}
	s.steps = append(s.steps, step{
		verb: grant, set: e.set(), fence: e.Fence, takes: e.takes(),
		call: asked, ret: e.Ret, leaseCall: e.Call, ttl: e.ttl(),
	})
	s.mayEnd(e, e.Fence)
}

// With the connection on which it was asked for, the server ends it.
func (s *slice) mayEnd(e entry, fence uint64) {
	left, gone := s.h.disconnects[e.Conn]
	if gone && s.h.servers[e.Srv] && (e.Via == "tcp" || e.Via == "tls") {
		s.steps = append(s.steps, step{
			verb: maybeRelease, fence: fence, call: left, ret: never, ofConnection: true,
		})
	}
}

// It was there, so the end of no older connection had ended it, and none does from now on.
func (s *slice) passOn(e entry) {
	s.steps = slices.DeleteFunc(s.steps, func(op step) bool {
		return op.ofConnection && op.fence == e.Fence
	})
}

// Nobody knows: it may have been given what is there, and that ends with its connection then.
func (s *slice) mayPassOn(e entry) {
	fence, known := s.fences[e.Rid]
	if e.Rid == "" || !known || e.Res == "timeout" || e.Res == "queued" {
		return
	}
	s.followUp(e, fence, renew, maybeRenew)
	s.mayEnd(e, fence)
}

func (s *slice) followUp(e entry, fence uint64, confirmed, unknown verb) {
	if e.Res == "error:not_leader" {
		return // nothing was done
	}
	op := step{verb: unknown, fence: fence, call: e.Call, ret: never, ttl: e.ttl()}
	switch e.Res {
	case "ok":
		op.verb, op.ret, op.set = confirmed, e.Ret, e.set()
	case "error:not_held":
		op.verb, op.ret, op.set = absent, e.Ret, e.set()
	}
	s.steps = append(s.steps, op)
}

func (s *slice) addWeather(server string, until int64) {
	for _, e := range s.h.weather[server] {
		if e.Call > until {
			continue
		}
		verb := clockJump
		if e.F != "suspend" {
			verb = restart
		}
		set := fmt.Sprint(e.F, " ", e.Call) // to all keys of a group it is one
		s.steps = append(s.steps, step{verb: verb, set: set, call: e.Call, ret: e.Ret})
	}
}

// What may or may not have happened to a hold has no effect once it is certainly over, so it can be
// taken to have returned by then, or be left out. Without that, each would be open for ever, and the
// search would try them in every order.
func (s *slice) finish() []step {
	over := s.over()
	var steps []step
	for _, op := range s.steps {
		op.capacity = s.capacity
		if op.verb == maybeRenew || op.verb == maybeRelease {
			by := over(op.fence)
			if by < op.call {
				continue
			}
			op.ret = by
		}
		steps = append(steps, op)
	}
	return steps
}

// By when a hold is over: the server said so, or, of a lock, a later fence was told that cannot be
// beside it.
func (s *slice) over() func(fence uint64) int64 {
	said := map[uint64]int64{}
	var grants []step
	for _, op := range s.steps {
		switch op.verb {
		case grant:
			grants = append(grants, op)
		case release, absent:
			if by, known := said[op.fence]; !known || op.ret < by {
				said[op.fence] = op.ret
			}
		}
	}
	sort.Slice(grants, func(i, j int) bool { return grants[i].fence < grants[j].fence })
	told := make([]int64, len(grants)+1)  // the first return of this or a later fence
	alone := make([]int64, len(grants)+1) // of those that take all
	told[len(grants)], alone[len(grants)] = never, never
	for i := len(grants) - 1; i >= 0; i-- {
		told[i], alone[i] = min(told[i+1], grants[i].ret), alone[i+1]
		if grants[i].takes == s.capacity {
			alone[i] = min(alone[i], grants[i].ret)
		}
	}
	return func(fence uint64) int64 {
		by, known := said[fence]
		if !known {
			by = never
		}
		later := sort.Search(len(grants), func(i int) bool { return grants[i].fence > fence })
		if later > 0 && grants[later-1].fence == fence && grants[later-1].takes == s.capacity {
			return min(by, told[later])
		}
		return min(by, alone[later])
	}
}
