package lockd;

/** The root of what the client throws. Each subclass is one kind of answer, or its absence. */
public class LockdException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** Creates an exception with a text for people, and the failure behind it or null. */
  public LockdException(String message, Throwable cause) {
    super(message, cause);
  }
}
