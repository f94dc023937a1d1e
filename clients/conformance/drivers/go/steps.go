package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	lockd "lockd.internal/lockd"
)

// steps are those of one job, and what they have made.
type steps struct {
	client   *lockd.Client
	all      []step
	holds    map[string]*lockd.Held
	places   map[string]*lockd.Place
	listener *lockd.Listener
}

func run(j *job) []report {
	client, err := lockd.New(clientOptions(j)...)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	s := &steps{client: client, all: j.Steps}
	s.holds, s.places = map[string]*lockd.Held{}, map[string]*lockd.Place{}
	var reports []report
	for _, one := range j.Steps {
		began := time.Now()
		said := s.do(one)
		said["took_ms"] = time.Since(began).Milliseconds()
		reports = append(reports, said)
	}
	return reports
}

func clientOptions(j *job) []lockd.Option {
	options := []lockd.Option{lockd.Servers(j.Addresses...)}
	if j.IsCluster {
		options = []lockd.Option{lockd.Cluster(j.Addresses...)}
	}
	if j.Token != "" {
		options = append(options, lockd.Token(j.Token))
	}
	if j.TokenFile != "" {
		options = append(options, lockd.TokenFile(j.TokenFile))
	}
	timeouts := []struct {
		ms     int
		option func(time.Duration) lockd.Option
	}{
		{j.ConnectTimeoutMs, lockd.ConnectTimeout},
		{j.ReplyTimeoutMs, lockd.ReplyTimeout},
		{j.ReleaseTimeoutMs, lockd.ReleaseTimeout},
	}
	for _, timeout := range timeouts {
		if timeout.ms > 0 {
			options = append(options, timeout.option(ms(timeout.ms)))
		}
	}
	return options
}

func (s *steps) do(one step) report {
	ctx := context.Background()
	if one.CancelAfterMs > 0 {
		cancelled, cancel := context.WithCancel(ctx)
		defer time.AfterFunc(ms(one.CancelAfterMs), cancel).Stop()
		ctx = cancelled
	}
	if s.lacks(one) {
		return report{"outcome": "nothing"}
	}
	switch one.Do {
	case "acquire":
		held, err := s.client.Acquire(ctx, one.Key, acquireOptions(one, one.WaitMs)...)
		return s.keep(one, held, err)
	case "acquire_all":
		held, err := s.client.AcquireAll(ctx, one.Keys, acquireOptions(one, one.WaitMs)...)
		return s.keep(one, held, err)
	case "enqueue":
		return s.enqueue(ctx, one)
	case "wait":
		held, err := s.places[one.Place].Wait(ctx)
		return s.keep(one, held, err)
	case "give_up":
		return said("done", s.places[one.Place].Close())
	case "check":
		return said("held", s.holds[one.Hold].Check())
	case "await_loss":
		return awaitLoss(s.holds[one.Hold], ms(*one.WaitMs))
	case "release":
		return said("released", s.holds[one.Hold].Release())
	case "sleep":
		time.Sleep(ms(one.Ms))
		return report{"outcome": "done"}
	default:
		return s.tell(ctx, one)
	}
}

// lacks says whether an earlier step was to make what this one needs, and has not.
func (s *steps) lacks(one step) bool {
	switch one.Do {
	case "wait", "give_up":
		return s.places[one.Place] == nil
	case "check", "await_loss", "release":
		return s.holds[one.Hold] == nil
	case "next":
		return s.listener == nil
	}
	return false
}

// tell is for signals and statistics.
func (s *steps) tell(ctx context.Context, one step) report {
	switch one.Do {
	case "publish":
		count, err := s.client.Publish(ctx, one.Channel, one.Payload)
		told := said("count", err)
		if err == nil {
			told["count"] = count
		}
		return told
	case "listen":
		var options []lockd.ListenOption
		if one.Group != "" {
			options = append(options, lockd.Group(one.Group))
		}
		listener, err := s.client.Listen(ctx, one.Pattern, options...)
		s.listener = listener
		return said("done", err)
	case "next":
		bounded, cancel := context.WithTimeout(ctx, ms(*one.WaitMs))
		defer cancel()
		signal, err := s.listener.Next(bounded)
		if errors.Is(err, context.DeadlineExceeded) {
			return report{"outcome": "none"}
		}
		told := said("signal", err)
		if err == nil {
			told["channel"], told["payload"] = signal.Channel, signal.Payload
		}
		return told
	case "stats":
		all, err := s.client.Stats(ctx)
		told := said("stats", err)
		if err == nil {
			told["connections"] = all[0].Connections
		}
		return told
	}
	panic("nobody knows " + one.Do)
}

func (s *steps) enqueue(ctx context.Context, one step) report {
	place, err := s.client.Enqueue(ctx, one.Key, acquireOptions(one, s.waitOf(one.Place))...)
	if err != nil {
		return said("", err)
	}
	s.places[one.Place] = place
	if place.Granted() {
		return report{"outcome": "granted"}
	}
	return report{"outcome": "queued"}
}

// waitOf is how long the step that waits for a place does so: here it is said when it is taken.
func (s *steps) waitOf(place string) *int {
	for _, one := range s.all {
		if one.Do == "wait" && one.Place == place {
			return one.WaitMs
		}
	}
	return nil
}

func (s *steps) keep(one step, held *lockd.Held, err error) report {
	if err != nil {
		return said("", err)
	}
	s.holds[one.Hold] = held
	return report{
		"outcome":      "acquired",
		"fence":        strconv.FormatUint(held.Fence(), 10),
		"lease_s":      int(held.Lease() / time.Second),
		"queued_again": held.QueuedAgain() > 0,
	}
}

func awaitLoss(held *lockd.Held, wait time.Duration) report {
	select {
	case <-held.Context().Done():
		return said("", context.Cause(held.Context()))
	case <-time.After(wait):
		return said("held", held.Check())
	}
}

func acquireOptions(one step, waitMs *int) []lockd.AcquireOption {
	var options []lockd.AcquireOption
	if waitMs != nil {
		options = append(options, lockd.Wait(ms(*waitMs)))
	}
	if one.LeaseS != nil {
		options = append(options, lockd.Lease(time.Duration(*one.LeaseS)*time.Second))
	}
	if one.Shared {
		options = append(options, lockd.Shared())
	}
	if one.Limit != nil {
		options = append(options, lockd.Semaphore(*one.Limit))
	}
	if one.Permits != nil {
		options = append(options, lockd.Permits(*one.Permits))
	}
	if one.MaxHoldMs > 0 {
		options = append(options, lockd.MaxHold(ms(one.MaxHoldMs)))
	}
	return options
}

func ms(count int) time.Duration { return time.Duration(count) * time.Millisecond }
