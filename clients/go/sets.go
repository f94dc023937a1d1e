package lockd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Several at once: calls of the HTTP API, over the line protocol's command api.

const (
	itemsMax = 64
	// withdrawalMs is the lease of what is asked for only to be released.
	withdrawalMs = 1000
)

// SetItem is one of several that are wanted at once: a lock, or permits of a semaphore when it has a
// limit.
type SetItem struct {
	Key     string
	Shared  bool // a lock that is not held alone
	Limit   int  // of a semaphore; 0: a lock
	Permits int  // of the limit; 0: one
}

// AcquireAll waits for all of several locks at once, each held alone: [Client.AcquireItems] of these
// keys.
func (c *Client) AcquireAll(
	ctx context.Context, keys []string, options ...AcquireOption,
) (*Held, error) {
	var items []SetItem
	for _, key := range keys {
		items = append(items, SetItem{Key: key})
	}
	return c.AcquireItems(ctx, items, options...)
}

// AcquireItems waits for all of several at once, 1 to 64: no part of them is ever held. They have
// one fence, larger than any that was granted for one of them before, and are renewed, lost and
// released together. The options are those of [Client.Acquire], but for those of semaphores and
// [Shared], which each item says for itself.
//
// They are held by a name, and not by a connection: should the program die, they end with their
// lease, and not before. Of several servers one must have all the keys. Servers that are not of this
// project do not know it: [ErrUnsupported].
func (c *Client) AcquireItems(
	ctx context.Context, items []SetItem, options ...AcquireOption,
) (*Held, error) {
	set, err := c.newSet(items, options)
	if err != nil {
		return nil, named(err, "acquire", strings.Join(keysOf(items), ", "))
	}
	a, err := c.newAcquisition(ctx, set.request, set)
	if err != nil {
		return nil, named(err, "acquire", set.key)
	}
	return a.run()
}

// set is all of several, held by a name of its own: what is so held lives by its lease alone.
type set struct {
	*request
	items  []item // none: the keys say all there is to say
	holder string
}

func (c *Client) newSet(items []SetItem, options []AcquireOption) (*set, error) {
	if err := c.checkItems(items); err != nil {
		return nil, err
	}
	request, err := newRequest(items[0].Key, options)
	if err != nil {
		return nil, err
	}
	if request.limit > 0 || request.isShared {
		return nil, invalid("of a set each item says whether it is shared, or a semaphore")
	}
	request.keys = keysOf(items)
	secret, err := newSecret()
	if err != nil {
		return nil, err
	}
	return &set{request: request, items: itemsOf(items), holder: c.holderName(secret)}, nil
}

func keysOf(items []SetItem) []string {
	var keys []string
	for _, one := range items {
		keys = append(keys, one.Key)
	}
	return keys
}

// checkItems looks for what no server would take.
func (c *Client) checkItems(items []SetItem) error {
	seen := map[SetItem]bool{}
	for _, one := range items {
		if err := one.check(); err != nil {
			return err
		}
		if c.clusterOf(one.Key) != c.clusterOf(items[0].Key) {
			return invalid("the keys live on different servers")
		}
		seen[SetItem{Key: one.Key, Limit: min(one.Limit, 1)}] = true
	}
	if len(items) < 1 || len(items) > itemsMax || len(seen) < len(items) {
		return invalid("a set is 1 to 64 different locks and semaphores")
	}
	return nil
}

func (i SetItem) check() error {
	wanted := request{isShared: i.Shared, limit: int64(i.Limit), permits: int64(i.Permits)}
	switch {
	case !isName(i.Key):
		return invalid("a key is 1 to 256 bytes of UTF-8 without control characters")
	case i.Limit < 0 || int64(i.Limit) > limitMax:
		return invalid("a semaphore's limit is 1 to 2147483647")
	case i.Permits < 0:
		return invalid("permits are 1 to the limit of the semaphore")
	}
	return wanted.completeShare()
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
	Items  []item   `json:"items,omitempty"`
	Holder string   `json:"holder,omitempty"`
	Token  uint64   `json:"token,omitempty"`
	TTLMs  int64    `json:"ttl_ms,omitempty"`
	WaitMs int64    `json:"wait_ms,omitempty"`
}

// item is a [SetItem] as the API has it.
type item struct {
	Key     string `json:"key"`
	Kind    string `json:"kind,omitempty"`
	Mode    string `json:"mode,omitempty"`
	Limit   int    `json:"limit,omitempty"`
	Permits int    `json:"permits,omitempty"`
}

// itemsOf returns none if all are locks that are held alone.
func itemsOf(items []SetItem) []item {
	var all []item
	isOfKeys := true
	for _, one := range items {
		wanted := item{Key: one.Key}
		if one.Limit > 0 {
			wanted.Kind, wanted.Limit, wanted.Permits = "semaphore", one.Limit, one.Permits
		} else if one.Shared {
			wanted.Mode = "shared"
		}
		isOfKeys = isOfKeys && wanted == item{Key: one.Key}
		all = append(all, wanted)
	}
	if isOfKeys {
		return nil
	}
	return all
}

// call names what the set is of.
func (s *set) call() call {
	if s.items != nil {
		return call{Items: s.items, Holder: s.holder}
	}
	return call{Keys: s.keys, Holder: s.holder}
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
	asked := s.call()
	asked.TTLMs, asked.WaitMs = s.leaseSeconds*1000, wait.Milliseconds()
	return asked.lines("POST /v1/acquire")
}

func (s *set) renewLines(g grant) string {
	renewed := s.call()
	renewed.Token, renewed.TTLMs = g.fence, g.lease.Milliseconds()
	return renewed.lines("POST /v1/renew")
}

func (s *set) releaseLines(g grant) string {
	released := s.call()
	released.Token = g.fence
	return released.lines("POST /v1/release")
}

// takeBackLines ask for a grant that nobody may have heard of, in order to release it.
func (s *set) takeBackLines() string {
	asked := s.call()
	asked.TTLMs = withdrawalMs
	return asked.lines("POST /v1/acquire")
}

// --- answers ---

// answer is what an answer may say.
type answer struct {
	Error, Detail, Key string
	Token              uint64
	TTLMs              int64         `json:"ttl_ms"`
	NotHeld            []releasedKey `json:"not_held"`
	Conflicts          []struct {
		HeldBy  struct{ Holder, Client string } `json:"held_by"`
		Waiters int
	}
}

// releasedKey is a string where keys were asked for, and has a key where items were.
type releasedKey string

func (k *releasedKey) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, (*string)(k)) == nil {
		return nil
	}
	var named item
	err := json.Unmarshal(text, &named)
	*k = releasedKey(named.Key)
	return err
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
		return said, failure(ErrRefused, shown(string(said.NotHeld[0]))+" is held no more")
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
	said := "it says " + shown(a.Error+": "+a.Detail)
	return &Error{Kind: ErrRefused, Detail: said, isStrange: true}
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
		if by := one.HeldBy; by.Holder != "" {
			return conflict{holder: by.Holder, client: by.Client, waiters: one.Waiters}
		}
	}
	return conflict{}
}

// --- giving up ---

// withdraw releases, without waiting for it, what may have been granted and was handed out to
// nobody: a set, which the end of a connection does not release, and a late grant that its caller
// gave up, since auto-release may be off. What cannot be told is left to the lease.
func (a *acquisition) withdraw() {
	deadline := now().add(a.client.settings.releaseTimeout)
	set, isSet := a.wish.(*set)
	switch {
	case isSet && a.isInDoubt:
		go set.releaseUnheard(a.cluster, deadline)
	case !isSet && a.late != nil && a.ctx.Err() != nil:
		release := question{a.wish.releaseLines(*a.late), deadline, a.wish.check}
		go a.cluster.askByToken(context.Background(), nil, release)
	}
}

// releaseUnheard asks again: who does so under its name gets its own grant back, and no other hold
// has this name.
func (s *set) releaseUnheard(c *cluster, deadline instant) {
	ask := question{s.takeBackLines(), deadline, s.check}
	told, err := c.askByToken(context.Background(), nil, ask)
	if err != nil {
		return
	}
	if said, err := parseAnswer(told); err == nil {
		release := question{s.releaseLines(grant{fence: said.Token}), deadline, s.check}
		c.askByToken(context.Background(), nil, release)
	}
}
