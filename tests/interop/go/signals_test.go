// Publish and subscribe.
//
// That something is *not* heard is shown by a last signal that is: one speaker's signals arrive in
// order.

package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mtingers/dflockd/client"
)

func TestEveryoneWhoListensHears(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first, second, speaker := newSignals(t, s), newSignals(t, s), newSignals(t, s)
	expectToReach(t, speaker, "orders.42", "nobody hears", 0)
	succeed(t, first.Listen("orders.42"))
	succeed(t, second.Listen("orders.42"))
	expectToReach(t, speaker, "orders.42", "paid, and in full", 2)
	expectToHear(t, first, "orders.42", "paid, and in full")
	expectToHear(t, second, "orders.42", "paid, and in full")
}

func TestWhoNoLongerListensHearsNothing(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	listener, speaker := listeningTo(t, s, "a.*"), newSignals(t, s)
	succeed(t, listener.Listen("b.*", client.WithGroup("g")))
	expectToReach(t, speaker, "a.1", "x", 1)
	expectToReach(t, speaker, "b.1", "x", 1)
	succeed(t, listener.Unlisten("a.*"))
	succeed(t, listener.Unlisten("b.*", client.WithGroup("g")))
	succeed(t, listener.Unlisten("never.listened.to"))
	expectToReach(t, speaker, "a.2", "x", 0)
	expectToReach(t, speaker, "b.2", "x", 0)
	expectToReach(t, speaker, "end", "x", 1)
	expect(t, heardUntilTheEnd(t, listener), []string{"a.1", "b.1"})
}

func TestInOrderAmidHeartbeats(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	often := client.WithHeartbeatInterval(10 * time.Millisecond)
	listener, speaker := newSignals(t, s, often), newSignals(t, s, often)
	succeed(t, listener.Listen("n"))
	for number := range 300 {
		expectToReach(t, speaker, "n", fmt.Sprint(number), 1)
		expectToHear(t, listener, "n", fmt.Sprint(number))
	}
}

func TestPayloadsArriveAsTheyWere(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	listener, speaker := newSignals(t, s), newSignals(t, s)
	succeed(t, listener.Listen("n"))
	longest := strings.Repeat("x", 65_536-5-len("n"))
	for _, payload := range []string{"  two  spaces ", "日本", `{"json": "\\"}`, longest} {
		expectToReach(t, speaker, "n", payload, 1)
		expectToHear(t, listener, "n", payload)
	}
}

func TestABareConnectionPublishesAsWell(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	listener := listeningTo(t, s, "a.*")
	reached, err := client.Emit(dial(t, s), "a.1", "x")
	succeed(t, err)
	expect(t, reached, 1)
	expectToHear(t, listener, "a.1", "x")
}

func newSignals(t *testing.T, s *server, options ...client.SignalConnOption) *client.SignalConn {
	t.Helper()
	return overConnection(t, dial(t, s), options...)
}

func overConnection(t *testing.T, conn *client.Conn,
	options ...client.SignalConnOption) *client.SignalConn {
	signals := client.NewSignalConn(conn, options...)
	t.Cleanup(func() { signals.Close() })
	return signals
}

func listeningTo(t *testing.T, s *server, patterns ...string) *client.SignalConn {
	t.Helper()
	listener := newSignals(t, s)
	for _, pattern := range append(patterns, "end") {
		succeed(t, listener.Listen(pattern))
	}
	return listener
}

func expectToReach(t *testing.T, speaker *client.SignalConn, channel, payload string, count int) {
	t.Helper()
	reached, err := speaker.Emit(channel, payload)
	succeed(t, err)
	expect(t, reached, count)
}

func expectToHear(t *testing.T, listener *client.SignalConn, channel, payload string) {
	t.Helper()
	expect(t, next(t, listener), client.Signal{Channel: channel, Payload: payload})
}

// The channels of all signals that came before the last.
func heardUntilTheEnd(t *testing.T, listener *client.SignalConn) (channels []string) {
	t.Helper()
	for signal := next(t, listener); signal.Channel != "end"; signal = next(t, listener) {
		channels = append(channels, signal.Channel)
	}
	return channels
}

func next(t *testing.T, listener *client.SignalConn) client.Signal {
	t.Helper()
	select {
	case signal, open := <-listener.Signals():
		expect(t, open, true)
		return signal
	case <-time.After(patience):
		t.Fatal("no signal came")
	}
	panic("unreachable")
}
