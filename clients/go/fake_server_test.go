package lockd

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeServer says what a test has it say. Each connection is played by the script, in a goroutine of
// its own, and is closed when that returns.
type fakeServer struct {
	t        *testing.T
	listener net.Listener
	script   func(*peer)

	mu    sync.Mutex
	peers []*peer
}

// peer is the server's end of one connection.
type peer struct {
	server *fakeServer
	number int // 0 is the first
	conn   net.Conn
	in     *bufio.Reader
}

func startFake(t *testing.T, script func(*peer)) *fakeServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeServer{t: t, listener: listener, script: script}
	go f.accept()
	t.Cleanup(f.stop)
	return f
}

func (f *fakeServer) accept() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		p := &peer{server: f, number: len(f.peers), conn: conn, in: bufio.NewReader(conn)}
		f.peers = append(f.peers, p)
		f.mu.Unlock()
		go func() {
			defer conn.Close()
			f.script(p)
		}()
	}
}

// stop is as the end of the process would be.
func (f *fakeServer) stop() {
	f.listener.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.peers {
		p.conn.Close()
	}
}

func (f *fakeServer) address() string { return f.listener.Addr().String() }

// connections is how many there have been.
func (f *fakeServer) connections() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.peers)
}

// request is the next request's command, key and argument; all are empty once the client has closed.
func (p *peer) request() (command, key, argument string) {
	var read [3]string
	for i := range read {
		line, err := p.in.ReadString('\n')
		if err != nil {
			return "", "", ""
		}
		read[i] = strings.TrimSuffix(line, "\n")
	}
	return read[0], read[1], read[2]
}

// expect reads a request of this command, and returns its argument.
func (p *peer) expect(command string) string {
	got, _, argument := p.request()
	if got != command {
		p.server.t.Errorf("connection %d: %q came instead of %q", p.number, got, command)
	}
	return argument
}

// greet lets the client introduce itself.
func (p *peer) greet() {
	p.expect("client")
	p.say("ok")
}

func (p *peer) say(line string) { io.WriteString(p.conn, line+"\n") }

// stay keeps the connection open until the client closes it; it answers nothing.
func (p *peer) stay() { io.Copy(io.Discard, p.in) }

// serve answers renewals and releases until the client closes.
func (p *peer) serve() {
	for {
		switch command, _, _ := p.request(); command {
		case "":
			return
		case "n", "sn":
			p.say("ok 30")
		default:
			p.say("ok")
		}
	}
}

const (
	fakeToken = "00000000000000070123456789abcdef"
	fakeFence = 7
)

// grants says that the request is granted.
func (p *peer) grants(lease string) { p.say("ok " + fakeToken + " " + lease) }

// silence is for what must not come.
const silence = 150 * time.Millisecond
