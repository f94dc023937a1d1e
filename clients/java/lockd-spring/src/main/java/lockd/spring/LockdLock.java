package lockd.spring;

import java.time.Duration;
import java.util.ConcurrentModificationException;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import lockd.HeldLock;
import lockd.LockLostException;
import lockd.LockOptions;
import lockd.LockdClient;
import lockd.LockdException;
import lockd.NotAcquiredException;

/**
 * A lock of a {@link LockdLockRegistry}: reentrant, owned by a thread, and held at the server while
 * a thread owns it. The client renews it in the background.
 *
 * <p>A thread that locks again while it owns the lock, and whose hold was lost meanwhile, acquires
 * a new hold. If that fails the thread does not own the lock any more. {@link #unlock} throws
 * {@link ConcurrentModificationException} if the hold was lost, because another process may have
 * worked under the lock.
 */
public final class LockdLock implements Lock {
  private final LockdClient client;
  private final LockOptions options;
  private final String key;
  private final ReentrantLock local = new ReentrantLock();
  private volatile HeldLock held; // changed by the thread that owns `local`
  private volatile long usedAt = System.nanoTime();

  LockdLock(LockdClient client, LockOptions options, String key) {
    this.client = client;
    this.options = options;
    this.key = key;
  }

  private interface Acquisition {
    HeldLock run() throws InterruptedException;
  }

  @Override
  public void lock() {
    local.lock();
    boolean wasInterrupted = Thread.interrupted();
    try {
      hold(() -> join(key));
    } catch (InterruptedException e) {
      throw new AssertionError(e); // join() does not throw it
    } finally {
      if (wasInterrupted) Thread.currentThread().interrupt();
    }
  }

  @Override
  public void lockInterruptibly() throws InterruptedException {
    local.lockInterruptibly();
    hold(() -> client.acquire(key, options));
  }

  @Override
  public boolean tryLock() {
    if (!local.tryLock()) return false;
    try {
      return hold(() -> client.tryAcquire(key, options).orElse(null));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  @Override
  public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
    long begin = System.nanoTime();
    if (!local.tryLock(time, unit)) return false;
    long left = Math.max(unit.toNanos(time) - (System.nanoTime() - begin), 0);
    LockOptions bounded = options.waitAtMost(Duration.ofNanos(left));
    return hold(
        () -> {
          try {
            return client.acquire(key, bounded);
          } catch (NotAcquiredException e) {
            return null;
          }
        });
  }

  /**
   * Releases the lock.
   *
   * @throws IllegalMonitorStateException if this thread does not own it
   * @throws ConcurrentModificationException if it was lost before
   */
  @Override
  public void unlock() {
    checkOwner();
    if (local.getHoldCount() == 1) {
      HeldLock last = held;
      held = null;
      try {
        last.close();
      } catch (LockLostException e) {
        ConcurrentModificationException lost =
            new ConcurrentModificationException(
                "another process may have worked under the lock '" + key + "'", e);
        throw lost;
      } finally {
        local.unlock();
      }
    } else {
      local.unlock();
    }
  }

  /** Not supported: a condition would need a signal between processes. */
  @Override
  public Condition newCondition() {
    throw new UnsupportedOperationException("locks of lockd have no conditions");
  }

  /** The fencing token of the hold. Only for the thread that owns the lock. */
  public long fence() {
    checkOwner();
    return held.fence();
  }

  /** Whether a thread of this process owns the lock and its hold is certain. */
  public boolean isHeld() {
    HeldLock current = held;
    return current != null && current.isHeld();
  }

  void renew(Duration lease) {
    checkOwner();
    try {
      held.renew(lease == null ? held.lease() : lease);
    } catch (LockLostException e) {
      throw new IllegalStateException("cannot renew the lock '" + key + "'", e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while renewing the lock '" + key + "'", e);
    }
  }

  boolean isUnusedFor(long ageMs) {
    long idle = System.nanoTime() - usedAt;
    return !local.isLocked()
        && !local.hasQueuedThreads()
        && idle > TimeUnit.MILLISECONDS.toNanos(ageMs);
  }

  void touch() {
    usedAt = System.nanoTime();
  }

  private void checkOwner() {
    if (!local.isHeldByCurrentThread()) {
      throw new IllegalMonitorStateException("this thread does not own the lock '" + key + "'");
    }
  }

  /** Completes a lock() whose local part is done. Without a hold, the local lock is free again. */
  private boolean hold(Acquisition acquisition) throws InterruptedException {
    touch();
    boolean isDone = false;
    try {
      isDone = local.getHoldCount() > 1 && held.isHeld();
      if (!isDone) {
        HeldLock next = acquisition.run();
        if (next != null) held = next;
        isDone = next != null;
      }
      return isDone;
    } finally {
      if (!isDone) {
        held = null;
        while (local.isHeldByCurrentThread()) local.unlock();
      }
    }
  }

  private HeldLock join(String key) {
    try {
      return client.acquireAsync(key, options).join();
    } catch (CompletionException e) {
      if (e.getCause() instanceof LockdException failure) throw failure;
      if (e.getCause() instanceof CancellationException closed) throw closed;
      throw e;
    }
  }
}
