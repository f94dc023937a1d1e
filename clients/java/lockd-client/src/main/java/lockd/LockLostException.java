package lockd;

/** The lock is not held any more, or not with certainty. */
public final class LockLostException extends LockdException {
  private static final long serialVersionUID = 1;

  /** Why a lock is not held any more. */
  public enum Cause {
    /** The server replied that the lease is over, or that an operator released the lock. */
    REFUSED,
    /** The lease ran out and no server had confirmed a renewal. */
    UNSURE,
    /** The lease ran out while the server rejected the auth token or the right to renew. */
    UNAUTHORIZED,
    /** The longest time of {@link LockOptions#maxHold} is over. */
    MAX_HOLD,
    /** The lease ran out, and the lock was taken without renewals. */
    EXPIRED,
    /** The program released the lock, or closed its client. */
    RELEASED
  }

  private final Cause why;

  LockLostException(String key, Cause why, Throwable lastError) {
    super("the lock '" + key + "' is lost: " + describe(why, lastError), lastError);
    this.why = why;
  }

  /** Why it is lost. {@link #getCause} is the failure of the last renewal, or null. */
  public Cause why() {
    return why;
  }

  private static String describe(Cause why, Throwable lastError) {
    String text =
        switch (why) {
          case REFUSED -> "the server says that it is not held";
          case UNSURE -> "its lease ran out and no server confirmed a renewal";
          case UNAUTHORIZED -> "its lease ran out and the server rejected the client";
          case MAX_HOLD -> "the longest time to hold it is over";
          case EXPIRED -> "its lease is over";
          case RELEASED -> "it was released";
        };
    return lastError == null ? text : text + " (" + lastError.getMessage() + ")";
  }
}
