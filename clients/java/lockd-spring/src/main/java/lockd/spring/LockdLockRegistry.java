package lockd.spring;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import lockd.LockOptions;
import lockd.LockdClient;
import org.springframework.integration.support.locks.ExpirableLockRegistry;
import org.springframework.integration.support.locks.RenewableLockRegistry;

/**
 * A lock registry of Spring Integration whose locks are locks of lockd. Thread-safe.
 *
 * <p>Locks renew themselves, so a task scheduler for renewals is not needed. {@link #renewLock}
 * renews at once, which shows whether the lock is still held.
 */
public class LockdLockRegistry implements ExpirableLockRegistry, RenewableLockRegistry {
  private final LockdClient client;
  private final String keyPrefix;
  private final LockOptions options;
  private final Map<String, LockdLock> locks = new ConcurrentHashMap<>();

  /** A registry whose keys begin with {@code registry/}, with the lease of the client. */
  public LockdLockRegistry(LockdClient client) {
    this(client, "registry/", LockOptions.DEFAULT);
  }

  /** A registry with this prefix of keys. The options say the lease and how a key is held. */
  public LockdLockRegistry(LockdClient client, String keyPrefix, LockOptions options) {
    this.client = client;
    this.keyPrefix = keyPrefix;
    this.options = options;
  }

  /** The lock of this key, which is a string or has a string form of its own. */
  @Override
  public LockdLock obtain(Object lockKey) {
    LockdLock lock =
        locks.computeIfAbsent(
            String.valueOf(lockKey), name -> new LockdLock(client, options, keyPrefix + name));
    lock.touch();
    return lock;
  }

  /**
   * Renews the lock, which this thread owns.
   *
   * @throws IllegalMonitorStateException if this thread does not own it
   * @throws IllegalStateException if it was lost
   */
  @Override
  public void renewLock(Object lockKey) {
    renewLock(lockKey, null);
  }

  /** Renews the lock, which this thread owns, with this lease from now on. */
  public void renewLock(Object lockKey, Duration ttl) {
    LockdLock lock = locks.get(String.valueOf(lockKey));
    if (lock == null) throw new IllegalStateException("no lock '" + lockKey + "' was obtained");
    lock.renew(ttl);
  }

  @Override
  public void expireUnusedOlderThan(long age) {
    locks.values().removeIf(lock -> lock.isUnusedFor(age));
  }
}
