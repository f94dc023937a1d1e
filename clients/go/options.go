package lockd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Option is a setting of a client. See [New].
type Option func(*settings) error

// settings are constant once the client is made.
type settings struct {
	servers        []string
	cluster        []string
	token          string
	tokenFile      string
	tls            *tls.Config // nil: plain text
	identity       identity
	connectTimeout time.Duration
	replyTimeout   time.Duration
	releaseTimeout time.Duration
	pingInterval   time.Duration
}

type identity struct{ name, note string }

// Servers are independent servers that share the keys among them, by [ShardOf]. All clients must
// give the same list in the same order. An address is host or host:port. Without Servers and
// [Cluster] it is 127.0.0.1.
func Servers(addresses ...string) Option {
	return func(s *settings) error {
		s.servers = append(s.servers, addresses...)
		return nil
	}
}

// Cluster is the servers of one cluster, of which one leads, in any order: at most 16. The leader
// is looked for among these, whomever they name, and never elsewhere.
func Cluster(addresses ...string) Option {
	return func(s *settings) error {
		s.cluster = append(s.cluster, addresses...)
		return nil
	}
}

// Token is the auth token, which the server asks for.
func Token(token string) Option {
	return func(s *settings) error {
		s.token = token
		return checkToken(token)
	}
}

// TokenFile is a file with the auth token and nothing else. It is read for every connection, so
// that a token that was changed is used.
func TokenFile(path string) Option {
	return func(s *settings) error {
		s.tokenFile = path
		_, err := s.authToken()
		return err
	}
}

// TLS connects by TLS 1.2 or later. The server's certificate must lead to the roots of the
// configuration, or to the system's, and must name the host as it was given, or the configuration's
// ServerName. A nil configuration is an empty one; one that is given is copied.
func TLS(config *tls.Config) Option {
	return func(s *settings) error {
		if config != nil {
			s.tls = config.Clone()
		}
		s.secured()
		return nil
	}
}

// CAFile connects by TLS, and believes the certificate authorities of this file, in PEM, and no
// others.
func CAFile(path string) Option {
	return func(s *settings) error {
		text, err := readRegularFile(path)
		if err != nil {
			return &Error{Kind: ErrInvalid, Err: err}
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(text) {
			return invalid(path + " has no certificate in PEM")
		}
		s.secured().RootCAs = roots
		return nil
	}
}

// Certificate connects by TLS, with a certificate and its key, in PEM, for servers that ask who we
// are. The files are read for every connection that asks.
func Certificate(certFile, keyFile string) Option {
	load := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		certificate, err := readRegularFile(certFile)
		if err != nil {
			return nil, err
		}
		key, err := readRegularFile(keyFile)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(certificate, key)
		return &pair, err
	}
	return func(s *settings) error {
		if _, err := load(nil); err != nil {
			return &Error{Kind: ErrInvalid, Err: err}
		}
		s.secured().GetClientCertificate = load
		return nil
	}
}

// Name is who the client says it is, to servers that want to know. Without it that is
// user@host:pid.
func Name(name string) Option {
	return func(s *settings) error {
		s.identity.name = name
		if !isName(name) {
			return invalid("a name is 1 to 256 bytes of UTF-8 without control characters")
		}
		return nil
	}
}

// Note is what the client says beside its name. Without it that is the program's base name.
func Note(note string) Option {
	return func(s *settings) error {
		s.identity.note = note
		if !isPlain(note) {
			return invalid("a note is at most 256 bytes of UTF-8 without control characters")
		}
		return nil
	}
}

// ConnectTimeout bounds the host's name, TCP, TLS and the auth token together; of a cluster, the
// search for its leader. It is 10 seconds.
func ConnectTimeout(d time.Duration) Option {
	return timeout(d, func(s *settings) *time.Duration { return &s.connectTimeout })
}

// ReplyTimeout bounds a reply, beyond what the request asked to wait. It is 10 seconds.
func ReplyTimeout(d time.Duration) Option {
	return timeout(d, func(s *settings) *time.Duration { return &s.replyTimeout })
}

// ReleaseTimeout bounds a release, at however many servers. It is 5 seconds.
func ReleaseTimeout(d time.Duration) Option {
	return timeout(d, func(s *settings) *time.Duration { return &s.releaseTimeout })
}

func timeout(d time.Duration, of func(*settings) *time.Duration) Option {
	return func(s *settings) error {
		*of(s) = d
		if d <= 0 {
			return invalid("a timeout is positive")
		}
		return nil
	}
}

func newSettings(options []Option) (*settings, error) {
	s := &settings{
		identity:       defaultIdentity(),
		connectTimeout: 10 * time.Second,
		replyTimeout:   10 * time.Second,
		releaseTimeout: 5 * time.Second,
		pingInterval:   15 * time.Second,
	}
	for _, option := range options {
		if err := option(s); err != nil {
			return nil, err
		}
	}
	if len(s.servers) > 0 && len(s.cluster) > 0 {
		return nil, invalid("servers that share keys and one cluster are two things: give one")
	}
	if len(s.cluster) > clusterSizeMax {
		return nil, invalid("a cluster has at most 16 servers")
	}
	if s.token != "" && s.tokenFile != "" {
		return nil, invalid("the auth token is given, and its file as well: give one")
	}
	if len(s.servers)+len(s.cluster) == 0 {
		s.servers = []string{"127.0.0.1"}
	}
	return s, nil
}

// secured turns TLS on.
func (s *settings) secured() *tls.Config {
	if s.tls == nil {
		s.tls = &tls.Config{}
	}
	s.tls.MinVersion = max(s.tls.MinVersion, tls.VersionTLS12)
	return s.tls
}

// authToken is empty when there is none.
func (s *settings) authToken() (string, error) {
	if s.tokenFile == "" {
		return s.token, nil
	}
	text, err := readRegularFile(s.tokenFile)
	if err != nil {
		return "", &Error{Kind: ErrInvalid, Err: err}
	}
	// A server's own file may have two while they are changed: the first is as good as the other.
	for _, line := range strings.Split(string(text), "\n") {
		if token := strings.TrimSpace(line); token != "" {
			return token, checkToken(token)
		}
	}
	return "", invalid(s.tokenFile + " has no auth token")
}

// readRegularFile refuses a FIFO, which would keep the caller waiting for its writer.
func readRegularFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New(path + " is not a regular file")
	}
	return os.ReadFile(path)
}

func checkToken(token string) error {
	if len(token) <= longSizeMax && !strings.ContainsAny(token, "\r\n") {
		return nil
	}
	return invalid("an auth token is one line of at most 65536 bytes")
}

// defaultIdentity never names the program's arguments: they may hold secrets.
func defaultIdentity() identity {
	who, host := "unknown", "unknown"
	if current, err := user.Current(); err == nil {
		who = current.Username
	}
	if name, err := os.Hostname(); err == nil {
		host = name
	}
	program := ""
	if len(os.Args) > 0 {
		program = filepath.Base(os.Args[0])
	}
	return identity{
		name: cleaned(who + "@" + host + ":" + strconv.Itoa(os.Getpid())),
		note: cleaned(program),
	}
}

// cleaned makes a name of whatever the system says.
func cleaned(text string) string {
	text = strings.ToValidUTF8(text, "?")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, text)
	if len(text) > nameSizeMax {
		text = strings.ToValidUTF8(text[:nameSizeMax], "")
	}
	return text
}

// --- acquisitions ---

// AcquireOption is a setting of one acquisition. See [Client.Acquire].
type AcquireOption func(*request) error

// forever is the wait of those who named none.
const forever time.Duration = -1

// request is what is asked for. It is constant once it is made.
type request struct {
	key          string
	keys         []string // all of them: key is the first
	limit        int64    // of a semaphore; 0: a lock
	permits      int64    // of the limit; 0: one, and nothing is said of it
	isShared     bool     // a lock that is not held alone
	leaseSeconds int64    // 0: the server's default
	wait         time.Duration
	maxHold      time.Duration // 0: none
	onLost       func(error)
}

// Wait bounds how long to wait, in the queue or for a server that is down: the acquisition then
// ends with [ErrNotAcquired]. Zero is a try. Without it only the context bounds the wait.
func Wait(d time.Duration) AcquireOption {
	return func(r *request) error {
		r.wait = d
		if d < 0 {
			return invalid("a wait is not negative")
		}
		return nil
	}
}

// Lease is for how long the server lets a silent client hold on, rounded up to whole seconds. The
// client renews it whenever a third of it has passed. Without it the server's default holds.
func Lease(d time.Duration) AcquireOption {
	return func(r *request) error {
		r.leaseSeconds = wholeSeconds(d)
		if d <= 0 || r.leaseSeconds > secondsMax {
			return invalid("a lease is 1 to 9223372036 seconds")
		}
		return nil
	}
}

// MaxHold ends the renewals after this time, counted from the grant, so that a program that is
// stuck does not hold for ever. What is held is then lost when the lease in force runs out.
func MaxHold(d time.Duration) AcquireOption {
	return func(r *request) error {
		r.maxHold = d
		if d <= 0 {
			return invalid("the longest time to hold is positive")
		}
		return nil
	}
}

// Shared asks for a lock that any number may hold together, while nobody holds it alone. Whoever
// waits to hold it alone is overtaken by nobody. Servers that are not of this project do not know
// it: [ErrUnsupported].
func Shared() AcquireOption {
	return func(r *request) error {
		r.isShared = true
		return nil
	}
}

// Semaphore asks for one of the permits of a semaphore, of which there are so many; for more than
// one with [Permits]. Locks and semaphores of the same key have nothing to do with each other.
func Semaphore(limit int) AcquireOption {
	return func(r *request) error {
		r.limit = int64(limit)
		if limit < 1 || int64(limit) > limitMax {
			return invalid("a semaphore's limit is 1 to 2147483647")
		}
		return nil
	}
}

// Permits is how many permits of a [Semaphore] to ask for, 1 to its limit: one without it. More than
// one cannot be asked for without a lease: it is 33 seconds unless [Lease] says otherwise. Servers
// that are not of this project know of one only: [ErrUnsupported].
func Permits(count int) AcquireOption {
	return func(r *request) error {
		r.permits = int64(count)
		if count < 1 {
			return invalid("permits are 1 to the limit of the semaphore")
		}
		return nil
	}
}

// OnLost has a function called, once, with a [*LostError] when the lock is lost; not for a release.
// It is called in a goroutine of its own.
func OnLost(call func(error)) AcquireOption {
	return func(r *request) error {
		r.onLost = call
		return nil
	}
}

func newRequest(key string, options []AcquireOption) (*request, error) {
	r := &request{key: key, keys: []string{key}, wait: forever}
	var failures []error
	if !isName(key) {
		why := "a key is 1 to 256 bytes of UTF-8 without control characters"
		failures = append(failures, invalid(why))
	}
	for _, option := range options {
		failures = append(failures, option(r))
	}
	failures = append(failures, r.completeShare())
	return r, errors.Join(failures...)
}

// completeShare is for what is wanted of the key, once all of it was said.
func (r *request) completeShare() error {
	switch {
	case r.isShared && r.limit > 0:
		return invalid("a semaphore is shared by its permits: give Semaphore or Shared")
	case r.permits > 1 && r.limit == 0:
		return invalid("permits are those of a semaphore: give Semaphore, too")
	case r.permits > 1 && r.permits > r.limit:
		return invalid("permits are 1 to the limit of the semaphore")
	}
	if r.permits == 1 {
		r.permits = 0
	}
	if r.permits > 0 && r.leaseSeconds == 0 {
		r.leaseSeconds = leaseBesidePermits
	}
	return nil
}
