// Leases that the client renews by itself, and leases that nobody renews.

package interop

import (
	"strconv"
	"testing"
	"time"

	"github.com/mtingers/dflockd/client"
)

const (
	renewedLease = 8 // seconds
	// A busy machine may be late by most of the lease.
	renewRatio = 0.15
	twoLeases  = 17 * time.Second
)

func TestALockIsRenewedForAsLongAsItIsHeld(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	holder, contender := renewedLock(t, s), newLock(t, "diamond", s)
	acquire(t, holder)
	contender.AcquireTimeout = twoLeases
	expectToStayHeld(t, holder, contender)
}

func TestSoIsASlotOfASemaphore(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	holder, contender := newSemaphore(t, "pool", 1, s), newSemaphore(t, "pool", 1, s)
	holder.LeaseTTL, holder.RenewRatio = renewedLease, renewRatio
	acquire(t, holder)
	contender.AcquireTimeout = twoLeases
	expectToStayHeld(t, holder, contender)
}

func TestTheServerNamesTheLeaseOfThoseWhoNameNone(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--default-lease-ttl", strconv.Itoa(renewedLease))
	holder, contender := renewedLock(t, s), newLock(t, "diamond", s)
	holder.LeaseTTL = 0
	acquire(t, holder)
	contender.AcquireTimeout = twoLeases
	expectToStayHeld(t, holder, contender)
}

func TestALeaseThatNobodyRenewsEndsAndNotEarly(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first, second := dial(t, s), dial(t, s)
	began := time.Now()
	token, ttl, err := client.Acquire(first, "diamond", 0, client.WithLeaseTTL(2))
	succeed(t, err)
	expect(t, ttl, 2)
	_, ttl, err = client.Acquire(second, "diamond", longWait, client.WithLeaseTTL(lease))
	succeed(t, err)
	expect(t, ttl, lease)
	expectAtLeast(t, began, 2*time.Second)
	_, err = client.Renew(first, "diamond", token)
	expectError(t, err, client.ErrServer)
	expectError(t, client.Release(first, "diamond", token), client.ErrServer)
	expect(t, s.held(), []string{"diamond"})
}

func renewedLock(t *testing.T, s *server) *client.Lock {
	lock := newLock(t, "diamond", s)
	lock.LeaseTTL, lock.RenewRatio = renewedLease, renewRatio
	lock.OnRenewError = func(err error) { t.Errorf("not renewed: %v", err) }
	return lock
}

// The contender waits for two leases in vain, and gets it once it is released.
func expectToStayHeld(t *testing.T, holder, contender possession) {
	t.Helper()
	token := holder.Token()
	acquireInVain(t, contender)
	expect(t, holder.Token(), token)
	release(t, holder)
	acquire(t, contender)
}
