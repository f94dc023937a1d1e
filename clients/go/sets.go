package lockd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Several keys at once: calls of the HTTP API, over the line protocol's command api.

const keysMax = 64

// AcquireAll waits for all of several locks at once, 1 to 64 of them: no part of them is ever held.
// They have one fence, larger than any that was granted for one of them before, and are renewed,
// lost and released together. The options are those of [Client.Acquire], but for those of
// semaphores and [Shared].
//
// They are held by a name, and not by a connection: should the program die, they end with their
// lease, and not before. Of several servers one must have all the keys. Servers that are not of this
// project do not know it: [ErrUnsupported].
func (c *Client) AcquireAll(
	ctx context.Context, keys []string, options ...AcquireOption,
) (*Held, error) {
	set, err := c.newSet(keys, options)
	if err != nil {
		return nil, named(err, "acquire", strings.Join(keys, ", "))
	}
	a, err := c.newAcquisition(ctx, set.request, set)
	if err != nil {
		return nil, named(err, "acquire", set.key)
	}
	return a.run()
}

// set is all of several locks, held by a name of its own: what is so held lives by its lease alone.
type set struct {
	*request
	holder string
}

func (c *Client) newSet(keys []string, options []AcquireOption) (*set, error) {
	if err := c.checkKeys(keys); err != nil {
		return nil, err
	}
	request, err := newRequest(keys[0], options)
	if err != nil {
		return nil, err
	}
	if request.limit > 0 || request.isShared {
		return nil, invalid("several keys are locks that are held alone")
	}
	request.keys = slices.Clone(keys)
	secret, err := newSecret()
	if err != nil {
		return nil, err
	}
	return &set{request: request, holder: c.holderName(secret)}, nil
}

func (c *Client) checkKeys(keys []string) error {
	seen := map[string]bool{}
	for _, key := range keys {
		if !isName(key) {
			return invalid("a key is 1 to 256 bytes of UTF-8 without control characters")
		}
		if c.clusterOf(key) != c.clusterOf(keys[0]) {
			return invalid("the keys live on different servers")
		}
		seen[key] = true
	}
	if len(keys) < 1 || len(keys) > keysMax || len(seen) < len(keys) {
		return invalid("a set is 1 to 64 different keys")
	}
	return nil
}

// holderName is the client's, and differs for each set: two of one client exclude each other, too.
func (c *Client) holderName(secret string) string {
	name := c.settings.identity.name
	if room := nameSizeMax - len(secret) - 1; len(name) > room {
		name = strings.ToValidUTF8(name[:room], "")
	}
	return name + "#" + secret
}

// --- requests ---

// call is a request's members. Those that are not given are left out.
type call struct {
	Keys   []string `json:"keys,omitempty"`
	Key    string   `json:"key,omitempty"`
	Holder string   `json:"holder,omitempty"`
	Token  uint64   `json:"token,omitempty"`
	TTLMs  int64    `json:"ttl_ms,omitempty"`
	WaitMs int64    `json:"wait_ms,omitempty"`
}

func (c call) lines(route string) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text) // which ends the line
	encoder.SetEscapeHTML(false)
	encoder.Encode(c)
	return "api\n" + route + "\n" + text.String()
}

func (s *set) isPlain() bool { return false }

// nameWait rounds up to whole milliseconds.
func (s *set) nameWait(left time.Duration) time.Duration {
	return min((left + time.Millisecond - 1).Truncate(time.Millisecond), waitSecondsMax*time.Second)
}

// acquireLines need no word: asking twice is asking once, since the holder is the same.
func (s *set) acquireLines(wait time.Duration, _ string) string {
	asked := call{Keys: s.keys, Holder: s.holder, TTLMs: s.leaseSeconds * 1000}
	asked.WaitMs = wait.Milliseconds()
	return asked.lines("POST /v1/acquire")
}

func (s *set) renewLines(g grant) string {
	renewed := call{Keys: s.keys, Holder: s.holder, Token: g.fence, TTLMs: g.lease.Milliseconds()}
	return renewed.lines("POST /v1/renew")
}

func (s *set) releaseLines(g grant) string {
	return call{Keys: s.keys, Holder: s.holder, Token: g.fence}.lines("POST /v1/release")
}

// --- answers ---

// answer is what an answer may say.
type answer struct {
	Error, Detail, Key string
	Token              uint64
	TTLMs              int64 `json:"ttl_ms"`
	Held               bool
	NotHeld            []string `json:"not_held"`
	Conflicts          []struct {
		Holder, Client string
		Waiters        int
	}
}

// parseAnswer returns what the call answered, and a refusal as an error besides.
func parseAnswer(from reply) (answer, error) {
	rest, err := parseStatus(from.line)
	if err != nil {
		return answer{}, err
	}
	status, text, _ := strings.Cut(rest, " ")
	var said answer
	if json.Unmarshal([]byte(text), &said) != nil {
		return answer{}, garbled(from.line)
	}
	if status != "200" {
		return said, said.refusal(from.line)
	}
	if len(said.NotHeld) > 0 {
		return said, failure(ErrRefused, shown(said.NotHeld[0])+" is held no more")
	}
	return said, nil
}

// refusal is what the line protocol has a word for, mostly.
func (a answer) refusal(line string) error {
	switch a.Error {
	case "":
		return garbled(line)
	case "held", "wait_timeout":
		return failure(errTimeout, "")
	case "expired", "stale_token", "not_holder":
		return failure(ErrRefused, strings.TrimSpace(a.Key+" is held no more"))
	case "unauthorized":
		return failure(ErrUnauthorized, a.Detail)
	}
	if kind, known := statusKinds["error_"+a.Error]; known {
		return failure(kind, a.Detail)
	}
	return failure(ErrRefused, "it says "+shown(a.Error+": "+a.Detail))
}

func (s *set) check(from reply) error {
	_, err := parseAnswer(from)
	return err
}

func (s *set) parseGrant(from reply) (grant, error) {
	said, err := parseAnswer(from)
	if err != nil {
		return grant{}, err
	}
	lease := leaseOf(said.TTLMs/1000, s.leaseSeconds)
	if said.Token == 0 || lease < time.Second {
		return grant{}, garbled(from.line)
	}
	given := grant{token: fmt.Sprintf("%016x", said.Token), fence: said.Token, lease: lease}
	given.sentAt, given.remaining = from.sentAt, lease
	return given, nil
}

func (s *set) parseRenewal(from reply, g grant) (time.Duration, error) {
	said, err := parseAnswer(from)
	if err != nil {
		return 0, err
	}
	if said.TTLMs < 1 {
		return 0, garbled(from.line)
	}
	return min(leaseOf(max(said.TTLMs/1000, 1), 0), g.lease), nil
}

// conflict is told by the refusal itself.
func (s *set) conflict(_ context.Context, _ *conn, from reply) conflict {
	said, _ := parseAnswer(from)
	for _, one := range said.Conflicts {
		if one.Holder != "" {
			return conflict{holder: one.Holder, client: one.Client, waiters: one.Waiters}
		}
	}
	return conflict{}
}

// --- giving up ---

// withdraw releases, without waiting for it, what may have been granted when nobody heard of it: the
// end of a connection does not. What cannot be told is left to the lease.
func (a *acquisition) withdraw() {
	set, isSet := a.wish.(*set)
	if isSet && a.isInDoubt {
		go set.releaseUnheard(a.cluster, now().add(a.client.settings.releaseTimeout))
	}
}

// releaseUnheard asks for the fence that is in force. No other hold has this holder: whatever else
// is in force stays so.
func (s *set) releaseUnheard(c *cluster, deadline instant) {
	ask := question{call{Key: s.key}.lines("GET /v1/fence"), deadline, s.check}
	told, err := c.askByToken(context.Background(), nil, ask)
	if err != nil {
		return
	}
	said, err := parseAnswer(told)
	if err == nil && said.Held {
		release := question{s.releaseLines(grant{fence: said.Token}), deadline, s.check}
		c.askByToken(context.Background(), nil, release)
	}
}
