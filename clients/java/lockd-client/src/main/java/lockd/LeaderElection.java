package lockd;

import java.time.Duration;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Runs a body in one process at a time. Each process that runs an election of the same key waits
 * for the lock; the one that holds it leads.
 *
 * <p>While the lock is held the body runs, with the lock as its argument. When the lock is lost, or
 * the election is closed, the thread of the body is interrupted. When the body returns, the lock is
 * released and the election waits for it again.
 */
public final class LeaderElection implements AutoCloseable {
  /** What the leader does. */
  @FunctionalInterface
  public interface Body {
    /**
     * Leads until it returns, or is interrupted because the lock is lost or the election closed.
     */
    void lead(HeldLock lock) throws InterruptedException;
  }

  private static final Duration PAUSE = Duration.ofSeconds(1);

  private final LockdClient client;
  private final String key;
  private final LockOptions options;
  private final Body body;
  private final CountDownLatch ended = new CountDownLatch(1);
  private final Thread thread;
  private volatile boolean isClosed;
  private volatile HeldLock leading;

  LeaderElection(LockdClient client, String key, LockOptions options, Body body) {
    this.client = client;
    this.key = key;
    this.options = options;
    this.body = body;
    options.item(key); // rejects an impossible key here, not in the background
    thread = Workers.daemons("lockd-election-" + key + "-").newThread(this::campaign);
    thread.start();
  }

  /** Whether this process leads now, with certainty. */
  public boolean isLeader() {
    HeldLock lock = leading;
    return lock != null && lock.isHeld();
  }

  /** Interrupts the body, waits until it has returned, and releases the lock. */
  @Override
  public void close() {
    isClosed = true;
    thread.interrupt();
    boolean wasInterrupted = false;
    while (Thread.currentThread() != thread) {
      try {
        ended.await();
        break;
      } catch (InterruptedException e) {
        wasInterrupted = true;
      }
    }
    if (wasInterrupted) Thread.currentThread().interrupt();
  }

  private void campaign() {
    try {
      while (!isClosed) {
        boolean hasFailed = true;
        try (HeldLock lock = client.acquire(key, options)) {
          leading = lock;
          lead(lock);
          hasFailed = false;
        } catch (LockLostException e) {
          hasFailed = false; // the lock has reported it
        } catch (NotAcquiredException e) {
          Engine.LOG.log(System.Logger.Level.DEBUG, "election for '" + key + "'", e);
        } catch (CancellationException e) {
          return; // the client is closed
        } catch (RuntimeException e) {
          Engine.LOG.log(System.Logger.Level.WARNING, "election for '" + key + "'", e);
        } finally {
          leading = null;
        }
        if (hasFailed) TimeUnit.NANOSECONDS.sleep(PAUSE.toNanos());
      }
    } catch (InterruptedException e) {
      // Closed: nothing else has this thread.
    } finally {
      ended.countDown();
    }
  }

  private void lead(HeldLock lock) {
    Object turn = new Object();
    boolean[] isOver = {false};
    lock.lost()
        .thenRun(
            () -> {
              synchronized (turn) {
                if (!isOver[0]) thread.interrupt();
              }
            });
    try {
      body.lead(lock);
    } catch (InterruptedException e) {
      if (!isClosed && lock.isHeld()) {
        Engine.LOG.log(System.Logger.Level.WARNING, "the body of '" + key + "' was interrupted");
      }
    } finally {
      synchronized (turn) {
        isOver[0] = true;
      }
      // An interrupt that ended the body is spent; that of close() is seen by isClosed.
      Thread.interrupted();
    }
  }
}
