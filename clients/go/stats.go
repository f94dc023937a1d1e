package lockd

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
)

// Stats is what one server says of itself.
type Stats struct {
	Server         string           `json:"-"` // host:port
	Connections    int              `json:"connections"`
	Locks          []LockStats      `json:"locks"`
	Semaphores     []SemaphoreStats `json:"semaphores"`
	IdleLocks      []IdleStats      `json:"idle_locks"`
	IdleSemaphores []IdleStats      `json:"idle_semaphores"`
	SignalChannels []ChannelStats   `json:"signal_channels"`
	Cluster        *ClusterStats    `json:"cluster"` // nil of a server that stands alone
}

// LockStats is a lock that is held.
type LockStats struct {
	Key            string  `json:"key"`
	OwnerConnID    int64   `json:"owner_conn_id"` // 0: none of a connection
	LeaseExpiresIn float64 `json:"lease_expires_in_s"`
	Waiters        int     `json:"waiters"`
}

// SemaphoreStats is a semaphore that is held or waited for.
type SemaphoreStats struct {
	Key     string `json:"key"`
	Limit   int    `json:"limit"`
	Holders int    `json:"holders"`
	Waiters int    `json:"waiters"`
}

// IdleStats is a key that nobody holds.
type IdleStats struct {
	Key  string  `json:"key"`
	Idle float64 `json:"idle_s"`
}

// ChannelStats is a pattern that somebody listens to.
type ChannelStats struct {
	Pattern   string `json:"pattern"`
	Group     string `json:"group"`
	Listeners int    `json:"listeners"`
}

// ClusterStats is what a server knows of its cluster.
type ClusterStats struct {
	NodeID     string `json:"node_id"`
	Role       string `json:"role"`
	Epoch      uint64 `json:"epoch"`
	LeaderAddr string `json:"leader_addr"`
	Applied    uint64 `json:"applied"`
}

// Stats asks every server that was given, and returns what they say in that order. Of those that
// failed there is an error, joined with the others', and only Server is set.
func (c *Client) Stats(ctx context.Context) ([]Stats, error) {
	scoped, cancel := c.scope(ctx)
	defer cancel()
	var members []*endpoint
	for _, cluster := range c.clusters {
		members = append(members, cluster.members...)
	}
	all := make([]Stats, len(members))
	failures := make([]error, len(members))
	var asking sync.WaitGroup
	for i, member := range members {
		asking.Add(1)
		go func(i int, member *endpoint) {
			defer asking.Done()
			all[i], failures[i] = member.stats(scoped)
			if failures[i] != nil {
				failures[i] = named(c.ended(ctx, failures[i]), "stats", "")
			}
		}(i, member)
	}
	asking.Wait()
	return all, errors.Join(failures...)
}

func (e *endpoint) stats(ctx context.Context) (Stats, error) {
	told := Stats{Server: e.address}
	on, err := e.open(ctx, now().add(e.settings.connectTimeout), nil)
	if err != nil {
		return told, err
	}
	defer on.close()
	until := now().add(e.settings.replyTimeout)
	answer, err := on.await(ctx, on.begin(statsLines, statsSizeMax), until)
	if err != nil {
		return told, err
	}
	text, err := parseStatus(answer.line)
	if err != nil {
		return told, on.at(err)
	}
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&told); err != nil {
		return Stats{Server: e.address}, e.failed(ErrGarbled, err)
	}
	return told, nil
}
