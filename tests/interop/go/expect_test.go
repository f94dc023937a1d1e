package interop

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

func succeed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func expectError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

func expectAtLeast(t *testing.T, began time.Time, length time.Duration) {
	t.Helper()
	if passed := time.Since(began); passed < length {
		t.Fatalf("early: only %v went by, not %v", passed, length)
	}
}

// Polls until it is; for what a client causes and cannot itself see.
func awaitThat(t *testing.T, what string, isTrue func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !isTrue(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("never came true: %s", what)
		}
	}
}
