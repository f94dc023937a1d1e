package lockd;

import java.util.Optional;

/** The wait is over and another client holds the key. */
public final class NotAcquiredException extends LockdException {
  private static final long serialVersionUID = 1;

  private final String key;
  private final String holder;
  private final long waiters;

  NotAcquiredException(String message, String key, String holder, long waiters) {
    super(message, null);
    this.key = key;
    this.holder = holder;
    this.waiters = waiters;
  }

  /** The key that was in the way; of several keys, the first. */
  public String key() {
    return key;
  }

  /** The name of the holder, if the server sent it. */
  public Optional<String> holder() {
    return Optional.ofNullable(holder);
  }

  /** The number of requests in the queue of the key. */
  public long waiters() {
    return waiters;
  }
}
