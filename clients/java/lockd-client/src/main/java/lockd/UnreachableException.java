package lockd;

/**
 * No server that serves has answered: no connection, no reply in time, a reply that cannot be read,
 * a server that drains, or a cluster without a leader. Whether the request was executed is unknown.
 */
public class UnreachableException extends LockdException {
  private static final long serialVersionUID = 1;

  /** Creates an exception with a text for people, and the failure behind it or null. */
  public UnreachableException(String message, Throwable cause) {
    super(message, cause);
  }

  /** Whether the request may have reached a server that executes it. */
  boolean mayBeExecuted() {
    return true;
  }

  /** No connection was made, so the request did nothing. */
  static final class NotSent extends UnreachableException {
    private static final long serialVersionUID = 1;

    NotSent(String message, Throwable cause) {
      super(message, cause);
    }

    @Override
    boolean mayBeExecuted() {
      return false;
    }
  }

  /** The server does not lead, or drains. One that forwards may have passed the request on. */
  static final class NotServed extends UnreachableException {
    private static final long serialVersionUID = 1;

    /** The HTTP address of the leader as this server knows it, or null. */
    final transient String leader;

    NotServed(String message, String leader) {
      super(message, null);
      this.leader = leader;
    }
  }
}
