package lockd;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/**
 * A lock that is held: it renews itself in the background and reports when it is lost. Several keys
 * that were acquired together are one {@code HeldLock}. Thread-safe.
 *
 * <p>The lock is certain until its lease is over, counted from when the last confirmed request was
 * sent. Past that moment it is lost for good, also if a confirmation arrives later.
 */
public final class HeldLock implements AutoCloseable {
  private static final long PAUSE_MAX = 1_000_000_000;

  private enum State {
    HELD,
    LOST,
    RELEASED
  }

  private final Engine engine;
  private final Wish wish;
  private final LockOptions options;
  private final boolean queuedAgain;
  private final long fence;
  private final long holdUntil; // of maxHold
  private final CompletableFuture<LockLostException> lost = new CompletableFuture<>();

  private final Object lock = new Object();
  private State state = State.HELD;
  private LockLostException loss;
  private RuntimeException lastError;
  private long leaseMs;
  private long certainUntil;
  private long renewAt;
  private boolean isRenewing;
  private ScheduledFuture<?> turn;
  private CompletableFuture<Void> release;

  HeldLock(Engine engine, Wish wish, LockOptions options, Wish.Grant grant, boolean queuedAgain) {
    this.engine = engine;
    this.wish = wish;
    this.options = options;
    this.queuedAgain = queuedAgain;
    fence = grant.fence();
    Duration maxHold = options.maxHold();
    holdUntil = maxHold == null ? Long.MAX_VALUE : Clock.SYSTEM.now() + maxHold.toNanos();
    if (options.onLost() != null) lost.thenAccept(options.onLost());
    synchronized (lock) {
      confirm(grant);
      schedule();
    }
    engine.add(this);
  }

  /** The key; of several keys, the first. */
  public String key() {
    return wish.key();
  }

  /** All keys that are held. */
  public List<String> keys() {
    return wish.items().stream().map(LockItem::key).toList();
  }

  /**
   * The fencing token: a number that rises with every grant of the key. Send it with every write,
   * and have the resource reject one smaller than the largest that it has seen.
   */
  public long fence() {
    return fence;
  }

  /** The name under which the server knows this hold. */
  public String holder() {
    return wish.holder();
  }

  /** The lease, as the server granted it last. */
  public Duration lease() {
    synchronized (lock) {
      return Duration.ofMillis(leaseMs);
    }
  }

  /** For how long the lock is certain from now on, without another renewal. Zero if it is lost. */
  public Duration remaining() {
    synchronized (lock) {
      if (state != State.HELD) return Duration.ZERO;
      return Duration.ofNanos(Math.max(certainUntil - Clock.SYSTEM.now(), 0));
    }
  }

  /** Whether the lock is certainly held. It looks at the clock, so it is exact. */
  public boolean isHeld() {
    synchronized (lock) {
      expire();
      return state == State.HELD;
    }
  }

  /**
   * Returns if the lock is certainly held. Call it before everything that cannot be undone.
   *
   * @throws LockLostException if the lock is lost, or released
   */
  public void check() {
    synchronized (lock) {
      expire();
      if (state == State.LOST) throw loss;
      if (state == State.RELEASED) {
        throw new LockLostException(key(), LockLostException.Cause.RELEASED, null);
      }
    }
  }

  /** Completes with the reason when the lock is lost. It never completes after a release. */
  public CompletableFuture<LockLostException> lost() {
    return lost.copy();
  }

  /** Why the last renewal failed, if it did. */
  public Optional<RuntimeException> lastError() {
    synchronized (lock) {
      return Optional.ofNullable(lastError);
    }
  }

  /** Whether the place in the queue was lost, by a restart or a cut wait, and taken again. */
  public boolean queuedAgain() {
    return queuedAgain;
  }

  /**
   * Renews now, with this lease from now on. It may be shorter than the last.
   *
   * @throws LockLostException if the lock is lost
   * @throws LockdException if no server confirmed it; the lock is held on until its lease is over
   */
  public void renew(Duration lease) throws InterruptedException {
    long ms = Math.min(LockOptions.checkLease(lease).toMillis(), LockOptions.MS_MAX);
    long until;
    synchronized (lock) {
      check();
      until = certainUntil;
      // The server may execute a shorter lease whose reply is lost.
      certainUntil = Math.min(certainUntil, Clock.SYSTEM.now() + 1_000_000 * Math.min(ms, leaseMs));
    }
    try {
      Wish.Grant grant = engine.renew(wish, fence, ms, until);
      synchronized (lock) {
        if (Clock.SYSTEM.now() < until) certainUntil = until; // the reply decides
        confirm(grant);
      }
    } catch (RefusedException e) {
      if (e.saysGone()) lose(LockLostException.Cause.REFUSED, e);
      else throw e;
    }
    check();
    synchronized (lock) {
      schedule();
    }
  }

  /**
   * Leaves the lock to end by itself after this time, which no process can shorten: it is renewed
   * once with this lease and counts as released here. Releases it now if the time is not positive.
   */
  public void expireIn(Duration rest) {
    if (rest.toMillis() < 1) {
      release();
      return;
    }
    uninterruptibly(
        () -> {
          renew(rest);
          synchronized (lock) {
            end(State.RELEASED);
          }
        });
  }

  /**
   * Releases the lock. A second release does nothing.
   *
   * @throws LockLostException if it was lost before
   * @throws LockdException if no server confirmed the release; the lock ends with its lease then
   */
  public void release() {
    join(releaseAsync());
  }

  /** Releases the lock, as {@link #release} does, on a thread of the client. */
  public CompletableFuture<Void> releaseAsync() {
    synchronized (lock) {
      expire();
      if (state == State.LOST) return CompletableFuture.failedFuture(loss);
      if (release == null && state == State.HELD) {
        release = engine.inBackground(this::doRelease);
        end(State.RELEASED);
      }
      return release == null ? CompletableFuture.completedFuture(null) : release.copy();
    }
  }

  /**
   * Releases the lock, as at the end of a try-with-resources statement. A release that no server
   * confirms is logged, because the lock then ends with its lease.
   *
   * @throws LockLostException if the lock was lost before
   */
  @Override
  public void close() {
    try {
      release();
    } catch (LockLostException e) {
      throw e;
    } catch (LockdException e) {
      Engine.LOG.log(System.Logger.Level.WARNING, "cannot release '" + key() + "'", e);
    }
  }

  /** Releases without waiting, and reports a loss only in the log. */
  void releaseInBackground() {
    releaseAsync()
        .exceptionally(
            failure -> {
              Engine.LOG.log(System.Logger.Level.DEBUG, "release of '" + key() + "'", failure);
              return null;
            });
  }

  private void doRelease() throws InterruptedException {
    if (!engine.release(wish, fence, engine.releaseTimeout)) {
      throw new LockLostException(key(), LockLostException.Cause.REFUSED, null);
    }
  }

  // --- Renewal. Callers of what follows hold the lock, unless it says otherwise.

  private void confirm(Wish.Grant grant) {
    // A confirmation that arrives after the lease was over confirms nothing.
    boolean isFirst = leaseMs == 0;
    if (!isFirst) expire();
    if (state != State.HELD) return;
    leaseMs = grant.leaseMs();
    certainUntil = grant.certainUntil();
    renewAt = grant.sentAt() + TimeUnit.MILLISECONDS.toNanos(leaseMs) / 3;
    if (lastError != null) {
      Engine.LOG.log(System.Logger.Level.INFO, "the lock '" + key() + "' is renewed again");
      lastError = null;
    }
  }

  private boolean mayRenew(long now) {
    return options.isRenewed() && now < holdUntil;
  }

  private void schedule() {
    if (turn != null) turn.cancel(false);
    if (state != State.HELD || engine.timer.isShutdown()) return;
    long now = Clock.SYSTEM.now();
    boolean isNext = !isRenewing && mayRenew(now) && renewAt < certainUntil;
    long at = isNext ? renewAt : certainUntil;
    try {
      turn = engine.timer.schedule(this::onTurn, Math.max(at - now, 0), TimeUnit.NANOSECONDS);
    } catch (RejectedExecutionException e) {
      // The client is closed, which releases the lock.
    }
  }

  // On the timer's thread, without the lock.
  private void onTurn() {
    synchronized (lock) {
      expire();
      long now = Clock.SYSTEM.now();
      if (state == State.HELD && !isRenewing && mayRenew(now) && now >= renewAt) {
        isRenewing = true;
        engine.inBackground(this::renewUntilAnswered);
      }
      schedule();
    }
  }

  // On a worker, without the lock.
  private void renewUntilAnswered() throws InterruptedException {
    long pause = 50_000_000;
    try {
      while (true) {
        long until;
        long ms;
        synchronized (lock) {
          expire();
          if (state != State.HELD) return;
          until = certainUntil;
          ms = leaseMs;
        }
        try {
          Wish.Grant grant = engine.renew(wish, fence, ms, until);
          synchronized (lock) {
            confirm(grant);
          }
          return;
        } catch (RefusedException | UnreachableException e) {
          if (e instanceof RefusedException refusal && refusal.saysGone()) {
            lose(LockLostException.Cause.REFUSED, e);
            return;
          }
          note(e);
        }
        engine.pause(pause, false);
        pause = Math.min(2 * pause, PAUSE_MAX);
      }
    } finally {
      synchronized (lock) {
        isRenewing = false;
        schedule();
      }
    }
  }

  private void note(LockdException failure) {
    synchronized (lock) {
      if (state != State.HELD) return;
      if (lastError == null) {
        String text = "cannot renew the lock '" + key() + "': " + failure.getMessage();
        Engine.LOG.log(System.Logger.Level.WARNING, text);
      }
      lastError = failure;
    }
  }

  private void expire() {
    if (state != State.HELD || Clock.SYSTEM.now() < certainUntil) return;
    if (!options.isRenewed()) {
      lose(LockLostException.Cause.EXPIRED, lastError);
    } else if (Clock.SYSTEM.now() >= holdUntil) {
      lose(LockLostException.Cause.MAX_HOLD, lastError);
    } else if (lastError instanceof RefusedException refusal && refusal.isUnauthorized()) {
      lose(LockLostException.Cause.UNAUTHORIZED, lastError);
    } else {
      lose(LockLostException.Cause.UNSURE, lastError);
    }
  }

  // With or without the lock. Callbacks run on a worker.
  private void lose(LockLostException.Cause why, RuntimeException error) {
    synchronized (lock) {
      if (state != State.HELD) return;
      loss = new LockLostException(key(), why, error);
      end(State.LOST);
      Engine.LOG.log(System.Logger.Level.WARNING, loss.getMessage());
      // A server that could not confirm may still keep the lock: there is no use for that.
      if (why == LockLostException.Cause.UNSURE) {
        engine.inBackground(() -> engine.release(wish, fence, engine.releaseTimeout));
      }
      try {
        engine.workers.execute(() -> lost.complete(loss));
      } catch (RejectedExecutionException e) {
        lost.complete(loss);
      }
    }
  }

  private void end(State how) {
    state = how;
    if (turn != null) turn.cancel(false);
    engine.remove(this);
  }

  // The end of a lock has to reach the server also from a thread that was interrupted.
  private void uninterruptibly(Engine.Work work) {
    join(engine.inBackground(work));
  }

  private static void join(CompletableFuture<Void> work) {
    try {
      work.join();
    } catch (CompletionException e) {
      if (e.getCause() instanceof RuntimeException failure) throw failure;
      throw e;
    }
  }
}
