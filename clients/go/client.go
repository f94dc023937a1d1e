package lockd

import (
	"context"
	"errors"
	"sync"
)

// Client takes locks from one server, from several, or from a cluster. Any goroutine may use it.
type Client struct {
	settings *settings
	clusters []*cluster // which share the keys
	renewer  *renewer
	closed   context.Context // done once Close was called
	close    context.CancelCauseFunc
}

// New makes a client. It connects to nobody yet.
func New(options ...Option) (*Client, error) {
	settings, err := newSettings(options)
	if err != nil {
		return nil, named(err, "new", "")
	}
	c := &Client{settings: settings, renewer: newRenewer()}
	c.closed, c.close = context.WithCancelCause(context.Background())
	members, err := newEndpoints(settings)
	if err != nil {
		return nil, named(err, "new", "")
	}
	if len(settings.cluster) > 0 {
		c.clusters = []*cluster{newCluster(members, settings)}
		return c, nil
	}
	for _, member := range members {
		c.clusters = append(c.clusters, newCluster([]*endpoint{member}, settings))
	}
	return c, nil
}

func newEndpoints(s *settings) ([]*endpoint, error) {
	var all []*endpoint
	seen := map[string]bool{}
	for _, text := range append(append([]string{}, s.servers...), s.cluster...) {
		host, address, err := parseAddress(text)
		if err != nil {
			return nil, err
		}
		if seen[address] {
			return nil, invalid(address + " is given twice")
		}
		seen[address] = true
		all = append(all, &endpoint{address: address, host: host, settings: s})
	}
	return all, nil
}

// Close ends all calls, places and listeners with [ErrClosed], and releases whatever is held. It
// returns when that is done or cannot be, and what the releases said. A client that nobody uses
// costs nothing, and needs no closing.
func (c *Client) Close() error {
	c.close(ErrClosed)
	for _, one := range c.clusters {
		one.courier.close()
	}
	holds := c.renewer.holds()
	failures := make([]error, len(holds))
	var releases sync.WaitGroup
	for i, held := range holds {
		releases.Add(1)
		go func(i int, held *Held) {
			defer releases.Done()
			failures[i] = held.Release()
		}(i, held)
	}
	releases.Wait()
	return errors.Join(failures...)
}

func (c *Client) clusterOf(key string) *cluster {
	return c.clusters[ShardOf(key, len(c.clusters))]
}

// scope returns a context that also ends with the client.
func (c *Client) scope(ctx context.Context) (context.Context, context.CancelFunc) {
	scoped, cancel := context.WithCancelCause(ctx)
	if c.closed.Err() != nil {
		cancel(ErrClosed)
	}
	stop := context.AfterFunc(c.closed, func() { cancel(ErrClosed) })
	return scoped, func() {
		stop()
		cancel(nil)
	}
}

// ended returns why a scope has: the caller's context, or the client. Else it returns err itself.
func (c *Client) ended(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case c.closed.Err() != nil:
		return ErrClosed
	default:
		return err
	}
}
