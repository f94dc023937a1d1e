package lockd

import (
	"container/heap"
	"sync"
	"time"
)

// lookInterval is how long the renewer sleeps at most: the timers of the runtime stand still while
// the machine is suspended, and leases do not.
const lookInterval = time.Second

// renewer renews everything that a client holds, in one goroutine, which is there for as long as
// anything is held.
type renewer struct {
	wake chan struct{} // holds one: something has come

	mu        sync.Mutex
	renewals  map[*Held]*renewal
	queue     renewalQueue
	isRunning bool

	// Taken by those who read connections, also while mu is held: the last in order.
	pokedMu sync.Mutex
	poked   []*renewal
}

func newRenewer() *renewer {
	return &renewer{wake: make(chan struct{}, 1), renewals: map[*Held]*renewal{}}
}

// keep takes over what is held, with the connection on which it was granted.
func (r *renewer) keep(held *Held, on *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	made := newRenewal(held, on)
	made.poke = func() { r.poke(made) }
	r.renewals[held] = made
	heap.Push(&r.queue, made)
	// It is advanced at once: what came before it was watched is heard then.
	on.watchBy(made.poke)
	if !r.isRunning {
		r.isRunning = true
		go r.run()
	}
	r.notify()
}

// withdraw takes it from the renewer: from here on nobody renews it.
func (r *renewer) withdraw(held *Held) connections {
	r.mu.Lock()
	defer r.mu.Unlock()
	renewal := r.renewals[held]
	if renewal == nil {
		return connections{}
	}
	r.remove(renewal)
	r.notify()
	return renewal.stop()
}

// holds is what is held now.
func (r *renewer) holds() []*Held {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*Held
	for held := range r.renewals {
		all = append(all, held)
	}
	return all
}

func (r *renewer) run() {
	for {
		next, isRunning := r.turn()
		if !isRunning {
			return
		}
		timer := time.NewTimer(min(next.sub(now()), lookInterval))
		select {
		case <-r.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// turn advances what is due, and says when the next is. It is false when nothing is held: then the
// goroutine ends.
func (r *renewer) turn() (next instant, isRunning bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takePoked()
	at := now()
	for len(r.queue) > 0 && r.queue[0].next <= at {
		renewal := r.queue[0]
		if cause, isLost := renewal.advance(at); isLost {
			r.remove(renewal)
			renewal.stop().close()
			renewal.held.lose(cause)
			continue
		}
		// What is due at once waits for the next turn, so that a turn ends.
		renewal.next = max(renewal.deadline(), at+1)
		heap.Fix(&r.queue, renewal.index)
	}
	if len(r.queue) == 0 {
		r.isRunning = false
		return never, false
	}
	return r.queue[0].next, true
}

func (r *renewer) remove(gone *renewal) {
	delete(r.renewals, gone.held)
	heap.Remove(&r.queue, gone.index)
	gone.index = -1
}

// poke has a renewal advanced in the next turn.
func (r *renewer) poke(renewal *renewal) {
	r.pokedMu.Lock()
	r.poked = append(r.poked, renewal)
	r.pokedMu.Unlock()
	r.notify()
}

func (r *renewer) takePoked() {
	r.pokedMu.Lock()
	poked := r.poked
	r.poked = nil
	r.pokedMu.Unlock()
	for _, renewal := range poked {
		if renewal.index >= 0 {
			renewal.next = 0
			heap.Fix(&r.queue, renewal.index)
		}
	}
}

func (r *renewer) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// renewalQueue is a heap: the earliest is the first.
type renewalQueue []*renewal

func (q renewalQueue) Len() int           { return len(q) }
func (q renewalQueue) Less(i, j int) bool { return q[i].next < q[j].next }
func (q renewalQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push is for package heap.
func (q *renewalQueue) Push(added any) {
	last := added.(*renewal)
	last.index = len(*q)
	*q = append(*q, last)
}

// Pop is for package heap.
func (q *renewalQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
