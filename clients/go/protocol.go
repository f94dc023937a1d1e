package lockd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The line protocol: the requests as they are sent, and what the replies mean. Nothing here waits.

// Bounds, in bytes where nothing else is said.
const (
	nameSizeMax   = 256    // of a request's line
	longSizeMax   = 65_536 // of that with a secret or a payload
	signalFraming = 5      // "sig " and the blank behind the channel
	tokenSizeMax  = 240    // what fits a request's line, its lease behind it
	shownSizeMax  = 80
	fenceDigits   = 16
	secondsMax    = 9_223_372_036
	limitMax      = math.MaxInt32
	// leaseBesidePermits is named, in seconds, where none was given: on the wire permits stand
	// behind a lease. It is what servers have by default.
	leaseBesidePermits = 33
)

// Requests that are always the same, and the beginnings of pushed lines.
const (
	barrierLines = "barrier\n_\n_\n"
	pingLines    = "ping\n_\n_\n"
	statsLines   = "stats\n_\n_\n"
	pushSignal   = "sig "
	pushLost     = "lost "
)

var (
	// errQueued is a place in the queue rather than a grant.
	errQueued = errors.New("queued")
	// errTimeout is the server's word that its wait is over.
	errTimeout = errors.New("the server says that the wait is over")
	// errEarly is a server's end of a wait before the client's own.
	errEarly = errors.New("the server ended the wait too early")
)

var statusKinds = map[string]error{
	"queued":                 errQueued,
	"timeout":                errTimeout,
	"error_already_enqueued": ErrAlreadyEnqueued,
	"error_not_enqueued":     ErrNotEnqueued,
	"error_lease_expired":    ErrLeaseExpired,
	"error_max_locks":        ErrMaxLocks,
	"error_max_waiters":      ErrMaxWaiters,
	"error_max_holds":        ErrMaxHolds,
	"error_limit_mismatch":   ErrLimitMismatch,
	"error_mode_mismatch":    ErrModeMismatch,
	"error_permits_mismatch": ErrPermitsMismatch,
	"error_storage":          ErrStorage,
	"error_not_leader":       ErrNotLeader,
	"error_draining":         ErrDraining,
	"error_auth":             ErrUnauthorized,
	"error_denied":           ErrDenied,
}

// --- requests ---

// wish is what is asked for: how, and what the answers mean. It is constant.
type wish interface {
	// isPlain says whether every server of the protocol understands it, dflockd's own too.
	isPlain() bool
	// nameWait is what a request names for a wait: never less.
	nameWait(left time.Duration) time.Duration
	acquireLines(wait time.Duration, as string) string
	renewLines(grant) string
	releaseLines(grant) string

	// check is what the answer says if it is no success.
	check(reply) error
	parseGrant(reply) (grant, error)
	parseRenewal(reply, grant) (time.Duration, error)
	// conflict is who was in the way, according to the answer or asked of the server.
	conflict(context.Context, *conn, reply) conflict
}

func lines(command, key, argument string) string {
	return command + "\n" + key + "\n" + argument + "\n"
}

func words(parts ...string) string {
	var given []string
	for _, part := range parts {
		if part != "" {
			given = append(given, part)
		}
	}
	return strings.Join(given, " ")
}

// number leaves out what was not asked for.
func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func (r *request) command(name string) string {
	if r.limit > 0 {
		return "s" + name
	}
	return name
}

// isPlain is false of what dflockd's own server does not know.
func (r *request) isPlain() bool { return !r.isShared && r.permits == 0 }

// nameWait rounds up to whole seconds.
func (r *request) nameWait(left time.Duration) time.Duration {
	return time.Duration(min(wholeSeconds(left), waitSecondsMax)) * time.Second
}

func (r *request) acquireLines(wait time.Duration, as string) string {
	return lines(r.command("l"), r.key, words(seconds(wait), r.share(), as))
}

func (r *request) enqueueLines(as string) string {
	return lines(r.command("e"), r.key, words(r.share(), as))
}

// share is what is wanted of the key, and for how long.
func (r *request) share() string {
	mode := ""
	if r.isShared {
		mode = "shared"
	}
	return words(number(r.limit), number(r.leaseSeconds), number(r.permits), mode)
}

func (r *request) awaitLines(wait time.Duration) string {
	return lines(r.command("w"), r.key, seconds(wait))
}

// The lease is named, since there are servers that forget what was granted.
func (r *request) renewLines(g grant) string {
	return lines(r.command("n"), r.key, words(g.token, number(int64(g.lease/time.Second))))
}

func (r *request) releaseLines(g grant) string {
	return lines(r.command("r"), r.key, g.token)
}

func (r *request) check(answer reply) error {
	_, err := parseStatus(answer.line)
	return err
}

func (r *request) parseGrant(answer reply) (grant, error) {
	return parseGrant(answer, r.leaseSeconds)
}

func (r *request) parseRenewal(answer reply, g grant) (time.Duration, error) {
	return parseRenewal(answer, g.lease)
}

// newAcquisitionWord makes the secret by which a server knows an acquisition that is asked for
// again.
func newAcquisitionWord() (string, error) {
	secret, err := newSecret()
	return "as=" + secret, err
}

func newSecret() (string, error) {
	var secret [8]byte
	_, err := rand.Read(secret[:])
	return hex.EncodeToString(secret[:]), err
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

// wholeSeconds rounds up.
func wholeSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return seconds
}

// --- what may be sent ---

// isName says whether the text may be a key, and whatever else is named on a line of its own.
func isName(text string) bool { return text != "" && isPlain(text) }

func isPlain(text string) bool {
	return len(text) <= nameSizeMax && utf8.ValidString(text) && !hasControl(text)
}

func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func checkPattern(pattern string) error {
	tokens := strings.Split(pattern, ".")
	for i, token := range tokens {
		isLast := i == len(tokens)-1
		if token != "*" && !(token == ">" && isLast) && strings.ContainsAny(token, "*>") {
			return invalid("in a pattern * and > are whole tokens, and > is the last")
		}
	}
	if !isName(pattern) {
		return invalid("a pattern is tokens joined by dots, 1 to 256 bytes in all")
	}
	return nil
}

func checkGroup(group string) error {
	if isPlain(group) && strings.Trim(group, " \t") == group {
		return nil
	}
	return invalid("a group is a name as keys are, without blanks around it")
}

func checkSignal(channel, payload string) error {
	if !isName(channel) || strings.ContainsAny(channel, "*> ") {
		return invalid("a channel is tokens joined by dots, without blanks, * and >")
	}
	fits := len(payload) <= longSizeMax-signalFraming-len(channel)
	if fits && strings.TrimSpace(payload) != "" && !strings.Contains(payload, "\n") &&
		!strings.HasSuffix(payload, "\r") {
		return nil
	}
	return invalid("a payload is one line, not blank, of at most 65531 bytes with its channel")
}

// --- replies ---

// grant is what a server gave: the token names it, on any connection.
type grant struct {
	token string
	fence uint64
	lease time.Duration

	sentAt    instant       // when it was asked for, or for its latest renewal
	remaining time.Duration // from then on, at least
}

func (g grant) certainUntil() instant { return g.sentAt.add(g.remaining) }

func (g grant) renewAt() instant { return g.sentAt.add(g.remaining / 3) }

// parseStatus returns the words behind ok and acquired, and everything else as an error.
func parseStatus(reply string) (rest string, err error) {
	word, rest, _ := strings.Cut(reply, " ")
	if word == "ok" || word == "acquired" {
		return rest, nil
	}
	if kind, known := statusKinds[word]; known {
		failed := failure(kind, "")
		if kind == ErrNotLeader && rest != "-" {
			failed.leader, _, _ = strings.Cut(rest, " ")
		}
		return "", failed
	}
	if word == "error" {
		return "", failure(ErrRefused, "")
	}
	if strings.HasPrefix(word, "error") {
		return "", &Error{Kind: ErrRefused, Detail: "it says " + shown(reply), isStrange: true}
	}
	return "", garbled(reply)
}

func parseGrant(from reply, askedSeconds int64) (grant, error) {
	rest, err := parseStatus(from.line)
	if err != nil {
		return grant{}, err
	}
	token, rest, _ := strings.Cut(rest, " ")
	seconds, err := parseWhole(rest)
	if err != nil || seconds < 1 || !isToken(token) {
		return grant{}, garbled(from.line)
	}
	lease := leaseOf(seconds, askedSeconds)
	given := grant{token: token, fence: fenceOf(token), lease: lease}
	given.sentAt, given.remaining = from.sentAt, lease
	return given, nil
}

// parseRenewal returns for how long the lease runs from the request on.
func parseRenewal(from reply, lease time.Duration) (time.Duration, error) {
	rest, err := parseStatus(from.line)
	if err != nil {
		return 0, err
	}
	seconds, err := parseWhole(rest)
	if err != nil {
		return 0, garbled(from.line)
	}
	// A server that rounds down calls a lease of one second 0.
	return min(leaseOf(max(seconds, 1), 0), lease), nil
}

func parseCount(from reply) (int, error) {
	rest, err := parseStatus(from.line)
	if err != nil {
		return 0, err
	}
	count, err := parseWhole(rest)
	if err != nil {
		return 0, garbled(from.line)
	}
	return int(count), nil
}

// isToken says whether the word can be sent back as it came.
func isToken(word string) bool {
	isStrange := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	return word != "" && len(word) <= tokenSizeMax && !strings.ContainsFunc(word, isStrange)
}

// parseWhole reads the first word. More may follow it one day.
func parseWhole(rest string) (int64, error) {
	word, _, _ := strings.Cut(rest, " ")
	whole, err := strconv.ParseUint(word, 10, 63)
	return int64(whole), err
}

// leaseOf believes in no more than was asked for.
func leaseOf(seconds, askedSeconds int64) time.Duration {
	if askedSeconds > 0 {
		seconds = min(seconds, askedSeconds)
	}
	return time.Duration(min(seconds, secondsMax)) * time.Second
}

// fenceOf is the first half of the token: 0 where that is no number.
func fenceOf(token string) uint64 {
	if len(token) < fenceDigits {
		return 0
	}
	fence, err := strconv.ParseUint(token[:fenceDigits], 16, 64)
	if err != nil {
		return 0
	}
	return fence
}

// parseLost splits what stands behind "lost ".
func parseLost(rest string) (token string, cause LossCause) {
	token, rest, _ = strings.Cut(rest, " ")
	word, _, _ := strings.Cut(rest, " ")
	return token, LossCause(word)
}

func parseSignal(rest string) Signal {
	channel, payload, _ := strings.Cut(rest, " ")
	return Signal{Channel: channel, Payload: payload}
}

// parseConflict reads the answer to GET /v1/locks of one key: its locks and semaphores.
func parseConflict(line string, r *request) conflict {
	text, isDone := strings.CutPrefix(line, "ok 200 ")
	if !isDone {
		return conflict{}
	}
	var page struct {
		Locks []struct {
			Kind    string
			Waiters int
			Holds   []struct{ Holder, Client string }
		}
	}
	if json.Unmarshal([]byte(text), &page) != nil {
		return conflict{}
	}
	for _, lock := range page.Locks {
		if (lock.Kind == "semaphore") == (r.limit > 0) && len(lock.Holds) > 0 {
			first := lock.Holds[0]
			return conflict{holder: first.Holder, client: first.Client, waiters: lock.Waiters}
		}
	}
	return conflict{}
}

// saysGone says whether the answer to a renewal or a release is that the token names nothing.
func saysGone(err error) bool {
	var known *Error
	if errors.As(err, &known) && known.isStrange {
		return false
	}
	return isAny(err, ErrRefused, ErrLeaseExpired, ErrNotEnqueued)
}

func garbled(reply string) error { return failure(ErrGarbled, shown(reply)) }

// shown is what a peer has sent, as it may be shown to people.
func shown(text string) string {
	if len(text) > shownSizeMax {
		return strconv.Quote(text[:shownSizeMax] + "...")
	}
	return strconv.Quote(text)
}
