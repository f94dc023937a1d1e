package lockd;

/**
 * The server refused the request and said why: a limit, a right, a mismatch, a wrong auth token.
 */
public final class RefusedException extends LockdException {
  private static final long serialVersionUID = 1;

  private final int status;
  private final String code;

  RefusedException(String message, int status, String code) {
    super(message, null);
    this.status = status;
    this.code = code;
  }

  /** The HTTP status: 400, 401, 403, 409 or 429. */
  public int status() {
    return status;
  }

  /**
   * The stable code of the error, such as {@code denied}, {@code max_holds}, {@code
   * limit_mismatch}.
   */
  public String code() {
    return code;
  }

  /** Whether the auth token or the certificate is not accepted, or has no right to this call. */
  public boolean isUnauthorized() {
    return status == 401 || status == 403;
  }

  /** Whether the hold of a renewal or release is over. */
  boolean saysGone() {
    return status == 409
        && (code.equals("expired") || code.equals("stale_token") || code.equals("not_holder"));
  }
}
