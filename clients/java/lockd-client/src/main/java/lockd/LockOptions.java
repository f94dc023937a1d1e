package lockd;

import java.time.Duration;
import java.util.function.Consumer;

/**
 * How a lock is taken and kept. Immutable: each method returns a changed copy.
 *
 * <p>Unless changed, a lock is held alone, the wait has no bound, the lease is that of the client
 * (15 seconds by default), and the lock is renewed until it is released.
 */
public final class LockOptions {
  /** The options of a call that names none. */
  public static final LockOptions DEFAULT = new LockOptions();

  // A wait that the server counts as one without end.
  static final long MS_MAX = 9_223_372_036_000L;

  private Duration wait;
  private Duration lease;
  private Duration maxHold;
  private boolean isShared;
  private int limit;
  private int permits = 1;
  private boolean isRenewed = true;
  private String note;
  private Consumer<LockLostException> onLost;

  private LockOptions() {}

  /** Wait in the queue for at most this long. Zero is a try. */
  public LockOptions waitAtMost(Duration wait) {
    if (wait.isNegative()) throw new IllegalArgumentException("a wait is not negative");
    LockOptions copy = copy();
    copy.wait = wait;
    return copy;
  }

  /** The lease: for how long the server keeps the lock after the last renewal. At least 1 ms. */
  public LockOptions lease(Duration lease) {
    LockOptions copy = copy();
    copy.lease = checkLease(lease);
    return copy;
  }

  /**
   * Stop renewing after this time, so that a program that hangs does not hold the lock for ever.
   */
  public LockOptions maxHold(Duration maxHold) {
    if (maxHold.isNegative() || maxHold.isZero()) {
      throw new IllegalArgumentException("the longest time to hold is more than 0");
    }
    LockOptions copy = copy();
    copy.maxHold = maxHold;
    return copy;
  }

  /** Hold the lock together with all others who share it. */
  public LockOptions shared() {
    LockOptions copy = copy();
    copy.isShared = true;
    return copy;
  }

  /** Take one permit of a semaphore that has {@code limit} of them. */
  public LockOptions semaphore(int limit) {
    return semaphore(limit, 1);
  }

  /** Take several permits of a semaphore that has {@code limit} of them, all or none. */
  public LockOptions semaphore(int limit, int permits) {
    LockItem.semaphore("checked only", limit, permits);
    LockOptions copy = copy();
    copy.limit = limit;
    copy.permits = permits;
    return copy;
  }

  /** Never renew: the lock ends with its first lease, unless the program calls renew. */
  public LockOptions withoutRenewal() {
    LockOptions copy = copy();
    copy.isRenewed = false;
    return copy;
  }

  /** A text for operators who look at the lock, at most 256 bytes of UTF-8. */
  public LockOptions note(String note) {
    LockItem.checkName("a note", note);
    LockOptions copy = copy();
    copy.note = note;
    return copy;
  }

  /** Called once if the lock is lost, on a thread of the client. Not called after a release. */
  public LockOptions onLost(Consumer<LockLostException> onLost) {
    LockOptions copy = copy();
    copy.onLost = onLost;
    return copy;
  }

  Duration wait(Duration otherwise) {
    return wait == null ? otherwise : wait;
  }

  long leaseMs(Duration ofClient) {
    return Math.min((lease == null ? ofClient : lease).toMillis(), MS_MAX);
  }

  LockItem item(String key) {
    return new LockItem(key, isShared, limit, permits);
  }

  /** Whether the options say how a key is held, which the items of a set say instead. */
  boolean saysHow() {
    return isShared || limit > 0;
  }

  Duration maxHold() {
    return maxHold;
  }

  boolean isRenewed() {
    return isRenewed;
  }

  String note() {
    return note;
  }

  Consumer<LockLostException> onLost() {
    return onLost;
  }

  static Duration checkLease(Duration lease) {
    if (lease.toMillis() < 1) throw new IllegalArgumentException("a lease is at least 1 ms");
    return lease;
  }

  private LockOptions copy() {
    LockOptions copy = new LockOptions();
    copy.wait = wait;
    copy.lease = lease;
    copy.maxHold = maxHold;
    copy.isShared = isShared;
    copy.limit = limit;
    copy.permits = permits;
    copy.isRenewed = isRenewed;
    copy.note = note;
    copy.onLost = onLost;
    return copy;
  }
}
