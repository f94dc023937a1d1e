package lockd.shedlock;

import java.time.Duration;
import java.util.Optional;
import lockd.HeldLock;
import lockd.LockLostException;
import lockd.LockOptions;
import lockd.LockdClient;
import lockd.LockdException;
import net.javacrumbs.shedlock.core.AbstractSimpleLock;
import net.javacrumbs.shedlock.core.ExtensibleLockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.support.LockException;

/**
 * A ShedLock provider whose locks are locks of lockd. Thread-safe.
 *
 * <p>{@code lockAtMostFor} is the lease, which is not renewed: a task that takes longer loses its
 * lock, as with other providers, unless ShedLock's {@code KeepAliveLockProvider} extends it. At
 * unlock, a lock that is younger than its {@code lockAtLeastFor} is renewed once for the rest of
 * that time and then ends by itself, also if this process ends.
 */
public final class LockdLockProvider implements ExtensibleLockProvider {
  private static final System.Logger LOG = System.getLogger("lockd");

  private final LockdClient client;
  private final String keyPrefix;

  /** A provider whose keys are the names of the tasks behind {@code shedlock/}. */
  public LockdLockProvider(LockdClient client) {
    this(client, "shedlock/");
  }

  /** A provider whose keys are the names of the tasks behind this prefix. */
  public LockdLockProvider(LockdClient client, String keyPrefix) {
    this.client = client;
    this.keyPrefix = keyPrefix;
  }

  @Override
  public Optional<SimpleLock> lock(LockConfiguration configuration) {
    LockOptions options = LockOptions.DEFAULT.lease(lease(configuration)).withoutRenewal();
    try {
      return client
          .tryAcquire(keyPrefix + configuration.getName(), options)
          .map(held -> new Lock(configuration, held));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new LockException("interrupted while locking " + configuration.getName(), e);
    } catch (LockdException e) {
      throw new LockException("cannot lock " + configuration.getName(), e);
    }
  }

  // A lease has at least a millisecond; ShedLock accepts a lock of no duration.
  private static Duration lease(LockConfiguration configuration) {
    Duration most = configuration.getLockAtMostFor();
    return most.toMillis() < 1 ? Duration.ofMillis(1) : most;
  }

  private static final class Lock extends AbstractSimpleLock {
    private final HeldLock held;
    private final long begin = System.nanoTime();

    Lock(LockConfiguration configuration, HeldLock held) {
      super(configuration);
      this.held = held;
    }

    @Override
    protected void doUnlock() {
      long passed = System.nanoTime() - begin;
      try {
        // Releases at once if no time is left.
        held.expireIn(lockConfiguration.getLockAtLeastFor().minusNanos(passed));
      } catch (LockLostException e) {
        LOG.log(System.Logger.Level.WARNING, e.getMessage());
      } catch (LockdException e) {
        // The task is done. The lock ends with its lease, which is not shorter than the rest.
        LOG.log(System.Logger.Level.WARNING, "cannot unlock " + lockConfiguration.getName(), e);
      }
    }

    @Override
    protected Optional<SimpleLock> doExtend(LockConfiguration next) {
      try {
        held.renew(lease(next));
        return Optional.of(new Lock(next, held));
      } catch (LockLostException e) {
        return Optional.empty();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new LockException("interrupted while extending " + next.getName(), e);
      } catch (LockdException e) {
        throw new LockException("cannot extend " + next.getName(), e);
      }
    }
  }
}
